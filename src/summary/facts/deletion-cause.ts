/** Why a product was deleted, in words. */

/** The causes of the specification (Subscriptions), and one seen in live answers (facts, filters). */
const causes: Readonly<Record<string, string>> = {
  'duplicated product': 'because it was a duplicate',
  'missing checksum': 'because its checksum was missing',
  'corrupted product': 'because it was corrupted',
  'obsolete product': 'because it was obsolete',
  'obsolete product or other': 'because it was obsolete or for another reason',
  'reprocessed product': 'because it was reprocessed',
  other: 'for a reason that the catalogue does not name',
};

/** `because it was a duplicate`; null for a text that is no known cause. */
export function deletionCauseWords(cause: string | null): string | null {
  const known = cause?.trim().toLowerCase() ?? '';
  return Object.hasOwn(causes, known) ? (causes[known] ?? null) : null;
}
