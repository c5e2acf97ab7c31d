/** The text for coverage of which nothing is known yet. */
import type { CoverageSummary } from '../../domain/coverage-report.ts';
import { momentText } from '../../watch/plain-figures.ts';

interface When {
  /** Why hours are not compared automatically; null when they are. */
  comparisonOff: string | null;
  nowUs: number;
}

/** A command may have compared a part of the hour that has not ended, which does not count yet. */
const noHour = 'no full hour was compared yet';

/** States when the first whole hour is compared, or why none is. Begins in lower case, ends without a full stop. */
export function notComparedText(summary: Pick<CoverageSummary, 'nextDueAtUs'>, when: When): string {
  const { nextDueAtUs } = summary;
  const off = when.comparisonOff?.replace(/\.$/, '') ?? null;
  if (nextDueAtUs === null) return 'no hour to compare';
  if (isDue(summary, when)) {
    if (off !== null) return `not compared: ${off}`;
    return `${noHour}; a running receiver compares within 5 min`;
  }
  const at = momentText(nextDueAtUs);
  return off === null
    ? `${noHour}; the first is compared at ${at}`
    : `${noHour}; the first is due at ${at}, but not compared automatically: ${off}`;
}

/** True when there is an hour that a command would compare and count. */
export function isDue(
  { nextDueAtUs }: Pick<CoverageSummary, 'nextDueAtUs'>,
  { nowUs }: Pick<When, 'nowUs'>,
): boolean {
  return nextDueAtUs !== null && nextDueAtUs <= nowUs;
}
