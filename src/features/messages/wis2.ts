/** WIS2 Notification Messages (WNM 1, https://wmo-im.github.io/wis2-notification-message). */

import { createHash } from 'node:crypto';
import { formatDateUs } from '../../core/terms/dates.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { polygonsOf } from '../../filter/geometry/ring.ts';
import type { ProductView } from '../../filter/product-view.ts';
import { sourceOf } from './cloudevents.ts';
import { type NotificationDocument, viewOf } from './document.ts';
import type { MessageContext } from './formats.ts';

/** Maximum size of a WIS2 message (WNM 1, /req/core/message_size). */
const wis2BytesMax = 8_192;

/**
 * Returns the message. Its id depends only on the document, so that a repeated delivery has the same one. A footprint that
 * does not fit into the maximum size, or that is not a single polygon or point, is omitted: the standard requires a null
 * geometry then.
 */
export function wis2Message(document: NotificationDocument, context: MessageContext) {
  const message = completeMessage(document, viewOf(document), context);
  const isSmall = Buffer.byteLength(JSON.stringify(message)) <= wis2BytesMax;
  return isSmall ? message : { ...message, geometry: null };
}

function completeMessage(
  item: NotificationDocument,
  view: ProductView,
  { urls, nowUs, metadataId }: MessageContext,
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
      ...(metadataId !== undefined && { metadata_id: metadataId }),
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
