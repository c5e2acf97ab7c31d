/** What `earshot replay` does: counts, asks, and leaves the rest to the receiver. */
import { dataSections, loadConfig } from '../../config/config.ts';
import { faultySinks, loadEachSink } from '../../config/sinks.ts';
import { AppError } from '../../domain/app-error.ts';
import type { SinkDefinition } from '../../domain/sinks.ts';
import { unfinishedReplay } from '../../domain/unfinished-replay.ts';
import { openStore, type Store } from '../../store/store.ts';
import { confirm } from '../confirm.ts';
import type { Io } from '../io.ts';
import { writeOut } from '../write-out.ts';
import { counted } from './counted.ts';
import { unknownSink } from './known-sink.ts';
import { receiverNote } from './receiver-note.ts';
import { countWanted, type Found, previewText, type ReplayFlags } from './replay-preview.ts';
import { unknownWanted } from './wanted-subscriptions.ts';

export async function replay(io: Io, flags: ReplayFlags): Promise<void> {
  const place = loadConfig(io, dataSections);
  const definition = await definedSink(io, flags.sink);
  const window = windowOf(flags, io);
  const store = await openStore({ ...place, nowUs: io.nowUs, mustExist: true });
  try {
    await warnOfSubscriptions(io, store, definition);
    const { sink, filter = '', dryRun, json } = flags;
    const found = await countWanted(io, { store, definition, flags });
    const { last } = found;
    const isAsked = !dryRun && last !== null;
    if (isAsked) {
      const lastPosition = last.position;
      const same = await store.sinks.sameReplay({ sink, filter, ...window, lastPosition });
      if (same !== null) throw unfinishedReplay(same);
    }
    if (!json) io.stderr.write(`${previewText(found, flags)}\n`);
    const words = counted(found.count, 'notification');
    if (isAsked) await confirm(io, `Hand ${words} over to ${sink} once more?`, flags);
    const added = isAsked ? await addReplay(store, { ...flags, ...found, ...window }, io) : null;
    if (json) {
      const answer = { sink, notifications: found.count, replay: added?.id ?? null };
      await writeOut(io.stdout, `${JSON.stringify(answer)}\n`);
    } else if (added !== null) {
      io.stderr.write(
        `Replay ${added.id}: the receiver hands them over (\`earshot sinks list\`).\n`,
      );
    }
    if (added !== null) await tellReceiver(io, place.dataDir);
  } finally {
    await store.close();
  }
}

function windowOf({ since, until }: ReplayFlags, io: Pick<Io, 'nowUs'>) {
  // By the moment at which the words were read: 0h would else be some milliseconds.
  const nowUs = since?.readAtUs ?? io.nowUs();
  const [sinceUs, untilUs] = [since?.us ?? null, until?.us ?? null];
  if (sinceUs !== null && sinceUs >= Math.min(untilUs ?? nowUs, nowUs)) {
    throw new AppError(
      'usage',
      'The window is empty: --since must lie before --until, and before now (UTC).',
    );
  }
  return { sinceUs, untilUs };
}

/** One that nobody knows may still come: it is no fault. */
async function warnOfSubscriptions(
  io: Io,
  store: Pick<Store, 'completeness'>,
  definition: SinkDefinition,
): Promise<void> {
  for (const { message, hint } of await unknownWanted([definition], store, io)) {
    io.stderr.write(`Warning: ${message} ${hint}\n`);
  }
}

async function tellReceiver(io: Io, dataDir: string): Promise<void> {
  const note = await receiverNote(dataDir);
  if (note !== null) io.stderr.write(`${note}\n`);
}

/** Rejects with `configuration` for a faulty file or sink, `usage` for a sink that is not in the file. */
async function definedSink(io: Io, name: string): Promise<SinkDefinition> {
  const { workingDir } = io;
  const { definitions, faulty } = await loadEachSink(workingDir);
  const definition = definitions.find((one) => one.name === name);
  if (definition !== undefined) return definition;
  const faults = faulty.filter((one) => one.name === name);
  if (faults.length > 0) throw faultySinks(workingDir, faults);
  const known = [...definitions, ...faulty].map((one) => one.name);
  throw unknownSink(name, known, io);
}

function addReplay(
  { sinks }: Pick<Store, 'sinks'>,
  wish: ReplayFlags & Found & { sinceUs: number | null; untilUs: number | null },
  { nowUs }: Pick<Io, 'nowUs'>,
) {
  const { sink, filter = '', sinceUs, untilUs, first, last } = wish;
  const afterPosition = (first?.position ?? 1) - 1;
  const bounds = { sinceUs, untilUs, afterPosition, lastPosition: last?.position ?? 0 };
  return sinks.addReplay({ sink, filter, ...bounds, requestedAtUs: nowUs() });
}
