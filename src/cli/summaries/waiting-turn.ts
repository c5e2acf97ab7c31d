/** Of summaries that are due and wait behind others: whether the budget is what all of them wait for. */
import { budgetLimits, type SummaryReader, type SummaryRow } from '../../domain/summaries.ts';
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
    if (error === null || !namesLimit(error)) continue;
    if (nextTryAtUs === null || nextTryAtUs <= nowUs) continue;
    return `What waits for its turn waits for the same as another one: ${error} Next try: ${minuteOf(nextTryAtUs)} UTC.\n`;
  }
  return '';
}

/** A row keeps why it waits in words alone; the variable in them tells that it is the budget. */
function namesLimit(reason: string): boolean {
  return Object.values(budgetLimits).some(({ variable }) => reason.includes(variable));
}
