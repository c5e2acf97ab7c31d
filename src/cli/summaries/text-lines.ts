/** A summary as people read it: what it is about, the text below, and what is wrong with it. */
import { printable } from '../../domain/printable.ts';
import type { SummaryRow } from '../../domain/summaries.ts';
import type { painter } from '../colour.ts';
import type { Output } from '../io.ts';
import { wrapText } from '../wrap-text.ts';
import { subjectName } from './subject-name.ts';

/** Ends with an empty line; fits the output. `mark` stands behind the name, painted already; `reason` below the text. */
export function textLines(
  row: SummaryRow,
  { mark, reason }: { mark: string; reason: string | null },
  paint: ReturnType<typeof painter>,
  output: Output,
): string {
  const doubts = row.text?.doubts ?? [];
  // Broken before it is painted: a line is as wide as what is seen of it.
  const below = (text: string) => wrapText(printable(text), '  ', output);
  const doubtLines = doubts.length === 0 ? [] : below(`Not in the facts: ${doubts.join(', ')}`);
  const lines = [
    `${paint('bold', subjectName(row))}  ${mark}`,
    ...(row.text === null ? [] : below(row.text.text)),
    ...doubtLines.map((line) => paint('yellow', line)),
    ...(reason === null ? [] : below(reason)).map((line) => paint('dim', line)),
  ];
  return `${lines.join('\n')}\n\n`;
}
