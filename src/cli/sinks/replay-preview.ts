/** What a replay would hand over: counted, and told before it is asked for. */
import { AppError, isAppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/notification-date.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import type { SinkDefinition } from '../../domain/sinks.ts';
import { compileWants, type Wants } from '../../sinks/wanted.ts';
import type { Store } from '../../store/store.ts';
import type { Io } from '../io.ts';
import type { TimeArgument } from '../time-argument.ts';
import { counted, whole } from './counted.ts';

export interface ReplayFlags {
  sink: string;
  since?: TimeArgument;
  until?: TimeArgument;
  filter?: string;
  dryRun?: true;
  yes?: true;
  json?: true;
}

/** Rows between two signs of life on a terminal. */
const progressEvery = 5_000;

export interface Found {
  count: number;
  /** Null where nothing was found. */
  first: NotificationRow | null;
  last: NotificationRow | null;
}

/** Rejects with `usage` for a filter that is none, `cancelled` when the user ends it. */
export async function countWanted(
  io: Io,
  means: { store: Store; definition: SinkDefinition; flags: ReplayFlags },
): Promise<Found> {
  const { store, definition, flags } = means;
  const wants = wantsOf(definition, store, flags.filter);
  const found: Found = { count: 0, first: null, last: null };
  let looked = 0;
  const rows = store.find({ sinceUs: flags.since?.us, untilUs: flags.until?.us, order: 'oldest' });
  for await (const row of rows) {
    if (io.signal.aborted) throw new AppError('cancelled', 'Ended. Nothing was changed.');
    looked += 1;
    if (io.stderr.isTTY && looked % progressEvery === 0) {
      io.stderr.write(`\r${whole(looked)} looked at`);
    }
    if (!(await wants(row))) continue;
    found.count += 1;
    found.first ??= row;
    found.last = row;
  }
  if (io.stderr.isTTY && looked >= progressEvery) io.stderr.write('\n');
  return found;
}

/** The sink's own filter has been looked at: what is wrong is in the flag. */
function wantsOf(definition: SinkDefinition, store: Store, filter: string | undefined): Wants {
  try {
    return compileWants(definition, store, filter);
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    throw error.with({ code: 'usage', message: `--filter cannot be used. ${error.message}` });
  }
}

/** The window, how many, and the times of the first and the last of them. */
export function previewText({ count, first, last }: Found, flags: ReplayFlags): string {
  const { sink, since, until, filter, dryRun, yes } = flags;
  const from = since === undefined ? 'the start of the log' : shortDateUs(since.us);
  const window = `Received from ${from} until ${until === undefined ? 'now' : shortDateUs(until.us)} (UTC)`;
  if (first === null || last === null) {
    const what = filter === undefined ? '' : ' that matches the filter';
    return `${window}: nothing${what} that ${sink} wants by its own rules.`;
  }
  const are = count === 1 ? 'is' : 'are';
  const verb = yes && !dryRun ? are : 'would be';
  const [firstAt, lastAt] = [shortDateUs(first.receivedAtUs), shortDateUs(last.receivedAtUs)];
  const times = count === 1 ? `received ${firstAt}` : `the first ${firstAt}, the last ${lastAt}`;
  return `${window}: ${counted(count, 'notification')} ${verb} handed over to ${sink}, ${times}.`;
}
