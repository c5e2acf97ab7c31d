/** How long a product's news took to arrive. */
import { delayWords } from './phrases.ts';
import type { ProductFacts } from './product-facts.ts';

/** What comes later than this was not told of when it was published, but when something else happened to it. */
const newsUs = 30 * 86_400 * 1_000_000;

/** From publication to receipt, in words; null where the receipt does not follow from the publication. */
export function receiptDelay({ publicationUs, receivedUs }: ProductFacts): string | null {
  if (publicationUs === null || receivedUs === null || receivedUs - publicationUs > newsUs) {
    return null;
  }
  return delayWords(publicationUs, receivedUs);
}
