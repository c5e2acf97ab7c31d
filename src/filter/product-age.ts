/** The age of a product at its publication: a reprocessed scene is old. */
import type { ProductView } from './product-view.ts';

/** Returns true if a product was published longer than this after the end of its sensing. Unknown times are not old. */
export function isTooOld(view: Pick<ProductView, 'dateUs'>, maxAgeUs: number | null): boolean {
  const sensedUs = view.dateUs('ContentDate/End') ?? view.dateUs('ContentDate/Start');
  const publishedUs = view.dateUs('PublicationDate');
  if (maxAgeUs === null || sensedUs === null || publishedUs === null) return false;
  return publishedUs - sensedUs > maxAgeUs;
}
