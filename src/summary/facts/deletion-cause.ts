/** Why products were deleted, in words. */

interface CauseWords {
  /** Behind `deleted`. */
  why: string;
  /** What such products were; null where that says no more than an unknown cause. */
  state: string | null;
}

/** The causes of the specification (Subscriptions), and one seen in live answers (facts, filters). */
const causes: ReadonlyMap<string, CauseWords> = new Map([
  ['duplicated product', { why: 'because it was a duplicate', state: 'duplicated' }],
  ['missing checksum', { why: 'because its checksum was missing', state: 'without a checksum' }],
  ['corrupted product', { why: 'because it was corrupted', state: 'corrupted' }],
  ['obsolete product', { why: 'because it was obsolete', state: 'obsolete' }],
  [
    'obsolete product or other',
    { why: 'because it was obsolete or for another reason', state: null },
  ],
  ['reprocessed product', { why: 'because it was reprocessed', state: 'reprocessed' }],
  ['other', { why: 'for a reason that the catalogue does not name', state: null }],
]);

function wordsOf(cause: string | null): CauseWords | null {
  return causes.get(cause?.trim().toLowerCase() ?? '') ?? null;
}

/** Of one product: `because it was a duplicate`; null for a text that is no known cause. */
export function deletionCauseWords(cause: string | null): string | null {
  return wordsOf(cause)?.why ?? null;
}

/** Of many products: `duplicated`; null for a text that is no known cause, and for one that says no more. */
export function deletedStateWords(cause: string | null): string | null {
  return wordsOf(cause)?.state ?? null;
}
