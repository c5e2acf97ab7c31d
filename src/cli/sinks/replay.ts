/** What `earshot replay` does: counts, asks, and leaves the rest to the receiver. */
import { readDataConfig } from '../../config/read-config.ts';
import { loadSinks } from '../../config/sinks-config.ts';
import { AppError, isAppError } from '../../domain/app-error.ts';
import type { SinkDefinition } from '../../domain/sinks.ts';
import { compileWants, type Wants } from '../../sinks/wanted.ts';
import { openStore, type Store } from '../../store/store.ts';
import { confirm } from '../confirm.ts';
import type { Io } from '../io.ts';
import { writeOut } from '../write-out.ts';

export interface ReplayFlags {
  sink: string;
  since?: number;
  until?: number;
  filter?: string;
  dryRun?: true;
  yes?: true;
  json?: true;
}

/** Rows between two signs of life on a terminal. */
const progressEvery = 5_000;

export async function replay(io: Io, flags: ReplayFlags): Promise<void> {
  const { dataDir } = readDataConfig(io);
  const definition = await definedSink(io, flags.sink);
  const { since: sinceUs = null, until: untilUs = null } = flags;
  if (sinceUs !== null && untilUs !== null && sinceUs >= untilUs) {
    throw new AppError('usage', 'The window is empty: --since must lie before --until (UTC).');
  }
  const store = await openStore({ dataDir, nowUs: io.nowUs, mustExist: true });
  try {
    const found = await countWanted(io, { store, definition, flags });
    const words = found.count === 1 ? '1 notification' : `${found.count} notifications`;
    const isAsked = flags.dryRun !== true && found.count > 0;
    if (!flags.json)
      io.stderr.write(
        `${found.count === 0 ? nothing(flags) : `${words} would be handed over to ${flags.sink}.`}\n`,
      );
    if (isAsked) await confirm(io, `Hand ${words} over to ${flags.sink} once more?`, flags);
    const added = isAsked
      ? await addReplay(store, { ...flags, ...found, sinceUs, untilUs }, io)
      : null;
    if (flags.json) {
      const { sink } = flags;
      const answer = { sink, notifications: found.count, replay: added?.id ?? null };
      await writeOut(io.stdout, `${JSON.stringify(answer)}\n`);
    } else if (added !== null) {
      io.stderr.write(
        `Replay ${added.id}: the receiver hands them over (\`earshot sinks list\`).\n`,
      );
    }
  } finally {
    await store.close();
  }
}

/** Rejects with `configuration` for a faulty file, `usage` for a sink that is not in it. */
async function definedSink({ workingDir }: Io, name: string): Promise<SinkDefinition> {
  const definitions = await loadSinks(workingDir);
  const definition = definitions.find((one) => one.name === name);
  if (definition !== undefined) return definition;
  const known = definitions.map((one) => one.name).join(', ');
  throw new AppError(
    'usage',
    `earshot.config.ts has no sink ${name}. ${known === '' ? 'It has none; docs/sinks.md shows how one is written.' : `It has: ${known}.`}`,
  );
}

interface Found {
  count: number;
  /** The first and the last position that were wanted; 0 where none was. */
  firstPosition: number;
  lastPosition: number;
}

async function countWanted(
  io: Io,
  means: { store: Store; definition: SinkDefinition; flags: ReplayFlags },
): Promise<Found> {
  const { store, definition, flags } = means;
  const wants = wantsOf(definition, store, flags.filter);
  const found: Found = { count: 0, firstPosition: 0, lastPosition: 0 };
  let looked = 0;
  const rows = store.find({ sinceUs: flags.since, untilUs: flags.until, order: 'oldest' });
  for await (const row of rows) {
    if (io.signal.aborted) throw new AppError('cancelled', 'Ended. Nothing was changed.');
    looked += 1;
    if (io.stderr.isTTY && looked % progressEvery === 0) io.stderr.write(`\r${looked} looked at`);
    if (!(await wants(row))) continue;
    found.count += 1;
    if (found.firstPosition === 0) found.firstPosition = row.position;
    found.lastPosition = row.position;
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
    const { message, details } = error;
    throw new AppError('usage', `--filter cannot be used. ${message}`, { details });
  }
}

function nothing({ sink, filter }: ReplayFlags): string {
  const what = filter === undefined ? 'Nothing' : 'Nothing that matches the filter';
  return `${what} was received in this time that ${sink} wants by its own rules.`;
}

function addReplay(
  { sinks }: Pick<Store, 'sinks'>,
  wish: ReplayFlags & Found & { sinceUs: number | null; untilUs: number | null },
  { nowUs }: Pick<Io, 'nowUs'>,
) {
  const { sink, filter = '', sinceUs, untilUs, firstPosition, lastPosition } = wish;
  const afterPosition = firstPosition - 1;
  const requestedAtUs = nowUs();
  const bounds = { sinceUs, untilUs, afterPosition, lastPosition };
  return sinks.addReplay({ sink, filter, ...bounds, requestedAtUs });
}
