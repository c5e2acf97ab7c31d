/** A limit of the budget that is spent, in words. */
import { budgetLimits, type SummaryBudget } from '../../domain/summaries.ts';

/**
 * `the budget of 60 requests an hour (EARSHOT_SUMMARY_REQUESTS_PER_HOUR) is spent until 2026-11-20 23:48 UTC`,
 * and whether it frees by waiting.
 */
export function spentWords(
  limit: keyof SummaryBudget,
  budget: SummaryBudget,
  until: string,
): { words: string; frees: boolean } {
  const { of, variable } = budgetLimits[limit];
  const allowed = budget[limit];
  if (allowed === 0) return { words: `nothing is ever sent while ${variable} is 0`, frees: false };
  const which = `${grouped(allowed)} ${of} (${variable})`;
  return { words: `the budget of ${which} is spent until ${until}`, frees: true };
}

/** `500,000`. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
