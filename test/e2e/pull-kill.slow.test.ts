/** SIGKILL of a receiver of pull subscriptions at any moment of a page: every entry is stored once, in order. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { createRandom, type Random } from '../../src/sandbox/clock.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { collect } from '../helpers/deliveries.ts';
import { expectEnd } from '../helpers/fake-io.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { isThorough, times } from '../helpers/thorough.ts';
import { openReader } from '../store/sqlite-store.ts';
import { type Moment as CutMoment, startWatchedProxy } from './watched-proxy.ts';

/** Filters of two receivers, each killed half of the times. Both match everything. */
const filters = ["contains(Name,'S')", "contains(Name,'_')"];
const kills = times(16, 200);
/** The queues are never empty for long, but several pages long. */
const ratePerSecond = 30;
/** A receiver is killed at one of its first pages. */
const pagesMax = 3;

interface Moment {
  part: '/Read' | '/Ack';
  at: CutMoment;
  /** Maximum delay of the kill, drawn at random. */
  delayMsMax: number;
}

/** Moments of kills, in the order of a page. From each on, the receiver gets no answer. */
const moments = {
  starting: { part: '/Read', at: 'before', delayMsMax: 1_200 },
  reading: { part: '/Read', at: 'after', delayMsMax: 0 },
  storing: { part: '/Read', at: 'answered', delayMsMax: 30 },
  acknowledging: { part: '/Ack', at: 'before', delayMsMax: 0 },
  acknowledged: { part: '/Ack', at: 'after', delayMsMax: 0 },
} as const satisfies Record<string, Moment>;

type MomentName = keyof typeof moments;
const names = Object.keys(moments) as MomentName[];
/** While it stores is the most interesting moment. */
const drawnFrom = [...names, 'storing', 'storing'] as const;

interface Kill {
  moment: MomentName;
  /** Number of entries that were stored, but not acknowledged. */
  unacknowledged: number;
}

/**
 * Returns the number of notifications in the log, and how often they were stored. Read-only: another connection would
 * write to the database what the kill has left in its write-ahead log.
 */
function logCounts(dataDir: string): { rows: number; seen: number } {
  const database = new Sqlite(join(dataDir, databaseFileName), { readonly: true });
  try {
    const sql = 'SELECT count(*) AS rows, coalesce(sum(times_seen), 0) AS seen FROM notification';
    return database.prepare<[], { rows: number; seen: number }>(sql).get() ?? { rows: 0, seen: 0 };
  } finally {
    database.close();
  }
}

/** Opens a receiver with a queue of its own, behind a proxy, and only settings of the account. */
async function openKilled(sandbox: Sandbox, filter: string) {
  const proxy = await startWatchedProxy(sandbox.catalogueUrl);
  const cwd = temporaryDirectory();
  const dataDir = join(cwd, 'data');
  const env = {
    EARSHOT_ACCOUNT_USERNAME: 'sandbox',
    EARSHOT_ACCOUNT_PASSWORD: 'sandbox',
    EARSHOT_CATALOGUE_URL: proxy.url,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
    EARSHOT_PULL_REQUESTS_PER_MINUTE: '60000',
  };
  const register = ['register', '--pull', '--yes', '--filter', filter];
  await expectEnd(spawnCommand(register, { env, cwd }).ended, 0);
  const id = sandbox.subscriptions().find((one) => one.filter === filter)?.id ?? '';
  const queue = () => sandbox.queues().find(({ subscriptionId }) => subscriptionId === id);
  const start = () => spawnCommand(['start'], { env, cwd });
  return { dataDir, sandbox, proxy, id, queue, start };
}

type Killed = Awaited<ReturnType<typeof openKilled>>;

/** Starts the receiver, and kills it at a moment of one of its first pages. */
async function killAt({ start, proxy }: Killed, moment: MomentName, random: Random) {
  const { part, at, delayMsMax } = moments[moment];
  const cut = Promise.withResolvers<void>();
  proxy.cutAt(moment === 'starting' ? 1 : random.integer(1, pagesMax), at, cut.resolve, part);
  const { child, err, kill, ...running } = start();
  const ended = running.ended.then(() => Promise.reject(new Error(err())));
  if (moment !== 'starting') await Promise.race([cut.promise, ended]);
  // The random delay is the moment of the kill; the test waits for no condition here.
  await delay(random.integer(0, delayMsMax));
  kill();
  await expect(ended).rejects.toThrow();
  expect(child.signalCode, err()).toBe('SIGKILL');
  // Neither a repeated page nor a lost answer is a problem.
  expect(err()).not.toMatch(/"level":"(warn|error)"/);
}

/** Kills the receiver again and again, and checks the log after each kill. */
async function killRepeatedly(killed: Killed, seed: number): Promise<Kill[]> {
  const random = createRandom(seed);
  const all: Kill[] = [];
  let repeated = 0;
  while (all.length < kills / filters.length) {
    const moment = random.pick(drawnFrom);
    await killAt(killed, moment, random);
    const { rows, seen } = logCounts(killed.dataDir);
    const acknowledged = killed.queue()?.acknowledged ?? 0;
    // Entries of earlier pages were stored once for their acknowledgement, and once for each kill before it.
    const unacknowledged = seen - repeated - acknowledged;
    repeated += unacknowledged;
    all.push({ moment, unacknowledged });
    const facts = JSON.stringify({ moment, rows, seen, acknowledged, unacknowledged });
    expect(rows, facts).toBeGreaterThanOrEqual(acknowledged);
    if (moment === 'acknowledging') expect(unacknowledged, facts).toBeGreaterThan(0);
    else if (moment !== 'storing') expect(unacknowledged, facts).toBe(0);
  }
  return all;
}

/** Reads the queue to its end, and checks the log. */
async function expectWholeLog(killed: Killed, all: readonly Kill[]): Promise<void> {
  const { start, proxy, queue, dataDir, sandbox, id } = killed;
  proxy.letPass();
  const { child, ended } = start();
  await expect.poll(() => queue()?.length, { timeout: 60_000 }).toBe(0);
  child.kill('SIGTERM');
  await expectEnd(ended, 0);
  const reader = openReader(dataDir);
  const rows = await collect(reader.find({ order: 'oldest' }));
  const own = sandbox.entries().filter(({ subscriptionId }) => subscriptionId === id);
  expect(rows.map(({ ackId }) => ackId)).toEqual(own.map(({ ackId }) => ackId));
  const repeated = rows.reduce((sum, { timesSeen }) => sum + timesSeen - 1, 0);
  expect(repeated).toBe(all.reduce((sum, { unacknowledged }) => sum + unacknowledged, 0));
  expect(await reader.counts()).toMatchObject({ quarantined: 0 });
  const database = new Sqlite(join(dataDir, databaseFileName));
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
  database.close();
}

it(`stores every entry of the queue once and in order over ${kills} kills at all moments of a page`, async () => {
  const sandbox = await startSandbox({ now: Date.now, ratePerSecond });
  onTestFinished(() => sandbox.close());
  const results = await Promise.all(
    filters.map(async (filter, i) => {
      const killed = await openKilled(sandbox, filter);
      return { killed, all: await killRepeatedly(killed, 20_261_127 + i) };
    }),
  );
  sandbox.pause();
  for (const { killed, all } of results) await expectWholeLog(killed, all);
  const { published, ...totals } = sandbox.totals();
  expect(totals).toMatchObject({ delivered: published, lost: 0, pending: 0 });
  // Otherwise the test has missed a moment, among them before and after the commit.
  const all = results.flatMap((one) => one.all);
  const stored = all.filter(({ moment }) => moment === 'storing');
  const beforeCommit = stored.filter(({ unacknowledged }) => unacknowledged === 0).length;
  const counts = names.map((name) => all.filter(({ moment }) => moment === name).length);
  expect(Math.min(...counts)).toBeGreaterThan(0);
  if (isThorough)
    expect(Math.min(...counts, beforeCommit, stored.length - beforeCommit)).toBeGreaterThan(5);
}, 500_000);
