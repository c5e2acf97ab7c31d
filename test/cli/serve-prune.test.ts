/** Pruning by itself: what EARSHOT_KEEP says, told in the log, and never more than that. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startPruning } from '../../src/cli/start/storage-jobs.ts';
import { formatDateUs, shortDateUs } from '../../src/domain/dates.ts';
import type { Keep } from '../../src/domain/pruning.ts';
import { createTakeLock } from '../../src/store/engine/locks.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { createReceiverWorld } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';

const dayUs = 86_400_000_000;
const nowUs = 1_795_000_000_000_000;

/** One notification a day, the last one now; rounds follow each other at once. */
async function openServed(keep: Partial<Keep>, { clockUs = nowUs, days = 30 } = {}) {
  const { store, dataDir } = await openSqliteStore();
  for (let day = days; day >= 0; day -= 1) {
    const receivedAtUs = nowUs - day * dayUs;
    const NotificationDate = formatDateUs(receivedAtUs);
    const Padding = `${Math.random()}`.repeat(50);
    const body = notification(day, { NotificationDate, Padding });
    await store.accept(delivery(body, { receivedAtUs }));
  }
  const logged: { level: string; fields: object; message: string }[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void logged.push({ level, fields, message });
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const start = () => {
    const pruning = startPruning(
      { store, log },
      { dataDir, keep: { ageUs: null, bytes: null, ...keep } },
      { nowUs: () => clockUs, random: () => 0.5 },
      { firstMs: 1, intervalMs: 20, retryMs: 20 },
    );
    onTestFinished(() => pruning.stop());
    return pruning;
  };
  const left = async () => (await collect(store.find({}))).length;
  const messages = (level: string) =>
    logged.filter((one) => one.level === level).map(({ message }) => message);
  return { store, dataDir, start, left, logged, messages };
}

describe('a receiver that is told what to keep', () => {
  it('removes what is older once it has begun, and says so', async () => {
    const { start, left, logged, messages } = await openServed({ ageUs: 10 * dayUs });
    start();
    await expect.poll(() => messages('info')).toHaveLength(2);
    expect(logged[0]).toEqual({
      level: 'info',
      fields: { keep: '10d' },
      message: 'what of the log is beyond that is removed once a day',
    });
    expect(logged.find(({ message }) => message === 'the log was pruned')?.fields).toMatchObject({
      notifications: 20,
      quarantined: 0,
      since: formatDateUs(nowUs - 10 * dayUs),
    });
    expect(await left()).toBe(11);
    await expect.poll(() => messages('debug').length).toBeGreaterThan(1);
    expect([await left(), messages('warn'), messages('error')]).toEqual([11, [], []]);
  });

  it('counts age from the newest notification, whatever its clock says', async () => {
    const ahead = await openServed({ ageUs: 10 * dayUs }, { clockUs: nowUs + 3_650 * dayUs });
    ahead.start();
    await expect.poll(() => ahead.messages('debug').length).toBeGreaterThan(0);
    expect(await ahead.left()).toBe(11);
    const behind = await openServed({ ageUs: 10 * dayUs }, { clockUs: nowUs - 3_650 * dayUs });
    behind.start();
    await expect.poll(() => behind.messages('debug').length).toBeGreaterThan(1);
    expect(await behind.left()).toBe(31);
  });

  it('removes nothing for one that came while its clock was ahead', async () => {
    const clockUs = nowUs + 3_650 * dayUs;
    const { store, start, left, messages } = await openServed({ ageUs: 40 * dayUs }, { clockUs });
    const NotificationDate = formatDateUs(nowUs);
    await store.accept(delivery(notification(99, { NotificationDate }), { receivedAtUs: clockUs }));
    start();
    await expect.poll(() => messages('debug').length).toBeGreaterThan(0);
    expect(await left()).toBe(32);
  });

  it('removes no notification for what the quarantine takes up', async () => {
    const { store, start, left, messages } = await openServed({ bytes: 2 * 2 ** 20 });
    for (let held = 0; held < 8; held += 1) {
      await store.accept(
        delivery(randomBytes(2 ** 19).toString('latin1'), { receivedAtUs: nowUs }),
      );
    }
    expect((await store.pruning.logSize()).usedBytes).toBeGreaterThan(4 * 2 ** 20);
    start();
    await expect.poll(() => messages('debug').length).toBeGreaterThan(0);
    expect(await left()).toBe(31);
  });

  it('tells who keeps it from going as far as it should', async () => {
    const { store, start, left, logged } = await openServed({ ageUs: 10 * dayUs });
    await store.moveCursor('downloads', 5, nowUs);
    start();
    const warnings = () => logged.filter(({ level }) => level === 'warn');
    await expect.poll(warnings).not.toEqual([]);
    expect(warnings()[0]?.fields).toEqual({
      heldBy: [`reader downloads, at position 5 since ${shortDateUs(nowUs)}`],
    });
    expect(await left()).toBe(31 - 4);
  });

  it('waits while a command prunes, and ends at once when it is stopped', async () => {
    const { dataDir, start, left, messages } = await openServed({ ageUs: 10 * dayUs });
    const release = await createTakeLock(dataDir)('prune', { waitMs: 0 });
    const pruning = start();
    await expect.poll(() => messages('info')).toHaveLength(1);
    expect(await left()).toBe(31);
    release();
    await expect.poll(left).toBe(11);
    await pruning.stop();
    expect(messages('error')).toEqual([]);
  });
});

it('is started by `earshot start` where EARSHOT_KEEP is set, and nowhere else', async () => {
  const world = await createReceiverWorld(temporaryDirectory());
  const told = 'is removed once a day';
  const kept = await world.start({ EARSHOT_KEEP: '365d,50GB' });
  await expect.poll(kept.log).toContain(told);
  expect(kept.log()).toContain('"keep":"365d, 46 GiB"');
  kept.child.kill('SIGTERM');
  await new Promise((resolve) => kept.child.once('exit', resolve));
  const all = await world.start();
  // What works beside is started before the end is.
  all.child.kill('SIGTERM');
  await new Promise((resolve) => all.child.once('exit', resolve));
  expect(all.log()).not.toContain(told);
}, 60_000);
