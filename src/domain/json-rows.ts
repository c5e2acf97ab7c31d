/** Rows as programs get them, from the command line and the private listener alike (design, section 4). */
import { formatDateUs } from './dates.ts';
import type { NotificationRow } from './ports.ts';
import type { FoundProduct, ProductRow } from './products.ts';

/** The fields of a row in every machine-readable form, in this order. */
export const notificationFields = [
  'position',
  'ackId',
  'productId',
  'productName',
  'event',
  'subscription',
  'subscriptionId',
  'notificationDate',
  'receivedAt',
  'source',
  'timesSeen',
] as const;

/** A row with the names and forms of the interface contract: times ISO 8601 UTC, absent ones null. */
export function toNotificationJson(row: NotificationRow) {
  const { notificationDateUs: date } = row;
  return {
    position: row.position,
    ackId: row.ackId,
    productId: row.productId,
    productName: row.productName,
    event: row.event,
    subscription: row.subscription,
    subscriptionId: row.subscriptionId,
    notificationDate: date === null ? null : formatDateUs(date),
    receivedAt: formatDateUs(row.receivedAtUs),
    source: row.source,
    timesSeen: row.timesSeen,
  } satisfies Record<(typeof notificationFields)[number], unknown>;
}

/** The columns of the index in CSV, and the first properties of a GeoJSON feature, in this order. */
export const productFields = [
  'position',
  'productId',
  'productName',
  'collection',
  'platform',
  'productType',
  'processingLevel',
  'sensingStart',
  'sensingEnd',
  'publicationDate',
  'modificationDate',
  'sizeBytes',
  'online',
  'cloudCoverPercent',
  'orbitNumber',
  'relativeOrbitNumber',
  'orbitDirection',
  'tile',
  'processingBaseline',
  'receivedAt',
  'deletionDate',
  'deletionCause',
] as const;

/** The columns with times in ISO 8601 UTC; what is not known is null. */
export function toProductJson(row: ProductRow) {
  const time = (us: number | null) => (us === null ? null : formatDateUs(us));
  return {
    position: row.position,
    productId: row.productId,
    productName: row.productName,
    collection: row.collection,
    platform: row.platform,
    productType: row.productType,
    processingLevel: row.processingLevel,
    sensingStart: time(row.sensingStartUs),
    sensingEnd: time(row.sensingEndUs),
    publicationDate: time(row.publicationUs),
    modificationDate: time(row.modificationUs),
    sizeBytes: row.sizeBytes,
    online: row.online,
    cloudCoverPercent: row.cloudCoverPercent,
    orbitNumber: row.orbitNumber,
    relativeOrbitNumber: row.relativeOrbitNumber,
    orbitDirection: row.orbitDirection,
    tile: row.tile,
    processingBaseline: row.processingBaseline,
    receivedAt: formatDateUs(row.receivedAtUs),
    deletionDate: time(row.deletionUs),
    deletionCause: row.deletionCause,
  } satisfies Record<(typeof productFields)[number], unknown>;
}

/** What leads to the data of a product: these follow the columns in CSV and GeoJSON. Both need the record. */
export const productLinkFields = ['s3Path', 'downloadUrl'] as const;

/** Null where the record has no path, and for deleted products, of which there is nothing to download. */
export function toProductLinks({ row, record }: FoundProduct, catalogueUrl: string) {
  const { S3Path: path } = record;
  const product = `Products(${encodeURIComponent(row.productId)})`;
  return {
    s3Path: typeof path === 'string' ? path : null,
    downloadUrl: row.deletionUs === null ? `${catalogueUrl}/odata/v1/${product}/$value` : null,
  } satisfies Record<(typeof productLinkFields)[number], unknown>;
}
