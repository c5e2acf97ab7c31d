/** A name in no known form, as it may be shown to people. */

const lengthMax = 60;

/**
 * At most 60 signs of the name, all printable ASCII; others become `\ufffd`, and white space is folded. Null
 * when nothing is left. It may still say anything: it is for people, in quotation marks, never for a model.
 */
export function foreignName(name: string): string | null {
  // Cut first, so that a very long text costs nothing.
  const [start, cut] = [[...name.slice(0, 2 * lengthMax)], name.length > 2 * lengthMax];
  const clean = start
    .join('')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[^\x20-\x7e]/gu, '\ufffd')
    .replaceAll('"', "'")
    .trim();
  if (clean === '') return null;
  return clean.length > lengthMax || cut ? `${clean.slice(0, lengthMax - 1)}…` : clean;
}
