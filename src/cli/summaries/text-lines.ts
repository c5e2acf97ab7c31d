/** A summary as people read it: what it is about, the text below, and what is wrong with it. */
import { printable } from '../../domain/printable.ts';
import type { SummaryRow } from '../../domain/summaries.ts';
import type { painter } from '../colour.ts';
import { subjectName } from './subject-name.ts';

/** Ends with an empty line. `mark` stands behind the name, painted already; `reason` below the text. */
export function textLines(
  row: SummaryRow,
  { mark, reason }: { mark: string; reason: string | null },
  paint: ReturnType<typeof painter>,
): string {
  const doubts = row.text?.doubts ?? [];
  const below = [
    ...(row.text === null ? [] : [printable(row.text.text)]),
    ...(doubts.length === 0
      ? []
      : [paint('yellow', `Not in the facts: ${printable(doubts.join(', '))}`)]),
    ...(reason === null ? [] : [paint('dim', printable(reason))]),
  ];
  const lines = [
    `${paint('bold', subjectName(row))}  ${mark}`,
    ...below.map((line) => `  ${line}`),
  ];
  return `${lines.join('\n')}\n\n`;
}
