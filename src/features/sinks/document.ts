/** The JSON document that a sink receives for each notification, the rules that select it, and other formats of messages. */

import { createHash } from 'node:crypto';
import { formatDateUs } from '../../core/terms/dates.ts';
import type { NotificationLog, NotificationRow } from '../../core/terms/ports.ts';
import { requireFilter } from '../../filter/check.ts';
import { compileFilter, type ProductTest } from '../../filter/evaluate.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { polygonsOf } from '../../filter/geometry/ring.ts';
import { type ProductView, productView, recordIn } from '../../filter/product-view.ts';
import type { ProductRecord } from '../../filter/values.ts';
import type { SinkRules } from './terms.ts';

/** Future versions may add fields, but not remove any. Unknown values are null. Times are ISO 8601 UTC. */
export interface SinkDocument {
  /** Unique, and the same for each attempt: the sink can use it to skip duplicates. */
  id: string;
  /** `id` of the notification's first delivery; differs from `id` in a replay. */
  notificationId: string;
  /** True for a replay (`earshot sinks replay`). */
  replay: boolean;
  /** True for a test delivery of `earshot sinks test`; otherwise absent. */
  test?: true;
  /** Name of the sink. */
  sink: string;
  /** Position in the log; increases in the order of receipt. */
  position: number;
  /** Name of the subscription, from the path of the push. */
  subscription: string | null;
  /** `created`, `modified`, `deleted`, or an unknown event; in lower case. */
  event: string;
  productId: string;
  productName: string | null;
  /** Id of the subscription in the catalogue. */
  subscriptionId: string | null;
  ackId: string | null;
  /** Time at which the catalogue created the notification. */
  notificationDate: string | null;
  receivedAt: string;
  /** `push`, or `reconcile` for a recovered notification. */
  source: string;
  /** Record of the product, as sent by the catalogue. */
  value: ProductRecord | null;
}

/**
 * Builds the document. The id includes the time of receipt, because positions start from 1 again in a new log, for
 * example on another machine.
 */
export function documentOf(options: {
  row: NotificationRow;
  record: ProductRecord | null;
  sink: string;
  replayId: number | null;
}): SinkDocument {
  const { row, record, sink, replayId } = options;
  const notificationId = `n_${row.position}_${row.receivedAtUs.toString(36)}`;
  const { notificationDateUs } = row;
  return {
    id: replayId === null ? notificationId : `${notificationId}_replay_${replayId}`,
    notificationId,
    replay: replayId !== null,
    sink,
    position: row.position,
    subscription: row.subscription,
    event: row.event,
    productId: row.productId,
    productName: row.productName,
    subscriptionId: row.subscriptionId,
    ackId: row.ackId,
    notificationDate: notificationDateUs === null ? null : formatDateUs(notificationDateUs),
    receivedAt: formatDateUs(row.receivedAtUs),
    source: row.source,
    value: record,
  };
}

/** A document with a fictional product, for tests without a notification. */
export const sampleDocument: SinkDocument = {
  ...{ id: 'test', notificationId: 'test', replay: false, test: true, sink: 'test', position: 0 },
  ...{ subscription: 'test', event: 'created', source: 'push', subscriptionId: null, ackId: null },
  productId: '00000000-0000-4000-8000-000000000000',
  productName: 'EARSHOT_TEST_DELIVERY.SAFE',
  notificationDate: null,
  receivedAt: '2000-01-01T00:00:00.000000Z',
  value: {
    Id: '00000000-0000-4000-8000-000000000000',
    Name: 'EARSHOT_TEST_DELIVERY.SAFE',
  },
};

/** Returns null for a notification without a record. Bodies in the log are valid JSON. */
export function recordOf(
  body: Uint8Array,
  { bodyIndex }: Pick<NotificationRow, 'bodyIndex'>,
): ProductRecord | null {
  return recordIn(JSON.parse(new TextDecoder().decode(body)), bodyIndex);
}

/** Reads the record unless it is given. Rejects with `unavailable` when a body cannot be read. */
export type Matcher = (
  row: NotificationRow,
  known?: ReturnType<typeof recordOf>,
) => Promise<boolean>;

/**
 * Compiles the rules of a sink to a function. A filter applies to the record of the notification, not to the current
 * state of the product; a notification without a record only matches a blank filter. Throws `invalid` for an invalid
 * filter.
 */
export function compileMatcher(
  definition: Pick<SinkRules, 'subscriptions' | 'events' | 'filter'>,
  log: Pick<NotificationLog, 'body'>,
  /** Additional filter of a replay. */
  replayFilter = '',
): Matcher {
  const subscriptions = new Set<string | null>(definition.subscriptions);
  const events = new Set<string>(definition.events);
  const tests = [definition.filter, replayFilter].flatMap(testsOf);
  return async (row, known) => {
    if (subscriptions.size > 0 && !subscriptions.has(row.subscription)) return false;
    if (events.size > 0 && !events.has(row.event)) return false;
    if (tests.length === 0) return true;
    const record = known === undefined ? recordOf(await log.body(row.position), row) : known;
    if (record === null) return false;
    const view = productView({ Id: row.productId, Name: row.productName, ...record });
    return tests.every((test) => test(view));
  };
}

function testsOf(filter: string): ProductTest[] {
  const tree = requireFilter(filter, 'Products');
  return tree === null ? [] : [compileFilter(tree)];
}

/** Values of the field `format` of a sink; the first one is the default. Each kind lists its own. */
export const formatNames = ['document', 'cloudevents', 'wis2'] as const;
export type FormatName = (typeof formatNames)[number];

/** URLs in messages. */
export interface MessageUrls {
  /** Catalogue, without `/odata/v1` and without a last slash. */
  catalogue: string;
  /** Public URL of this receiver; undefined if it is not configured. */
  receiver: string | undefined;
}

/** Returns the view of the product in a document; also usable without a record. */
export function viewOf({ productId, productName, value }: SinkDocument): ProductView {
  return productView({ Id: productId, Name: productName, ...value });
}

/** Media type of a CloudEvent in the structured mode of the JSON format. */
export const cloudEventType = 'application/cloudevents+json';

/**
 * A reversed domain name, as CloudEvents recommends. The project owns no domain; names below `internal` belong to nobody
 * (reserved for private use).
 */
const cloudEventTypePrefix = 'internal.earshot.product.';

/** Builds a CloudEvent (CloudEvents 1.0, JSON format). Its data is the document. */
export function cloudEventOf(item: SinkDocument, urls: Pick<MessageUrls, 'receiver'>) {
  return {
    specversion: '1.0',
    id: item.id,
    source: sourceOf(urls),
    type: `${cloudEventTypePrefix}${item.event}`,
    subject: item.productId,
    time: item.notificationDate ?? item.receivedAt,
    datacontenttype: 'application/json',
    data: item,
  };
}

/** Identifies this receiver. The id of a document is unique within it. */
function sourceOf({ receiver }: Pick<MessageUrls, 'receiver'>): string {
  return receiver ?? 'urn:earshot:receiver';
}

/** Maximum size of a WIS2 message (WNM 1, /req/core/message_size). */
const wis2BytesMax = 8_192;

interface Wis2Context {
  urls: MessageUrls;
  /** Time of publication. */
  nowUs: number;
  /** Identifier of the discovery metadata record; null without one. */
  metadataId: string | null;
}

/**
 * Builds a WIS2 Notification Message (WNM 1, https://wmo-im.github.io/wis2-notification-message) as JSON. The id depends
 * only on the document, so that a repeated delivery has the same one. A footprint that does not fit into the maximum
 * size, or that is not a single polygon or point, is omitted: the standard requires a null geometry then.
 */
export function wis2Text(item: SinkDocument, context: Wis2Context): string {
  const view = viewOf(item);
  const message = wis2Message(item, view, context);
  const text = JSON.stringify(message);
  if (Buffer.byteLength(text) <= wis2BytesMax) return text;
  return JSON.stringify({ ...message, geometry: null });
}

function wis2Message(
  item: SinkDocument,
  view: ProductView,
  { urls, nowUs, metadataId }: Wis2Context,
) {
  const { productId, productName, event } = item;
  return {
    id: uuidOf(`${sourceOf(urls)} ${item.id}`),
    conformsTo: ['http://wis.wmo.int/spec/wnm/1/conf/core'],
    type: 'Feature',
    geometry: wis2Geometry(view),
    properties: {
      // The same for each notification of a product. Names are not unique, and ids alone are opaque.
      data_id: productName === null ? productId : `${productName}/${productId}`,
      ...(metadataId !== null && { metadata_id: metadataId }),
      pubtime: formatDateUs(nowUs),
      ...wis2Times(view),
    },
    links: [
      {
        href: `${urls.catalogue}/odata/v1/Products(${encodeURIComponent(productId.toWellFormed())})/$value`,
        rel: relations.get(event) ?? 'update',
        security: { default: { type: 'http', scheme: 'bearer', description: loginAdvice } },
      },
    ],
  };
}

/** Link relation of each event; a new event of the catalogue is an update. */
const relations: ReadonlyMap<string, string> = new Map([
  ['created', 'canonical'],
  ['modified', 'update'],
  ['deleted', 'deletion'],
]);

const loginAdvice = 'Access token of an account of the catalogue.';

/** Namespace of the ids of messages (RFC 9562, 5.5); random, and never changed. */
const namespace = Buffer.from('b1f0c2a45d7e4f0c9a3e6d81f2c47b95', 'hex');

/** Returns the UUID, version 5, of a name: the same name has the same UUID. */
function uuidOf(name: string): string {
  const bytes = createHash('sha1').update(namespace).update(name).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Returns a GeoJSON Point or Polygon, the only permitted types; null for other footprints. */
function wis2Geometry(view: ProductView) {
  const geometry = view.geometry();
  if (geometry === null) return null;
  const written = toGeoJson(geometry);
  if (written.type === 'Point') return written;
  const polygons = written.type === 'GeometryCollection' ? [] : polygonsOf(written);
  const [coordinates = [], ...others] = polygons;
  const isPolygon = coordinates.length > 0 && coordinates.every((ring) => ring.length >= 4);
  return isPolygon && others.length === 0 ? { type: 'Polygon' as const, coordinates } : null;
}

function wis2Times(view: ProductView) {
  const [startUs, endUs] = [view.dateUs('ContentDate/Start'), view.dateUs('ContentDate/End')];
  if (startUs === null || endUs === null || startUs === endUs) {
    const us = startUs ?? endUs;
    return { datetime: us === null ? null : formatDateUs(us) };
  }
  return { start_datetime: formatDateUs(startUs), end_datetime: formatDateUs(endUs) };
}
