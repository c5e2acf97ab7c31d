/** What a digest counts: a notification with what is known of its product. */
import type { FoundProduct } from '../../domain/products.ts';
import type { Place } from '../places/place.ts';

export interface DigestEvent {
  /** `created`, `modified`, `deleted`, or what else the catalogue may say. */
  event: string;
  /** Null where only the name is known. */
  product: FoundProduct | null;
  productId: string;
  productName: string | null;
  receivedAtUs: number;
  /** Null without a footprint. */
  place: Place | null;
}
