/** Where a product lies. */
import type { FoundProduct } from '../../domain/products.ts';
import { productView } from '../../filter/product-view.ts';
import type { Place } from '../places/place.ts';
import type { Places } from '../places/places.ts';

/** Far above the most corners that are looked at; to read what a notification can hold takes 50 ms. */
const textMax = 100_000;

/** Null without a footprint, or with one that cannot be read, or of too many corners. */
export function placeOf({ record }: FoundProduct, places: Places): Place | null {
  const text = record.Footprint;
  if (typeof text === 'string' && text.length > textMax) return null;
  const geometry = productView(record).geometry();
  return geometry === null ? null : places.placeOf(geometry);
}
