/** Warns about dates that are finer than the catalogue keeps them. */

import type { Span } from '../finding.ts';
import type { Findings } from './findings.ts';

/** Records have three fractional digits until 2024, six since (facts, catalogue 2). */
export function warnFineDate(findings: Findings, span: Span): void {
  const written = findings.written(span);
  if (!/[.,]\d{7,}/.test(written)) return;
  const message =
    'Dates have six fractional digits in the catalogue; those beyond are cut off here.';
  findings.warn(span, { code: 'fine-date', message, hint: 'Write at most six.' });
}
