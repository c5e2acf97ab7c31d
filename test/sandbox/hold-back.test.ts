/** Holding a notification back: behind whom, and for how long at most. */
import { describe, expect, it } from 'vitest';
import { createSandboxClock } from '../../src/sandbox/clock.ts';
import { createHoldBack } from '../../src/sandbox/delivery/dispatcher.ts';

/** Holds notification number 5 back behind two later ones, on a clock that stands still. */
function holdFifth() {
  const clock = createSandboxClock({ now: () => 0 });
  const holdBack = createHoldBack(clock);
  const closing = new AbortController();
  let released = false;
  void holdBack.wait(5, 2, closing.signal).then(() => {
    released = true;
  });
  const isReleased = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return released;
  };
  return { clock, holdBack, closing, isReleased };
}

describe('a notification that is held back', () => {
  it('goes on when as many later ones have gone out', async () => {
    const { holdBack, isReleased } = holdFifth();
    holdBack.wentOut(6);
    expect(await isReleased()).toBe(false);
    holdBack.wentOut(8);
    expect(await isReleased()).toBe(true);
  });

  it('does not count earlier ones', async () => {
    const { holdBack, isReleased, closing } = holdFifth();
    for (const sequence of [1, 2, 3, 4, 6]) holdBack.wentOut(sequence);
    expect(await isReleased()).toBe(false);
    closing.abort();
  });

  it('goes on after two seconds when nothing comes later', async () => {
    const { clock, isReleased } = holdFifth();
    clock.advance(1_999);
    expect(await isReleased()).toBe(false);
    clock.advance(1);
    expect(await isReleased()).toBe(true);
  });

  it('goes on at once when the sandbox closes', async () => {
    const { closing, isReleased } = holdFifth();
    closing.abort();
    expect(await isReleased()).toBe(true);
  });
});
