/** SIGKILL of `earshot reconcile` at any moment: a repeated command has the same result, without duplicates. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { openSqlite } from '../../src/store/engine/database.ts';
import type { Store } from '../../src/store/store.ts';
import { registrationOf } from '../admin/samples.ts';
import { productsIn, pushOf } from '../features/coverage/reconcile-context.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { openStore } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';
import { eventKey, readLog } from '../simulation/log-events.ts';

const seed = 20_261_121;
const kills = times(3, 6);
const dayMs = 86_400_000;
const subscription = 'everything';

/** Starts a sandbox with a thousand products and their changes, of which none was pushed. */
async function openSandbox(): Promise<Sandbox> {
  const sandbox = await startSandbox({
    ...{ now: Date.now, count: 0, seed, modifiedShare: 0.4, deletedShare: 0.1 },
    past: { durationMs: 2 * dayMs, productsPerDay: 500 },
  });
  onTestFinished(() => sandbox.close());
  return sandbox;
}

/** Creates a data directory with one subscription, registered just now. */
async function openData(): Promise<{ dataDir: string; store: Store }> {
  const dataDir = temporaryDirectory();
  const store = await openStore({ dataDir });
  onTestFinished(() => store.close());
  const nowUs = Date.now() * 1_000;
  const save = registrationOf({
    ...{ name: subscription, events: ['created', 'modified', 'deleted'], filter: '' },
    ...{ activityAtUs: nowUs, notifiedAtUs: nowUs, runningSeenAtUs: nowUs },
  });
  await store.administration.commit({ save });
  return { dataDir, store };
}

/** Returns a function that runs the command with the same window each time. */
function commandOn({ catalogueUrl }: Sandbox, window: readonly string[]) {
  const env = {
    EARSHOT_CATALOGUE_URL: catalogueUrl,
    EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: '600',
  };
  return (dataDir: string, ...flags: string[]) =>
    spawnCommand(['reconcile', ...window, ...flags], {
      env: { ...env, EARSHOT_DATA_DIR: dataDir },
      cwd: dataDir,
    });
}

const keysOf = (dataDir: string) =>
  readLog(dataDir)
    .map((entry) => `${eventKey(entry)} ${entry.dateUs}`)
    .toSorted();

/** Returns the keys of the events that query results show, from the ledger. */
const shownKeys = (sandbox: Sandbox) =>
  [...sandbox.events()]
    .filter(({ shown }) => shown)
    .map((one) => ({ ...one, subscription, dateUs: one.dateUs ?? 0 }))
    .map((one) => `${eventKey(one)} ${one.dateUs}`)
    .toSorted();

/** Returns the counts of each hour. Pushed, late and recovered are added, because they vary between runs. */
async function countsOf({ completeness }: Store) {
  const hours = await completeness.coverage({ sinceUs: 0, untilUs: Number.MAX_SAFE_INTEGER });
  return hours.map(({ event, hourUs, expected, pushed, late, recovered, missing }) => {
    return { event, hourUs, expected, known: pushed + late + recovered, missing };
  });
}

/** Returns a sender of pushes of some products, in random order, which reconcile recovers at the same time. */
async function preparePushes(sandbox: Sandbox, store: Store) {
  const random = createRandom(seed);
  const queue = (await productsIn(sandbox)).filter(() => random.chance(0.1));
  let sent = 0;
  return {
    sent: () => sent,
    send: async (count: number) => {
      for (let i = 0; i < count; i += 1) {
        const [next] = queue.splice(random.integer(0, Math.max(0, queue.length - 1)), 1);
        if (next === undefined) return;
        await store.accept(pushOf(subscription, next, Date.now() * 1_000));
        sent += 1;
      }
    },
  };
}

it(`has the same result over ${kills} kills, while some of the same events are pushed`, async () => {
  const sandbox = await openSandbox();
  const [calm, killed] = [await openData(), await openData()];
  const nowMs = Date.now();
  const window = [
    ...['--since', new Date(nowMs - 3 * dayMs).toISOString()],
    ...['--until', new Date(nowMs).toISOString()],
  ];
  const start = commandOn(sandbox, window);
  const uninterrupted = await start(calm.dataDir).ended;
  expect(uninterrupted, uninterrupted.err).toMatchObject({ code: 0 });

  const pushing = await preparePushes(sandbox, killed.store);
  const random = createRandom(seed + 1);
  const asked = () => sandbox.requests().filter(({ path }) => path.includes('Products')).length;
  // Of the file: the store notes what another process has written within a second only.
  const file = openSqlite(join(killed.dataDir, 'earshot.db'), { readonly: true });
  onTestFinished(() => void file.close());
  const newest = file.prepare<[], number>('SELECT count(*) FROM notification').pluck();
  const position = () => newest.get() ?? 0;
  const grown: number[] = [];
  for (let round = 0; round < kills; round += 1) {
    const [before, positionBefore] = [asked(), position()];
    const command = start(killed.dataDir);
    let hasEnded = false;
    const ended = command.ended.finally(() => {
      hasEnded = true;
    });
    // The random moment is during a write, during a request, or in between.
    const enough = positionBefore + random.integer(30, 250);
    const isDue = () => hasEnded || (round % 2 === 0 ? position() >= enough : asked() > before);
    await expect.poll(isDue, { interval: 2, timeout: 60_000 }).toBe(true);
    const pushes = pushing.send(random.integer(5, 15));
    await delay(round % 2 === 0 ? random.integer(0, 20) : random.integer(0, 250));
    command.kill();
    const { code } = await ended;
    await pushes;
    if (code === null) grown.push(position());
  }
  // Some may have ended before the kill; the others were interrupted, and later ones continued.
  expect(grown.length).toBeGreaterThanOrEqual(kills / 2);
  expect((grown.at(-1) ?? 0) - (grown[0] ?? 0)).toBeGreaterThan(50);
  const last = start(killed.dataDir);
  const lastPushes = pushing.send(40);
  const ended = await last.ended;
  await lastPushes;
  expect(ended, ended.err).toMatchObject({ code: 0 });

  const keys = keysOf(calm.dataDir);
  expect(keys).toEqual(shownKeys(sandbox));
  expect(new Set(keys).size).toBe(keys.length);
  expect(keysOf(killed.dataDir)).toEqual(keys);
  expect(await countsOf(killed.store)).toEqual(await countsOf(calm.store));
  expect(pushing.sent()).toBeGreaterThan(60);
  const pushed = readLog(killed.dataDir).filter(({ pushedAtUs }) => pushedAtUs !== null);
  expect(pushed).toHaveLength(pushing.sent());
  // Some events were recovered first, others were pushed first.
  expect(new Set(pushed.map(({ source }) => source)).size).toBe(2);

  const check = await start(killed.dataDir, '--check').ended;
  expect(check, check.err).toMatchObject({ code: 0 });
  expect(keysOf(killed.dataDir)).toEqual(keys);
  expect((await countsOf(killed.store)).every(({ missing }) => missing === 0)).toBe(true);
}, 180_000);
