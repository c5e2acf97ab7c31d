/** Alerts that the store does not take: told all the same, until they were taken, and no longer than we live. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { AppError } from '../../src/domain/app-error.ts';
import { startWatchdog } from '../../src/watch/watchdog.ts';
import { beginUs, dayUs, hourUs, minuteUs, openWorld } from './watch-world.ts';

const gib = 2 ** 30;
const probes = {
  certificate: async () => null,
  disk: async () => ({ freeBytes: gib / 2, totalBytes: 100 * gib, reserveBytes: 0 }),
  intake: async () => null,
};
const full = () => Promise.reject(new AppError('unavailable', 'The disk is full.'));

/** A disk that is full, and a store that takes no alert. */
async function openFull(parts: Parameters<typeof openWorld>[0] = {}) {
  const opened = await openWorld({ probes, ...parts });
  opened.world.alerts = { ...opened.world.alerts, settleFindings: full };
  return opened;
}

describe('an alert that cannot be kept', () => {
  it('is told once an hour, when it is critical', async () => {
    const { world, look, told, setNow, logged } = await openFull();
    await look();
    await look();
    expect(told).toMatchObject([{ kind: 'disk', severity: 'critical', change: 'raised' }]);
    setNow(beginUs + hourUs);
    await look();
    expect(told).toHaveLength(2);
    expect(new Set(told.map(({ id }) => id)).size).toBe(2);
    expect(logged).toContainEqual(
      expect.objectContaining({ fields: { reason: 'The disk is full.' } }),
    );
    // Nor can it be read.
    world.alerts = { ...world.alerts, alerts: full };
    setNow(beginUs + 2 * hourUs);
    await look();
    await vi.waitFor(() => expect(told).toHaveLength(3));
  });

  it('is told anew in the next round through a channel that did not take it, and that one alone', async () => {
    let isDown = true;
    const tried: string[] = [];
    const { look, setNow } = await openFull({
      channels: ['url', 'command'],
      tell: async (channel) => {
        tried.push(channel);
        if (channel === 'url' && isDown) throw new AppError('unavailable', 'It answered 500.');
      },
    });
    await look();
    setNow(beginUs + minuteUs);
    isDown = false;
    await look();
    setNow(beginUs + 2 * minuteUs);
    await look();
    expect(tried).toEqual(['url', 'command', 'url']);
  });

  it('is told anew when the clock was set back since', async () => {
    const { look, setNow, told } = await openFull();
    setNow(beginUs + dayUs);
    await look();
    setNow(beginUs);
    await look();
    expect(told).toHaveLength(2);
  });

  it('is left when the program ends', async () => {
    const begun: AbortSignal[] = [];
    const { world, logged } = await openFull({
      tell: (_channel, _message, signal) => {
        begun.push(signal);
        return delay(600_000, undefined, { signal });
      },
    });
    const watchdog = startWatchdog(world, { firstMs: 1 });
    onTestFinished(() => watchdog.stop());
    await vi.waitFor(() => expect(begun).toHaveLength(1));
    await watchdog.stop();
    expect(begun.map(({ aborted }) => aborted)).toEqual([true]);
    await delay(0);
    expect(logged.map(({ message }) => message)).not.toContain('an alert could not be told');
  });
});
