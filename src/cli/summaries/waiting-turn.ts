/** Of summaries that are due and wait behind others: whether the budget is what all of them wait for. */
import type { SummaryReader, SummaryRow } from '../../domain/summaries.ts';
import { limitIn } from './budget-limits.ts';
import { minuteOf } from './subject-name.ts';

/** Whether it could be written now, but for those before it. */
export function waitsForItsTurn(
  { state, nextTryAtUs }: Pick<SummaryRow, 'state' | 'nextTryAtUs'>,
  nowUs: number,
): boolean {
  return state === 'waiting' && nextTryAtUs !== null && nextTryAtUs <= nowUs;
}

/** Which limit is spent and until when, as the summary that met it says; empty where none has. */
export async function queueNote(
  summaries: Pick<SummaryReader, 'find'>,
  nowUs: number,
): Promise<string> {
  for await (const { error, nextTryAtUs } of summaries.find({ state: 'waiting' })) {
    if (error === null || limitIn(error) === null) continue;
    if (nextTryAtUs === null || nextTryAtUs <= nowUs) continue;
    return `What waits for its turn waits for the same as another one: ${error} Next try: ${minuteOf(nextTryAtUs)} UTC.\n`;
  }
  return '';
}
