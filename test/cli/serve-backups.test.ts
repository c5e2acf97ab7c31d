/** Backups that the receiver makes by itself, with a clock that the test moves. */
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startBackups } from '../../src/cli/start/storage-jobs.ts';
import { createTakeLock } from '../../src/store/engine/locks.ts';
import { openFilled } from '../store/backups/backup-world.ts';
import { nowUs as beginUs } from './fake-io.ts';

const hourUs = 3_600_000_000;
const times = { firstMs: 1, intervalMs: 5, retryMs: 5, retryMsMax: 20 };
const nameAt = (hour: number) =>
  `earshot-${new Date((beginUs + hour * hourUs) / 1_000).toISOString().replaceAll(/[-:]|\.000/g, '')}.db`;

async function openWorld(keep = 7) {
  const { folder, dataDir, store } = await openFilled(5);
  const to = join(folder, 'made', 'by-itself');
  let nowUs = beginUs;
  const logged: { level: string; fields: object; message: string }[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void logged.push({ level, fields, message });
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const config = { dataDir, folder: to, everyHours: 24, keep, version: 'test' };
  const start = () => {
    const io = { nowUs: () => nowUs, random: () => 0.5 };
    const running = startBackups({ store, log }, config, io, times);
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
  const messages = (level: string) => logged.filter((one) => one.level === level);
  const setHour = (hour: number) => {
    nowUs = beginUs + hour * hourUs;
  };
  return { dataDir, store, to, start, names, messages, setHour };
}

const soon = { timeout: 15_000 };

it('is made at once where there is none, and then whenever one is due, over a restart too', async () => {
  const { store, start, names, messages, setHour } = await openWorld();
  const running = start();
  await expect.poll(names, soon).toEqual([nameAt(0)]);
  await expect.poll(() => messages('info').length, soon).toBe(2);
  const { made } = await store.backups.lastBackups();
  expect(made).toMatchObject({ startedAtUs: beginUs, lastPosition: 5, error: null });
  setHour(23.9);
  await running.stop();
  const lookedAt = vi.spyOn(store.backups, 'lastBackups');
  start();
  // It has looked, and looked again.
  await expect.poll(() => lookedAt.mock.calls.length, soon).toBeGreaterThan(3);
  expect(names()).toEqual([nameAt(0)]);
  setHour(24);
  await expect.poll(names, soon).toEqual([nameAt(0), nameAt(24)]);
});

it('leaves as many as are to be kept, and what is not its own', async () => {
  const { to, start, names, setHour } = await openWorld(2);
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const name of ['mine.db', 'earshot.db', nameAt(-48)]) writeFileSync(join(to, name), 'x');
  // Somebody makes one by hand meanwhile.
  const byHand = `${nameAt(-1)}.part`;
  writeFileSync(join(to, byHand), 'x');
  start();
  const others = [byHand, 'earshot.db', 'mine.db'];
  await expect.poll(names, soon).toEqual([nameAt(-48), byHand, nameAt(0), 'earshot.db', 'mine.db']);
  setHour(24);
  await expect.poll(names, soon).toEqual([byHand, nameAt(0), nameAt(24), ...others.slice(1)]);
});

it('tries again after a failure, removes nothing before it has succeeded, and remembers both', async () => {
  const { store, dataDir, start, names, messages, setHour } = await openWorld(1);
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

it('waits for a backup that somebody makes by hand', async () => {
  const { dataDir, start, names, messages } = await openWorld();
  const release = await createTakeLock(dataDir)('backup', { waitMs: 0 });
  start();
  await expect.poll(() => messages('info').length, soon).toBeGreaterThan(2);
  expect(messages('error')).toEqual([]);
  expect(names()).toEqual([]);
  release();
  await expect.poll(names, soon).toEqual([nameAt(0)]);
});

it('ends with the receiver, and leaves nothing half done', async () => {
  const { start, names } = await openWorld();
  await start().stop();
  expect(names().filter((name) => name.includes('part'))).toEqual([]);
});
