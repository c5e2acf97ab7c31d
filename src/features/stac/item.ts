/** STAC items (STAC 1.0.0) of products. */

import type { StacItem, StacLink } from 'stac-ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import { toProductLinks } from '../../core/terms/read-models.ts';
import type { AnyGeometry } from '../../filter/filter-tree.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { joinParts, partsOf } from '../../filter/geometry/ring.ts';
import { bboxOf, toShape } from '../../filter/geometry/shape.ts';
import { type ProductView, productView } from '../../filter/product-view.ts';
import type { ProductRow } from '../../filter/products.ts';
import { type ProductRecord, partOf, textOrNull } from '../../filter/values.ts';
import { type CatalogueIds, catalogueIds, catalogueStacUrl } from './catalogue-ids.ts';
import { collectionId, collectionOfView } from './collections.ts';
import { extensionsOf, isRadarProduct, stacProperties } from './properties.ts';

export const stacVersion = '1.0.0';

export interface ItemOptions {
  /** Without a trailing slash. */
  catalogueUrl: string;
  /** URL of the private listener, without a trailing slash. */
  base: string;
  /** Ids of the item and its collection: by default those of earshot's own STAC API. */
  ids?: 'earshot' | 'catalogue';
}

/** The part of a product that an item needs. */
export interface ItemSource {
  row: Pick<ProductRow, 'productId' | 's3Path' | 'deletionDateUs' | 'receivedAtUs'>;
  record: ProductRecord;
}

/**
 * Returns the item of a product; requires its record. Times are ISO 8601 UTC. The geometry is split at the antimeridian
 * (RFC 7946, 3.1.9), and null without a footprint. `datetime` is the start of sensing; for a product without one, the
 * time of publication, else of receipt.
 */
export function toStacItem(product: ItemSource, options: ItemOptions): StacItem {
  const { row, record } = product;
  const view = productView(record);
  const properties = propertiesOf(product, view);
  const geometry = view.geometry();
  const split = geometry === null ? null : toGeoJson(geometry);
  return {
    type: 'Feature',
    stac_version: stacVersion,
    stac_extensions: extensionsOf(properties),
    ...itemIds(row.productId, view, options),
    geometry: split === null ? null : withoutCollection(split),
    // Shapes round to 2^-40 degrees.
    ...(split && { bbox: bboxOf(toShape(split)).map((side) => Number(side.toFixed(10))) }),
    properties,
    links: linksOf(row.productId, view, options),
    assets: assetsOf(product, options),
  } as StacItem;
}

/** Returns `id` and `collection` of an item. A product type that the catalogue's API does not have keeps its collection. */
function itemIds(productId: string, view: ProductView, { ids }: Pick<ItemOptions, 'ids'>) {
  const found = ids === 'catalogue' ? idsInCatalogue(view) : null;
  const own = collectionId(collectionOfView(view));
  return { id: found?.id ?? productId, collection: found?.collection ?? own };
}

function idsInCatalogue(view: ProductView): CatalogueIds | null {
  const name = view.text('Name');
  return name === null ? null : catalogueIds(name);
}

/** Returns the areas of a collection, else its lines: the schema of items permits no collection. */
function withoutCollection(geometry: AnyGeometry): AnyGeometry {
  if (geometry.type !== 'GeometryCollection') return geometry;
  const { lines, polygons } = partsOf(geometry);
  return joinParts({ points: [], lines: polygons.length > 0 ? [] : lines, polygons });
}

function propertiesOf({ row }: ItemSource, view: ProductView) {
  const properties: Record<string, unknown> = { datetime: null };
  for (const { name, valueIn } of stacProperties) {
    // The same time: its format costs more than all other properties.
    const value = name === 'start_datetime' ? (properties.datetime ?? undefined) : valueIn(view);
    if (value !== undefined) properties[name] = value;
  }
  // The schema requires both or none.
  if (!('start_datetime' in properties) || !('end_datetime' in properties)) {
    delete properties.start_datetime;
    delete properties.end_datetime;
  }
  properties.datetime ??= properties.created ?? formatDateUs(row.receivedAtUs);
  const textOf = (name: string) => textOrNull(view.attribute(name));
  const instrument = textOf('instrumentShortName');
  const channels = textOf('polarisationChannels')?.split('&');
  const [name, version] = [textOf('processorName'), textOf('processorVersion')];
  return {
    ...properties,
    ...(instrument && { instruments: [instrument.toLowerCase()] }),
    // Sentinel-1 has a C-band radar (Sentinel-1 product definition).
    ...(isRadarProduct(view) && { 'sar:frequency_band': 'C', 'sar:polarizations': channels }),
    ...(name && version && { 'processing:software': { [name]: version } }),
  };
}

function linksOf(id: string, view: ProductView, options: ItemOptions): StacLink[] {
  const { base, catalogueUrl } = options;
  const collection = collectionId(collectionOfView(view));
  const there = options.ids === 'catalogue' ? idsInCatalogue(view) : null;
  const record = `/odata/v1/Products(${encodeURIComponent(id)})`;
  const json = { type: 'application/json' };
  const root = `${base}/stac`;
  const parent = `${root}/collections/${encodeURIComponent(collection)}`;
  const query = `productId=${encodeURIComponent(id)}`;
  const self = `${parent}/items/${encodeURIComponent(id)}`;
  return [
    { rel: 'self', href: self, type: 'application/geo+json' },
    { rel: 'root', href: root, ...json },
    { rel: 'parent', href: parent, ...json },
    ...(there?.collection
      ? linksThere(there.id, `${catalogueStacUrl}/collections/${there.collection}`)
      : [{ rel: 'collection', href: parent, ...json }]),
    { rel: 'via', href: `${catalogueUrl}${record}`, ...json, title: 'Catalogue record' },
    { rel: 'alternate', href: `${base}${record}`, ...json, title: 'Received record' },
    {
      rel: 'version-history',
      href: `${base}/api/notifications?${query}`,
      ...json,
      title: 'Notifications about the product',
    },
    {
      rel: 'describedby',
      href: `${base}/api/summaries?${query}`,
      ...json,
      title: 'Summaries of the product',
    },
  ];
}

/** Links to the item in the catalogue's own STAC API. */
function linksThere(id: string, collection: string): StacLink[] {
  const item = `${collection}/items/${encodeURIComponent(id)}`;
  return [
    { rel: 'collection', href: collection, type: 'application/json' },
    { rel: 'canonical', href: item, type: 'application/geo+json', title: 'Item of the catalogue' },
  ];
}

/** Download and S3 object of the product, and its quicklook; each needs credentials of the catalogue. */
function assetsOf(product: ItemSource, { catalogueUrl }: ItemOptions): StacItem['assets'] {
  const { record, row } = product;
  const { downloadUrl, s3Path } = toProductLinks(row, catalogueUrl);
  const quicklook = Array.isArray(record.Assets)
    ? record.Assets.find((asset) => partOf(asset, 'Type') === 'QUICKLOOK')
    : undefined;
  const thumbnail = textOrNull(partOf(quicklook, 'DownloadLink'));
  const data = { type: 'application/octet-stream', roles: ['data'] };
  // The format is not in the record. Clients show an image of any format, but only with a type.
  const image = { type: 'image/jpeg', roles: ['thumbnail'] };
  return {
    ...(downloadUrl && { download: { href: downloadUrl, title: 'Product, by HTTPS', ...data } }),
    ...(s3Path && {
      s3: { href: `s3://${s3Path.replace(/^\/+/, '')}`, title: 'Product, by S3', ...data },
    }),
    ...(thumbnail && { quicklook: { href: thumbnail, title: 'Quicklook', ...image } }),
  };
}
