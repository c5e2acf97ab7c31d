/** The text for coverage of which nothing is known yet. */
import type { CoverageSummary } from '../../domain/coverage-report.ts';
import { momentText } from '../../watch/plain-figures.ts';

interface When {
  /** Why hours are not compared automatically; null when they are. */
  comparisonOff: string | null;
  nowUs: number;
}

/** States when the first comparison is, or why there is none. Begins in lower case, ends without a full stop. */
export function notComparedText(summary: Pick<CoverageSummary, 'nextDueAtUs'>, when: When): string {
  const { nextDueAtUs } = summary;
  const off = when.comparisonOff?.replace(/\.$/, '') ?? null;
  if (nextDueAtUs === null) return 'no hour to compare';
  if (isDue(summary, when)) {
    if (off !== null) return `not compared: ${off}`;
    return 'not compared yet; a running receiver compares within 5 min';
  }
  const first = `not compared yet; the first comparison is at ${momentText(nextDueAtUs)}`;
  return off === null ? first : `${first}, but not automatically: ${off}`;
}

/** True when there is an hour that a command would compare and count. */
export function isDue(
  { nextDueAtUs }: Pick<CoverageSummary, 'nextDueAtUs'>,
  { nowUs }: Pick<When, 'nowUs'>,
): boolean {
  return nextDueAtUs !== null && nextDueAtUs <= nowUs;
}
