/** Warns about dates and numbers that are not held as they are written. */

import { formatDateUs } from '../../domain/dates.ts';
import type { Literal } from '../../domain/filter-tree.ts';
import { literalDate } from '../attribute-value.ts';
import { named } from '../hints/unexpected.ts';
import { showNumber } from '../syntax/show-literal.ts';
import type { Findings } from './findings.ts';

/** For a date, in quotes or not. */
export function warnInexactDate(findings: Findings, literal: Literal): void {
  const span = findings.spanOfObject(literal);
  const us = literalDate(literal);
  // The first and the last date that a literal can be.
  if (us === Number.MAX_SAFE_INTEGER || us === Number.MIN_SAFE_INTEGER) {
    const [where, limit] = us > 0 ? ['after', 'last'] : ['before', 'first'];
    const message = `Dates ${where} ${formatDateUs(us)} count as that one here: it is the ${limit} that can be held in microseconds.`;
    const hint = 'No product is that far away: leave the condition out, or write a nearer date.';
    findings.warn(span, { code: 'far-date', message, hint });
    return;
  }
  // Records have three fractional digits until 2024, six since (facts, catalogue 2).
  if (!/[.,]\d{7,}/.test(findings.written(span))) return;
  const message =
    'Dates have six fractional digits in the catalogue; those beyond are cut off here.';
  findings.warn(span, { code: 'fine-date', message, hint: 'Write at most six.' });
}

/** For a whole number that is larger than numbers are exact. */
export function warnInexactNumber(findings: Findings, literal: Literal): void {
  if (literal.type !== 'number' || Number.isSafeInteger(literal.value)) return;
  const span = findings.spanOfObject(literal);
  const written = findings.written(span);
  if (!/^[+-]?\d+$/.test(written)) return;
  const message = `${named(written)} counts as ${showNumber(literal.value)} here: beyond ${Number.MAX_SAFE_INTEGER} whole numbers are not exact.`;
  findings.warn(span, { code: 'large-number', message });
}
