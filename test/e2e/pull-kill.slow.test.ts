/** SIGKILL of a receiver of pull subscriptions at any moment of a page: every entry is stored once, in order. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { createRandom, type Random } from '../../src/sandbox/clock.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { collect } from '../helpers/deliveries.ts';
import { isThorough, times } from '../helpers/thorough.ts';
import { openReader } from '../store/sqlite-store.ts';
import { type CutMoment, startCuttingProxy } from './cutting-proxy.ts';
import { openPullContext, publishedTo } from './pull-context.ts';

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

const drawnFrom = [
  ...(['starting', 'reading', 'acknowledging', 'acknowledged'] as const),
  ...(['storing', 'storing', 'storing'] as const),
] as const;

interface Kill {
  moment: MomentName;
  /** Number of entries that were stored, but not acknowledged. */
  unacknowledged: number;
  /** Time from the start of the process to the first Read; null if the kill was at another request. */
  firstReadMs: number | null;
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

/** Opens a receiver with a queue of its own, behind a proxy. */
async function openKilled(sandbox: Sandbox, filter: string) {
  const proxy = await startCuttingProxy(sandbox.catalogueUrl);
  const context = openPullContext(sandbox, { catalogueUrl: proxy.url });
  await context.register('--filter', filter);
  const id = sandbox.subscriptions().find((one) => one.filter === filter)?.id ?? '';
  const queue = () => sandbox.queues().find(({ subscriptionId }) => subscriptionId === id);
  return { ...context, sandbox, proxy, id, queue };
}

type Killed = Awaited<ReturnType<typeof openKilled>>;

/** Starts the receiver, and kills it at a moment of one of its first pages. */
async function killAt({ start, proxy }: Killed, moment: MomentName, random: Random) {
  const { part, at, delayMsMax } = moments[moment];
  const page = moment === 'starting' ? 1 : random.integer(1, pagesMax);
  const cut = Promise.withResolvers<void>();
  proxy.cutAt(page, at, cut.resolve, part);
  const startedMs = performance.now();
  const receiver = start();
  const ended = receiver.exited.then(() => Promise.reject(new Error(receiver.log())));
  if (moment !== 'starting') await Promise.race([cut.promise, ended]);
  const cutMs = performance.now() - startedMs;
  // The random delay is the moment of the kill; the test waits for no condition here.
  await delay(random.integer(0, delayMsMax));
  receiver.child.kill('SIGKILL');
  await expect(ended).rejects.toThrow();
  expect(receiver.child.signalCode, receiver.log()).toBe('SIGKILL');
  // Neither a repeated page nor a lost answer is reported as another reader.
  expect(receiver.log()).not.toMatch(/"level":"(warn|error)"/);
  return moment !== 'starting' && part === '/Read' && page === 1 ? cutMs : null;
}

/** Kills the receiver again and again, and checks the log after each kill. */
async function killRepeatedly(killed: Killed, seed: number): Promise<Kill[]> {
  const random = createRandom(seed);
  const all: Kill[] = [];
  let repeated = 0;
  while (all.length < kills / filters.length) {
    const moment = random.pick(drawnFrom);
    const firstReadMs = await killAt(killed, moment, random);
    const { rows, seen } = logCounts(killed.dataDir);
    const acknowledged = killed.queue()?.acknowledged ?? 0;
    // Entries of earlier pages were stored once for their acknowledgement, and once for each kill before it.
    const unacknowledged = seen - repeated - acknowledged;
    repeated += unacknowledged;
    all.push({ moment, unacknowledged, firstReadMs });
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
  const receiver = start();
  await expect.poll(() => queue()?.length, { timeout: 60_000 }).toBe(0);
  await receiver.stop();
  const reader = openReader(dataDir);
  const rows = await collect(reader.find({ order: 'oldest' }));
  expect(rows.map(({ ackId }) => ackId)).toEqual(publishedTo(sandbox, id));
  const repeated = rows.reduce((sum, { timesSeen }) => sum + timesSeen - 1, 0);
  expect(repeated).toBe(all.reduce((sum, { unacknowledged }) => sum + unacknowledged, 0));
  expect(await reader.counts()).toMatchObject({ quarantined: 0 });
  const database = new Sqlite(join(dataDir, databaseFileName));
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
  database.close();
}

/** Returns the number of kills at each moment; those while storing by whether entries of the page were on disk. */
function countKills(all: readonly Kill[]) {
  const count = (moment: MomentName, isStored: boolean) =>
    all.filter((kill) => kill.moment === moment && kill.unacknowledged > 0 === isStored).length;
  return {
    'before the first read': count('starting', false),
    'before the answer to a read': count('reading', false),
    'before the commit': count('storing', false),
    'after the commit': count('storing', true),
    'before an acknowledgement': count('acknowledging', true),
    'before the answer to an acknowledgement': count('acknowledged', false),
  };
}

function summaryOf(all: readonly Kill[], published: number): string {
  const counts = Object.entries(countKills(all)).map(([moment, count]) => `${count} ${moment}`);
  const pages = all.filter(({ unacknowledged }) => unacknowledged > 0);
  const entries = pages.reduce((sum, { unacknowledged }) => sum + unacknowledged, 0);
  const waits = all.flatMap(({ firstReadMs }) => firstReadMs ?? []).toSorted((a, b) => a - b);
  const median = Math.round(waits[Math.floor(waits.length / 2)] ?? 0);
  return [
    `${all.length} kills: ${counts.join(', ')}.`,
    `${published} notifications; ${pages.length} pages with ${entries} entries were stored again.`,
    `First read ${median} ms after the start (median of ${waits.length}).\n`,
  ].join('\n');
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
  const all = results.flatMap((one) => one.all);
  process.stdout.write(summaryOf(all, published));
  // Otherwise the test has missed a moment.
  expect(new Set(all.map(({ moment }) => moment)).size).toBe(Object.keys(moments).length);
  if (isThorough) expect(Math.min(...Object.values(countKills(all)))).toBeGreaterThan(5);
}, 500_000);
