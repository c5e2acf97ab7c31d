/** The sandbox's clock: forward only, and waits that follow it. */
import { describe, expect, it } from 'vitest';
import { createSandboxClock } from '../../src/sandbox/clock.ts';

const hourMs = 3_600_000;
const never = new AbortController().signal;

describe('the sandbox clock', () => {
  it('runs with the real time, plus what it was advanced by', () => {
    let realMs = 1_000;
    const clock = createSandboxClock({ now: () => realMs });
    expect(clock.now()).toBe(1_000);
    clock.advance(500);
    realMs = 1_100;
    expect(clock.now()).toBe(1_600);
    expect(clock.offsetMs()).toBe(500);
  });

  it('stands still when the real time goes back', () => {
    let realMs = 1_000;
    const clock = createSandboxClock({ now: () => realMs });
    clock.now();
    realMs = 400;
    expect(clock.now()).toBe(1_000);
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('refuses to advance by %d', (ms) => {
    const clock = createSandboxClock({ now: () => 0 });
    expect(() => clock.advance(ms)).toThrow(RangeError);
    expect(clock.now()).toBe(0);
  });

  it('ends a long wait as soon as it is advanced far enough', async () => {
    const clock = createSandboxClock({ now: () => 0 });
    let ended = false;
    const waiting = clock.waitUntil(2 * hourMs, never).then((reached) => {
      ended = true;
      return reached;
    });
    clock.advance(hourMs);
    await Promise.resolve();
    expect(ended).toBe(false);
    clock.advance(hourMs);
    expect(await waiting).toBe(true);
  });

  it('ends a wait by itself when the time has come', async () => {
    const clock = createSandboxClock({ now: () => performance.now() });
    const untilMs = clock.now() + 20;
    expect(await clock.waitUntil(untilMs, never)).toBe(true);
    expect(clock.now()).toBeGreaterThanOrEqual(untilMs);
  });

  it('tells a wait that was given up from one that was reached', async () => {
    const clock = createSandboxClock({ now: () => 0 });
    const giveUp = new AbortController();
    const waiting = clock.waitUntil(hourMs, giveUp.signal);
    giveUp.abort();
    expect(await waiting).toBe(false);
    expect(await clock.waitUntil(0, giveUp.signal)).toBe(false);
  });
});
