/** Automatic backups and pruning of the receiver, with a clock that the test moves. */

import { randomBytes } from 'node:crypto';
import { chmodSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { formatDateUs } from '../../src/core/terms/dates.ts';
import { startBackups } from '../../src/features/backup/job.ts';
import { startPruning } from '../../src/features/pruning/job.ts';
import type { Retention } from '../../src/store/pruning/terms.ts';
import { openFilled } from '../features/backup/backup-context.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { nowUs as beginUs } from '../helpers/fake-io.ts';
import { recordingLog } from '../helpers/recording-log.ts';
import { createReceiverContext } from '../helpers/spawned-receiver.ts';
import { tables } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';

const hourUs = 3_600_000_000;
const times = { firstMs: 1, intervalMs: 5, retryMs: 5, retryMsMax: 20 };
const nameAt = (hour: number) =>
  `earshot-${new Date((beginUs + hour * hourUs) / 1_000).toISOString().replaceAll(/[-:]|\.000/g, '')}`;

async function openBackups(keep = 7) {
  const { folder, dataDir, store } = await openFilled(5);
  const to = join(folder, 'made', 'by-itself');
  let nowUs = beginUs;
  const { log, at: messages } = recordingLog();
  const config = { dataDir, folder: to, everyHours: 24, keep, version: 'test' };
  const start = () => {
    const io = { nowUs: () => nowUs, random: () => 0.5 };
    const running = startBackups({ store, log }, { ...config, tables }, io, times);
    onTestFinished(() => running.stop());
    return running;
  };
  const names = () => {
    try {
      return readdirSync(to).toSorted();
    } catch {
      return [];
    }
  };
  const setHour = (hour: number) => {
    nowUs = beginUs + hour * hourUs;
  };
  return { dataDir, store, start, names, messages, setHour };
}

const soon = { timeout: 15_000 };

it('is made at once if there is none, then whenever one is due, also after a restart', async () => {
  const { store, start, names, messages, setHour } = await openBackups();
  const running = start();
  await expect.poll(names, soon).toEqual([nameAt(0)]);
  await expect.poll(() => messages('info').length, soon).toBe(2);
  const { made } = await store.backups.lastBackups();
  expect(made).toMatchObject({ startedAtUs: beginUs, lastPosition: 5, error: null });
  setHour(23.9);
  await running.stop();
  const checks = vi.spyOn(store.backups, 'lastBackups');
  start();
  // The job has checked repeatedly.
  await expect.poll(() => checks.mock.calls.length, soon).toBeGreaterThan(3);
  expect(names()).toEqual([nameAt(0)]);
  setHour(24);
  await expect.poll(names, soon).toEqual([nameAt(0), nameAt(24)]);
});

it('retries after a failure, removes nothing before a success, and records both', async () => {
  const { store, dataDir, start, names, messages, setHour } = await openBackups(1);
  start();
  await expect.poll(names, soon).toEqual([nameAt(0)]);
  await expect.poll(() => messages('info').length, soon).toBe(2);
  const secret = join(dataDir, 'endpoint-credentials.json');
  chmodSync(secret, 0o644);
  setHour(24);
  await expect.poll(() => messages('error').length, soon).toBeGreaterThan(1);
  expect(names()).toContain(nameAt(0));
  const { made, failed } = await store.backups.lastBackups();
  expect(made?.startedAtUs).toBe(beginUs);
  expect(failed).toMatchObject({ startedAtUs: beginUs + 24 * hourUs, bytes: null });
  expect(failed?.error).toContain('chmod 600');
  chmodSync(secret, 0o600);
  await expect.poll(names, soon).toEqual([nameAt(24)]);
});

const dayUs = 86_400_000_000;
const newestUs = 1_795_000_000_000_000;

/** A log with one notification a day, the last one now; rounds follow each other without delay. */
async function openKeeping(keep: Partial<Retention>, { clockUs = newestUs, days = 30 } = {}) {
  const { store, dataDir } = await openSqliteStore();
  for (let day = days; day >= 0; day -= 1) {
    const receivedAtUs = newestUs - day * dayUs;
    const NotificationDate = formatDateUs(receivedAtUs);
    const Padding = `${Math.random()}`.repeat(50);
    const body = notification(day, { NotificationDate, Padding });
    await store.accept(delivery(body, { receivedAtUs }));
  }
  const { log, lines: logged, at } = recordingLog();
  const start = () => {
    const pruning = startPruning(
      { store, log },
      { keep: { ageUs: null, bytes: null, ...keep } },
      { nowUs: () => clockUs, random: () => 0.5 },
      { firstMs: 1, intervalMs: 20, retryMs: 20 },
    );
    onTestFinished(() => pruning.stop());
    return pruning;
  };
  const left = async () => (await collect(store.find({}))).length;
  const messages = (level: string) => at(level).map(({ message }) => message);
  return { store, dataDir, start, left, logged, messages };
}

describe('automatic pruning of a receiver', () => {
  it('removes older notifications after its start, and logs the result', async () => {
    const { start, left, logged, messages } = await openKeeping({ ageUs: 10 * dayUs });
    start();
    await expect.poll(() => messages('info')).toHaveLength(2);
    expect(logged[0]).toEqual({
      level: 'info',
      fields: { keep: { ageUs: 10 * dayUs, bytes: null } },
      message: 'automatic pruning enabled',
    });
    expect(logged.find(({ message }) => message === 'pruned the log')?.fields).toMatchObject({
      notifications: 20,
      quarantined: 0,
      since: formatDateUs(newestUs - 10 * dayUs),
    });
    expect(await left()).toBe(11);
    await expect.poll(() => messages('debug').length).toBeGreaterThan(1);
    expect([await left(), messages('warn'), messages('error')]).toEqual([11, [], []]);
  });

  it('counts age from the newest notification, whatever the clock says', async () => {
    const ahead = await openKeeping({ ageUs: 10 * dayUs }, { clockUs: newestUs + 3_650 * dayUs });
    ahead.start();
    await expect.poll(() => ahead.messages('debug').length).toBeGreaterThan(0);
    expect(await ahead.left()).toBe(11);
    const behind = await openKeeping({ ageUs: 10 * dayUs }, { clockUs: newestUs - 3_650 * dayUs });
    behind.start();
    await expect.poll(() => behind.messages('debug').length).toBeGreaterThan(1);
    expect(await behind.left()).toBe(31);
  });

  it('removes no notification for the space that the quarantine uses', async () => {
    const { store, start, left, messages } = await openKeeping({ bytes: 2 * 2 ** 20 });
    for (let count = 0; count < 8; count += 1) {
      await store.accept(
        delivery(randomBytes(2 ** 19).toString('latin1'), { receivedAtUs: newestUs }),
      );
    }
    expect((await store.pruning.logSize()).usedBytes).toBeGreaterThan(4 * 2 ** 20);
    start();
    await expect.poll(() => messages('debug').length).toBeGreaterThan(0);
    expect(await left()).toBe(31);
  });
});

it('is started by `earshot start` only when EARSHOT_KEEP is set', async () => {
  const context = await createReceiverContext(temporaryDirectory());
  const enabled = 'automatic pruning enabled';
  const kept = await context.start({ EARSHOT_KEEP: '365d,50GB' });
  await expect.poll(kept.log).toContain(enabled);
  expect(kept.log()).toContain('"keep":{"ageUs":31536000000000,');
  await kept.end();
  const all = await context.start();
  // Background jobs start before the signal to stop is sent.
  await all.end();
  expect(all.log()).not.toContain(enabled);
}, 60_000);
