/** The limits of the budget in words, and which of them keeps texts waiting. */
import type { SummaryBudget } from '../../domain/summaries.ts';

const limits: Record<keyof SummaryBudget, { of: string; variable: string }> = {
  requestsPerHour: { of: 'requests an hour', variable: 'EARSHOT_SUMMARY_REQUESTS_PER_HOUR' },
  requestsPerDay: { of: 'requests a day', variable: 'EARSHOT_SUMMARY_REQUESTS_PER_DAY' },
  tokensPerDay: { of: 'tokens a day', variable: 'EARSHOT_SUMMARY_TOKENS_PER_DAY' },
};

/** The limit whose variable a reason names; null where it names none. */
export function limitIn(reason: string): keyof SummaryBudget | null {
  const names = Object.keys(limits) as (keyof SummaryBudget)[];
  return names.find((name) => reason.includes(limits[name].variable)) ?? null;
}

/**
 * `the budget of 60 requests an hour (EARSHOT_SUMMARY_REQUESTS_PER_HOUR) is spent until 2026-11-20 23:48 UTC`,
 * and whether it frees by waiting.
 */
export function spentWords(
  reason: string,
  budget: SummaryBudget,
  until: string,
): { words: string; frees: boolean } {
  const limit = limitIn(reason);
  if (limit === null) return { words: `the budget is spent until ${until}`, frees: true };
  const { of, variable } = limits[limit];
  const allowed = budget[limit];
  if (allowed === 0) return { words: `nothing is ever sent while ${variable} is 0`, frees: false };
  const which = `${grouped(allowed)} ${of} (${variable})`;
  return { words: `the budget of ${which} is spent until ${until}`, frees: true };
}

/** `500,000`. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
