/** Maintenance as a job of a receiver: when a round counts as failed, and what is logged of it. */
import { expect, it, onTestFinished, vi } from 'vitest';
import type { MaintenanceResult } from '../../src/admin/maintain.ts';
import { startMaintenance } from '../../src/cli/start/maintenance.ts';
import { AppError, errorText } from '../../src/domain/app-error.ts';

const quiet: MaintenanceResult = {
  name: 'alps',
  status: 'running',
  did: null,
  notes: [],
  news: false,
  failure: null,
};

/** Repeats a round, early after a failure alone. */
function startLoop(round: () => Promise<MaintenanceResult[]>) {
  const log: { level: string; fields: object; message: string }[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void log.push({ level, fields, message });
  const tried = vi.fn(round);
  const { stop } = startMaintenance({
    round: tried,
    log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
    random: () => 0.5,
    timing: { firstMs: 0, intervalMs: 3_600_000, retryMs: 10 },
  });
  onTestFinished(stop);
  /** The log, when it has so many lines. */
  const logged = async (count: number) => {
    await vi.waitFor(() => expect(log.length).toBeGreaterThanOrEqual(count), { timeout: 15_000 });
    return log;
  };
  return { stop, logged, tried };
}

it('repeats a round early when one of the subscriptions failed', async () => {
  const failed = { ...quiet, name: 'sea', failure: 'There is no room.' };
  const { tried } = startLoop(async () => [quiet, failed, quiet]);
  await vi.waitFor(() => expect(tried.mock.calls.length).toBeGreaterThan(2), { timeout: 15_000 });
});

it('does not wait for ever for a round in progress', async () => {
  const { stop, tried } = startLoop(() => new Promise(() => undefined));
  await vi.waitFor(() => expect(tried).toHaveBeenCalled());
  const beforeMs = performance.now();
  await stop();
  expect(performance.now() - beforeMs).toBeLessThan(10_000);
});

it('logs the reason of a round that failed', async () => {
  const refusal = new AppError('configuration', 'The file has faults.', {
    details: ['subscriptions.Alps: use small letters'],
  });
  const { logged } = startLoop(() => Promise.reject(refusal));
  expect((await logged(1))[0]).toEqual({
    level: 'error',
    fields: { reason: errorText(refusal), details: refusal.details },
    message: 'maintenance failed; it is tried again, and intake goes on',
  });
});

it('makes no alarm of another program at work, and retries soon', async () => {
  const conflict = new AppError('conflict', 'Another earshot program is at work.');
  const { logged } = startLoop(() => Promise.reject(conflict));
  expect((await logged(2))[1]).toEqual({
    level: 'info',
    fields: { reason: errorText(conflict) },
    message: 'maintenance waits for another command',
  });
});

it('tells what was done, what could not be done, and notes that are news', async () => {
  const notes = [
    { code: 'a', message: 'It is paused.' },
    { code: 'b', message: 'Its filter changed.' },
  ];
  const { logged } = startLoop(async () => [
    quiet,
    { ...quiet, name: 'ice', status: 'paused', did: 'resume' },
    { ...quiet, name: 'sea', status: 'gone', failure: 'There is no room.' },
    { ...quiet, name: 'old', status: 'paused', notes, news: true },
    { ...quiet, name: 'older', notes, news: false },
  ]);
  const old = { subscription: 'old', status: 'paused' };
  expect((await logged(4)).slice(0, 4)).toEqual([
    {
      level: 'info',
      fields: { subscription: 'ice', status: 'paused', did: 'resume' },
      message: 'maintenance acted',
    },
    {
      level: 'error',
      fields: { subscription: 'sea', status: 'gone', reason: 'There is no room.' },
      message: 'maintenance could not act',
    },
    { level: 'warn', fields: { ...old, note: 'It is paused.' }, message: 'maintenance reports' },
    {
      level: 'warn',
      fields: { ...old, note: 'Its filter changed.' },
      message: 'maintenance reports',
    },
  ]);
});
