/** Findings of a filter check: errors and warnings with their position in the text. */
import { cellWidth, printable } from '../core/terms/text.ts';

/** A range of a text, in UTF-16 units; `end` is exclusive. At the end of the text, both are its length. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A filter with an error cannot be used; one with warnings can. */
export interface FilterFinding extends Span {
  readonly severity: 'error' | 'warning';
  /** A fixed word for programs, such as `unknown-field`. */
  readonly code: string;
  /** Message of one or two sentences. Contains parts of the filter: escape control characters before printing. */
  readonly message: string;
  /** The syntax that is valid at this position. */
  readonly expected?: string;
  /** Suggested correction. */
  readonly hint?: string;
}

/** A finding without its position. */
export type Fault = Pick<FilterFinding, 'code' | 'message'> & {
  readonly expected?: string | undefined;
  readonly hint?: string | null | undefined;
};

export function findingAt(
  severity: FilterFinding['severity'],
  { start, end }: Span,
  { code, message, expected, hint }: Fault,
): FilterFinding {
  const advice = { ...(expected ? { expected } : {}), ...(hint ? { hint } : {}) };
  return { severity, code, message, ...advice, start, end };
}

/** Quotes a part of the filter for a message; truncates a long one. */
export function quoted(raw: string): string {
  return `\`${raw.length > 60 ? `${raw.slice(0, 57)}…` : raw}\``;
}

/** Syntax error: the first position that cannot be parsed, and the reason. */
export class FilterSyntaxError extends Error {
  readonly finding: FilterFinding;

  constructor(span: Span, fault: Fault) {
    super(fault.message);
    this.name = 'FilterSyntaxError';
    this.finding = findingAt('error', span, fault);
  }
}

/** Maximum length of the excerpt of a filter, in characters. */
const excerptMax = 70;

const ellipsis = '…';

/**
 * Formats a finding in several lines: severity and message, an excerpt of the filter, carets under the
 * position, the expected syntax, the hint. Contains only printable characters.
 */
export function showFinding(text: string, finding: FilterFinding): string {
  const { severity, message, expected, hint } = finding;
  const lines = [`${severity}: ${message}`, ...showExcerpt(text, finding)];
  if (expected !== undefined) lines.push(`expected: ${expected}`);
  if (hint !== undefined) lines.push(`hint: ${hint}`);
  return lines.map((line) => printable(line.toWellFormed())).join('\n');
}

/** Converts a finding to JSON. Every field is always present. */
export function toFindingJson(finding: FilterFinding) {
  const { severity, code, message, expected, hint, start, end } = finding;
  return { severity, code, message, expected: expected ?? null, hint: hint ?? null, start, end };
}

/** Returns the part of a filter around a finding, in three parts of one line. Contains only printable characters. */
export function excerptOf(text: string, { start, end }: Span) {
  const from = excerptStart(text, start);
  const to = Math.min(text.length, from + excerptMax);
  const last = Math.max(start, Math.min(end, to));
  return {
    before: `${from > 0 ? ellipsis : ''}${oneLine(text.slice(from, start))}`,
    marked: oneLine(text.slice(start, last)),
    after: `${oneLine(text.slice(last, to))}${to < text.length ? ellipsis : ''}`,
  };
}

/** Returns the excerpt in one line, and the line with the carets. */
function showExcerpt(text: string, finding: FilterFinding): string[] {
  const { before, marked, after } = excerptOf(text, finding);
  const carets = '^'.repeat(Math.max(1, cellWidth(marked)));
  return [`  ${before}${marked}${after}`, `  ${' '.repeat(cellWidth(before))}${carets}`];
}

/** Centres the excerpt on the position, unless the complete filter fits. */
function excerptStart(text: string, start: number): number {
  if (text.length <= excerptMax) return 0;
  const from = Math.max(0, Math.min(start - excerptMax / 2, text.length - excerptMax));
  // Does not split a surrogate pair.
  return /[\udc00-\udfff]/.test(text[from] ?? '') ? from + 1 : from;
}

/** Replaces line breaks and tabs by spaces, so that the carets are aligned. */
function oneLine(text: string): string {
  return printable(text.toWellFormed().replaceAll(/[\t\r\n]/g, ' '));
}
