/** Finds summaries by id, and formats them. */

import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import { type SummaryReader, type SummaryRow, subjectName } from '../../domain/summaries.ts';
import { printable } from '../../domain/text.ts';
import type { Store } from '../../store/store.ts';
import type { Io, Output } from '../io.ts';
import { type painter, wrapText } from '../output.ts';

/** Returns the summary with this id; null for none. */
export async function rowById(
  id: number,
  summaries: Pick<SummaryReader, 'find'>,
): Promise<SummaryRow | null> {
  for await (const row of summaries.find({ beforeId: id + 1, limit: 1 })) {
    return row.id === id ? row : null;
  }
  return null;
}

/** Formats a summary for the width of the output. `mark` (already painted) follows the name, `reason` the text. */
export function textLines(
  row: SummaryRow,
  { mark, reason }: { mark: string; reason: string | null },
  paint: ReturnType<typeof painter>,
  output: Output,
): string {
  const doubts = row.text?.doubts ?? [];
  // Wrapped before it is painted: escape codes have no width.
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

/** Returns a message with the known names if nothing was ever received for the name; otherwise null. */
export async function neverNotified(
  subscription: string | undefined,
  { find, administration }: Pick<Store, 'find' | 'administration'>,
  { workingDir }: Pick<Io, 'workingDir'>,
): Promise<string | null> {
  if (subscription === undefined) return null;
  for await (const _ of find({ subscription, limit: 1 })) return null;
  const registered = await administration.registrations();
  const inFile = (await loadSubscriptionsFile(workingDir)) ?? [];
  const names = [...new Set([...registered, ...inFile].map(({ name }) => name))].toSorted();
  const known = names.length === 0 ? 'None is registered' : `Known names: ${names.join(', ')}`;
  return `No notification was ever received for a subscription "${subscription}". ${known}.`;
}
