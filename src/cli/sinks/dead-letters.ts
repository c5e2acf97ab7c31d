/** `earshot sinks dead`, `retry` and `drop`: notifications that a sink refused, and what becomes of them. */
import { readDataConfig } from '../../config/read-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { formatDateUs, shortDateUs } from '../../domain/notification-date.ts';
import { printable } from '../../domain/printable.ts';
import type { SinkItem } from '../../domain/sinks.ts';
import { openStore, openStoreReader, type Store } from '../../store/store.ts';
import { painter } from '../colour.ts';
import { confirm } from '../confirm.ts';
import type { Io } from '../io.ts';
import { writeJson } from '../notification-output.ts';
import { wrapText } from '../wrap-text.ts';
import { writeOut } from '../write-out.ts';

export async function listDeadLetters(
  io: Io,
  { sink, limit, json }: { sink: string | undefined; limit?: number; json?: true },
): Promise<void> {
  const store = openStoreReader(readDataConfig(io).dataDir);
  try {
    const items = store.sinks.items({ sink, state: 'dead', limit });
    if (json) await writeJson(io.stdout, mapped(items));
    else if ((await printLetters(io, items)) === 0) {
      io.stderr.write(`There are no dead letters${sink === undefined ? '' : ` of ${sink}`}.\n`);
    }
  } finally {
    await store.close();
  }
}

export async function retryDeadLetters(
  io: Io,
  { sink, ids, all }: { sink: string; ids: number[] | undefined; all?: true | undefined },
): Promise<void> {
  const chosen = chosenIds(ids, all, `earshot sinks retry ${sink} --all`);
  await withStore(io, async ({ sinks }) => {
    const count = await sinks.retry({ sink, ids: chosen, nowUs: io.nowUs() });
    if (count === 0) throw noneOf(sink);
    io.stderr.write(`${lettersOf(count)} of ${sink} will be handed over again.\n`);
  });
}

interface DropWish {
  sink: string;
  ids: number[] | undefined;
  all?: true;
  waiting?: true;
  yes?: true;
}

export async function dropItems(io: Io, { sink, ids, all, waiting, yes }: DropWish): Promise<void> {
  if (waiting && (ids !== undefined || all)) {
    throw new AppError('usage', '--waiting drops all that waits: leave out the ids and --all.');
  }
  const chosen = waiting ? 'all' : chosenIds(ids, all, `earshot sinks drop ${sink} --all`);
  const what = waiting ? `all that waits for ${sink}` : wordsFor(chosen, sink);
  await confirm(io, `Forget ${what}? The notifications stay in the log.`, { yes });
  await withStore(io, async ({ sinks }) => {
    const state = waiting ? 'waiting' : 'dead';
    const count = await sinks.drop({ sink, state, ids: chosen, nowUs: io.nowUs() });
    if (count === 0 && !waiting) throw noneOf(sink);
    const items = count === 1 ? '1 waiting item' : `${count} waiting items`;
    io.stderr.write(`Forgotten: ${waiting ? items : lettersOf(count)} of ${sink}.\n`);
  });
}

function chosenIds(ids: number[] | undefined, all: true | undefined, example: string) {
  if ((ids === undefined) === (all === undefined)) {
    throw new AppError('usage', `Name dead letters, or say --all: ${example}`);
  }
  return ids ?? 'all';
}

function wordsFor(ids: readonly number[] | 'all', sink: string): string {
  if (ids === 'all') return `all dead letters of ${sink}`;
  return `${lettersOf(ids.length)} of ${sink}`;
}

const lettersOf = (count: number) => (count === 1 ? '1 dead letter' : `${count} dead letters`);

function noneOf(sink: string): AppError {
  return new AppError(
    'not_found',
    `${sink} has no such dead letters. \`earshot sinks dead ${sink}\` lists those it has.`,
  );
}

async function withStore(io: Io, use: (store: Store) => Promise<void>): Promise<void> {
  const { dataDir } = readDataConfig(io);
  const store = await openStore({ dataDir, nowUs: io.nowUs, mustExist: true });
  try {
    await use(store);
  } finally {
    await store.close();
  }
}

async function* mapped(items: AsyncIterable<SinkItem>) {
  for await (const {
    id,
    sink,
    position,
    productId,
    replayId,
    attempts,
    error,
    queuedAtUs,
  } of items) {
    const queuedAt = formatDateUs(queuedAtUs);
    yield { id, sink, position, productId, replay: replayId, attempts, error, queuedAt };
  }
}

/** A line for each, and the reason below it; returns how many there were. */
async function printLetters(io: Io, items: AsyncIterable<SinkItem>): Promise<number> {
  const paint = painter(io, io.stdout);
  let count = 0;
  for await (const { id, sink, productId, replayId, attempts, error, queuedAtUs } of items) {
    count += 1;
    const queued = shortDateUs(queuedAtUs);
    const tries = attempts === 1 ? '1 try' : `${attempts} tries`;
    const replay = replayId === null ? '' : `, replay ${replayId}`;
    const head = `${id}  ${sink}  ${printable(productId)}  ${tries}, queued ${queued}${replay}`;
    const reason = wrapText(printable(error ?? '-'), '    ', io.stdout);
    const lines = [head, ...reason.map((line) => paint('yellow', line))];
    await writeOut(io.stdout, `${lines.join('\n')}\n`);
  }
  return count;
}
