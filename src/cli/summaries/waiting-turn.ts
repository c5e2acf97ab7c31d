/** Of summaries that are due and wait behind others: whether the budget is what all of them wait for. */
import type { SummaryBudget, SummaryReader, SummaryRow } from '../../domain/summaries.ts';
import { minuteOf } from './subject-name.ts';

/** Whether it could be written now, but for those before it. */
export function waitsForItsTurn(
  { state, nextTryAtUs }: Pick<SummaryRow, 'state' | 'nextTryAtUs'>,
  nowUs: number,
): boolean {
  return state === 'waiting' && nextTryAtUs !== null && nextTryAtUs <= nowUs;
}

/** Which limit is spent and until when, as the summary that met it says; empty where none is. */
export async function queueNote(
  summaries: Pick<SummaryReader, 'find' | 'spending'>,
  budget: SummaryBudget,
  nowUs: number,
): Promise<string> {
  if (!(await isSpent(summaries, budget, nowUs))) return '';
  for await (const { error, attempts, nextTryAtUs } of summaries.find({ state: 'waiting' })) {
    // What waits for the budget has had no failure of its own.
    if (error === null || attempts > 0 || nextTryAtUs === null || nextTryAtUs <= nowUs) continue;
    return `What waits for its turn waits for the same as another one: ${error} Next try: ${minuteOf(nextTryAtUs)} UTC.\n`;
  }
  return '';
}

/** True where another request, of as many tokens as the others, would exceed a limit. */
async function isSpent(
  summaries: Pick<SummaryReader, 'spending'>,
  { requestsPerHour, requestsPerDay, tokensPerDay }: SummaryBudget,
  nowUs: number,
): Promise<boolean> {
  const { requestsLastHour, requestsLastDay, tokensLastDay } = await summaries.spending(nowUs);
  if (requestsLastHour >= requestsPerHour || requestsLastDay >= requestsPerDay) return true;
  const nextTokens = Math.max(tokensLastDay / Math.max(requestsLastDay, 1), 1);
  return tokensLastDay + nextTokens > tokensPerDay;
}
