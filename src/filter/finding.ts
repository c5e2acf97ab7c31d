/** What is wrong with a filter, or a trap in it, and the place in its text. */
import { cellWidth, printable } from '../domain/text.ts';

/** A part of a text in UTF-16 units; `end` is excluded. At the end of the text both are its length. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** What can be found, closed so that programs may act on it. */
type FindingCode =
  // the text cannot be read
  | 'too-long'
  | 'too-deep'
  | 'too-many-conditions'
  | 'unexpected'
  | 'missing-parenthesis'
  | 'missing-condition'
  | 'missing-joint'
  | 'missing-operator'
  | 'missing-value'
  | 'unclosed-text'
  | 'unquoted-text'
  | 'wrong-quotes'
  | 'wrong-operator'
  | 'wrong-character'
  | 'invalid-number'
  | 'invalid-date'
  | 'invalid-wkt'
  | 'invalid-attribute-condition'
  | 'unknown-function'
  | 'retired-form'
  | 'not-a-filter'
  // the text can be read, but has no meaning
  | 'unknown-field'
  | 'undocumented-field'
  | 'field-of-other-entity'
  | 'not-comparable'
  | 'wrong-type'
  | 'unknown-reference-system'
  | 'invalid-geometry'
  | 'too-intricate'
  // accepted, but a trap
  | 'empty'
  | 'capitals'
  | 'precedence'
  | 'undocumented-operator'
  | 'undocumented-form'
  | 'undocumented-attribute-kind'
  | 'unknown-attribute'
  | 'attribute-kind'
  | 'attribute-cast'
  | 'attribute-value'
  | 'unknown-collection'
  | 'name-without-collection'
  | 'fine-date'
  | 'far-date'
  | 'large-number'
  | 'odd-id'
  | 'odd-order'
  | 'wide-edge';

/** A text with an error is no filter; one with warnings is. */
export interface FilterFinding extends Span {
  readonly severity: 'error' | 'warning';
  readonly code: FindingCode;
  /** What is wrong, in one or two sentences. Holds parts of the filter: print with care. */
  readonly message: string;
  /** What could stand at the place. */
  readonly expected?: string;
  /** What to write instead. */
  readonly hint?: string;
}

/** Faults that the catalogue is documented or recorded to refuse (facts, filters 3). */
const knownRefusals: ReadonlySet<FindingCode> = new Set([
  'unknown-field',
  'field-of-other-entity',
  'unknown-reference-system',
  'invalid-geometry',
  'invalid-wkt',
  'missing-parenthesis',
  'unquoted-text',
  'retired-form',
]);

/** True for an error that the catalogue is known to refuse; of others its answer is not known. */
export function isKnownRefusal({ severity, code }: FilterFinding): boolean {
  return severity === 'error' && knownRefusals.has(code);
}

/** What is wrong, without its place. */
export type Fault = Pick<FilterFinding, 'code' | 'message'> & {
  readonly expected?: string | undefined;
  readonly hint?: string | null | undefined;
};

export function findingAt(
  severity: FilterFinding['severity'],
  { start, end }: Span,
  { code, message, expected, hint }: Fault,
): FilterFinding {
  const whatToWrite = { ...(expected ? { expected } : {}), ...(hint ? { hint } : {}) };
  return { severity, code, message, ...whatToWrite, start, end };
}

/** A part of the filter for a message, cut when it is long. */
export function named(raw: string): string {
  return `\`${raw.length > 60 ? `${raw.slice(0, 57)}…` : raw}\``;
}

/** The text is no filter: the first place where it cannot be read, and why. */
export class FilterSyntaxError extends Error {
  readonly finding: FilterFinding;

  constructor(span: Span, fault: Fault) {
    super(fault.message);
    this.name = 'FilterSyntaxError';
    this.finding = findingAt('error', span, fault);
  }
}

/** How much of a long filter is shown, in characters. */
const shownMax = 70;

const cut = '…';

/**
 * Several lines: severity and message, the part of the filter around the place, carets under it, what
 * was expected, what to write. Holds printable characters only.
 */
export function showFinding(text: string, finding: FilterFinding): string {
  const { severity, message, expected, hint } = finding;
  const lines = [`${severity}: ${message}`, ...showPlace(text, finding)];
  if (expected !== undefined) lines.push(`expected: ${expected}`);
  if (hint !== undefined) lines.push(`hint: ${hint}`);
  return lines.map((line) => printable(line.toWellFormed())).join('\n');
}

/** The filter in one line, and the carets under the place. */
function showPlace(text: string, { start, end }: FilterFinding): string[] {
  const from = clipFrom(text, start);
  const to = Math.min(text.length, from + shownMax);
  const before = from > 0 ? cut : '';
  const after = to < text.length ? cut : '';
  const shown = `${before}${oneLine(text.slice(from, to))}${after}`;
  const widthOf = (first: number, last: number) => cellWidth(oneLine(text.slice(first, last)));
  const indent = ' '.repeat(before.length + widthOf(from, start));
  const carets = '^'.repeat(Math.max(1, widthOf(start, Math.min(end, to))));
  return [`  ${shown}`, `  ${indent}${carets}`];
}

/** Where the part that is shown begins: some way before the place, unless all of it fits. */
function clipFrom(text: string, start: number): number {
  if (text.length <= shownMax) return 0;
  const from = Math.max(0, Math.min(start - shownMax / 2, text.length - shownMax));
  // Not in the middle of a character.
  return /[\udc00-\udfff]/.test(text[from] ?? '') ? from + 1 : from;
}

/** Printable, with line breaks and tabs as blanks, so that the carets stand under their place. */
function oneLine(text: string): string {
  return printable(text.toWellFormed().replaceAll(/[\t\r\n]/g, ' '));
}
