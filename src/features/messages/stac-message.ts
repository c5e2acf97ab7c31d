/** Products as STAC items, and as CloudEvents with the types of OGC's draft for publish/subscribe (OGC 25-030). */
import { readDateUs } from '../../core/terms/dates.ts';
import { textOrNull } from '../../filter/values.ts';
import { collectionOfView } from '../stac/collections.ts';
import { toStacItem } from '../stac/item.ts';
import { cloudEvent } from './cloudevents.ts';
import { type NotificationDocument, viewOf } from './document.ts';
import type { MessageContext } from './formats.ts';

/** Returns the item as `/stac` serves it; a reference for a deletion, with its time and cause, or without a record. */
export function stacMessage(document: NotificationDocument, { urls, stacIds }: MessageContext) {
  const { productId, value, receivedAt } = document;
  const options = { catalogueUrl: urls.catalogue, base: urls.base, ids: stacIds };
  const receivedAtUs = readDateUs(receivedAt) ?? 0;
  const s3Path = textOrNull(value?.S3Path);
  const row = { productId, s3Path, deletionDateUs: null, receivedAtUs };
  const record = { ...value, Id: productId, Name: document.productName ?? value?.Name };
  const item = toStacItem({ row, record }, options);
  const isComplete = document.event !== 'deleted' && value !== null;
  return isComplete ? item : referenceOf(document, item);
}

const timestampsExtension = 'https://stac-extensions.github.io/timestamps/v1.1.0/schema.json';

/** Returns an item without geometry and assets. `unpublished` is the term of the extension `timestamps`. */
function referenceOf(document: NotificationDocument, item: ReturnType<typeof toStacItem>) {
  const { event, value, notificationDate, receivedAt } = document;
  const isDeleted = event === 'deleted';
  const { bbox: _, ...rest } = item;
  return {
    ...rest,
    stac_extensions: isDeleted ? [timestampsExtension] : [],
    geometry: null,
    properties: {
      datetime: item.properties.datetime,
      ...(document.productName !== null && { title: document.productName }),
      ...(isDeleted && {
        unpublished: textOrNull(value?.DeletionDate) ?? notificationDate ?? receivedAt,
        deletion_cause: textOrNull(value?.DeletionCause),
      }),
    },
    assets: {},
  };
}

/** Types of OGC's draft. A new event of the catalogue is a change. */
const operations: ReadonlyMap<string, string> = new Map([
  ['created', 'create'],
  ['deleted', 'delete'],
]);

/**
 * Returns an event whose data is the item. Its extension attributes, by which brokers can route, are absent for a product
 * without the value.
 */
export function ogcCloudEvent(document: NotificationDocument, context: MessageContext) {
  const view = viewOf(document);
  const { mission, productType } = collectionOfView(view);
  const data = stacMessage(document, context);
  const operation = operations.get(document.event) ?? 'replace';
  return cloudEvent(document, context, {
    type: `org.ogc.api.collection.item.${operation}`,
    subject: data.id,
    datacontenttype: 'application/geo+json',
    collection: data.collection,
    ...(mission !== null && { mission }),
    ...(productType !== null && { producttype: productType }),
    data,
  });
}
