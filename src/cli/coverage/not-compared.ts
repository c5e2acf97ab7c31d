/** The text for coverage of which nothing is known yet. */
import type { CoverageSummary } from '../../domain/coverage-report.ts';
import { momentText } from '../../watch/plain-figures.ts';

/** States when the first comparison is, or why there is none. Begins in lower case, ends without a full stop. */
export function notComparedText(
  { nextDueAtUs }: Pick<CoverageSummary, 'nextDueAtUs'>,
  { comparisonOff, nowUs }: { comparisonOff: string | null; nowUs: number },
): string {
  if (nextDueAtUs === null) return 'no hour to compare';
  if (comparisonOff !== null) return `not compared: ${comparisonOff.replace(/\.$/, '')}`;
  if (nextDueAtUs <= nowUs) return 'not compared yet; a running receiver compares within 5 min';
  return `not compared yet; the first comparison is at ${momentText(nextDueAtUs)}`;
}
