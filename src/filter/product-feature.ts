/** A product as a GeoJSON feature (RFC 7946), for the command line and the private listener alike. */
import { toProductJson, toProductLinks } from '../domain/json-rows.ts';
import type { FoundProduct } from '../domain/products.ts';
import { toGeoJson } from './geometry/geojson.ts';
import { productView } from './product-view.ts';

/** RFC 7946, 3.2; a product without a footprint has the geometry null. The product must have its record. */
export function toFeature(product: FoundProduct, catalogueUrl: string) {
  const { row, record } = product;
  const geometry = productView(record).geometry();
  return {
    type: 'Feature' as const,
    id: row.productId,
    geometry: geometry === null ? null : toGeoJson(geometry),
    properties: { ...toProductJson(row), ...toProductLinks(product, catalogueUrl) },
  };
}
