/** Notes below the table of sinks: faults, reasons for waiting, dead letters, removed sinks. */
import { subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { printable } from '../../domain/printable.ts';
import type { SinkReader } from '../../domain/sinks.ts';
import { asCalled } from '../called-as.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { wrapText } from '../wrap-text.ts';
import { writeOut } from '../write-out.ts';
import { counted, whole } from './counted.ts';
import type { SinkRow } from './sink-row.ts';

/** `hasFile`: whether there is an `earshot.config.ts`; without it, every sink looks as if it were gone. */
export async function printSinkNotes(
  io: Io,
  rows: readonly SinkRow[],
  { sinks, hasFile }: { sinks: Pick<SinkReader, 'items'>; hasFile: boolean },
): Promise<void> {
  const paint = painter(io, io.stdout);
  for (const row of rows) {
    if (row.target === 'faulty') await printFaults(io, row);
    const left = hasFile ? whatIsLeft(row) : null;
    for (const note of [await whyItWaits(row, sinks), await whatIsDead(row, sinks), left]) {
      if (note === null) continue;
      const lines = wrapText(asCalled(printable(note), io), '  ', io.stdout);
      const shown = lines.map((line) => paint('yellow', line));
      await writeOut(io.stdout, `\n${shown.join('\n')}\n`);
    }
  }
}

/** A fault of a filter shows its place, in lines that are not to be broken. */
async function printFaults(io: Io, { sink, problems }: SinkRow): Promise<void> {
  const paint = painter(io, io.stdout);
  const what = `${sink} has faults and is not started. Fix it in ${subscriptionsFileName}:`;
  const faults = problems.flatMap((problem) => {
    const [first = '', ...places] = problem.split('\n').map(printable);
    return [...wrapText(first, '    ', io.stdout), ...places.map((line) => `    ${line}`)];
  });
  const lines = [...wrapText(what, '  ', io.stdout), ...faults];
  await writeOut(io.stdout, `\n${lines.map((line) => paint('yellow', line)).join('\n')}\n`);
}

/** Null where nothing that waits has failed: what was refused for good is told apart. */
async function whyItWaits(
  { sink, waiting, error }: SinkRow,
  { items }: Pick<SinkReader, 'items'>,
): Promise<string | null> {
  let reason: string | null = null;
  let tried = 0;
  for await (const item of items({ sink, state: 'waiting' })) {
    if (item.error === null) continue;
    tried += 1;
    // The last failure of all, unless it is that of a dead letter: then that of the newest item.
    if (reason === null || item.error === error) reason = item.error;
  }
  if (reason === null) return null;
  return `${sink} does not take what waits: ${reason} (tried: ${whole(tried)} of ${whole(waiting)}).`;
}

async function whatIsDead(
  { sink, dead }: SinkRow,
  { items }: Pick<SinkReader, 'items'>,
): Promise<string | null> {
  for await (const { error } of items({ sink, state: 'dead', limit: 1 })) {
    const letters = counted(dead, 'dead letter');
    return `${sink} has ${letters}; the last: ${error ?? '-'}; see \`earshot sinks dead ${sink}\`.`;
  }
  return null;
}

/** For a sink that earshot.config.ts no longer has: how to be rid of it. */
function whatIsLeft({ sink, target, waiting, dead, replays }: SinkRow): string | null {
  const letters = dead > 0 ? [`\`earshot sinks drop ${sink} --all\` forgets its dead letters`] : [];
  const rest =
    waiting + replays > 0 ? [`\`earshot sinks drop ${sink} --waiting\` forgets what waits`] : [];
  const drops = [...letters, ...rest];
  if (target !== null || drops.length === 0) return null;
  return `${sink} is no longer in earshot.config.ts. ${drops.join('; ')}.`;
}
