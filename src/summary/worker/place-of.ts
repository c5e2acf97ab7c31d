/** Where a product lies. */
import type { FoundProduct } from '../../domain/products.ts';
import { productView } from '../../filter/product-view.ts';
import type { Place } from '../places/place.ts';
import type { Places } from '../places/places.ts';

/** Null without a footprint, or with one that cannot be read. */
export function placeOf({ record }: FoundProduct, places: Places): Place | null {
  const geometry = productView(record).geometry();
  return geometry === null ? null : places.placeOf(geometry);
}
