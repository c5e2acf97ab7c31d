/** Work that is done again and again beside the receiver, and never in its way. */
import { jittered } from './jitter.ts';

/** All are jittered by a tenth. */
export interface RoundTimes {
  firstMs: number;
  intervalMs: number;
  /** After a round that failed, doubling with each further one; as after any other unless told. */
  retryMs?: number;
  /** That doubling ends here; at the interval unless told. */
  retryMsMax?: number;
}

const jitterShare = 0.1;

/**
 * Does rounds until the signal is aborted; resolves when the one under way has ended. A round resolves with `false`
 * when it failed; it must not reject, as that ends the rounds.
 */
export async function doRounds(
  round: () => Promise<unknown>,
  { firstMs, intervalMs, retryMs = intervalMs, retryMsMax = intervalMs }: RoundTimes,
  world: {
    /** Resolves after a time, or at once when the signal is aborted. Never rejects. */
    pause: (ms: number, signal: AbortSignal) => Promise<void>;
    /** A number in [0, 1). */
    random: () => number;
    signal: AbortSignal;
  },
): Promise<void> {
  const { pause, random, signal } = world;
  const wait = (ms: number) => pause(jittered(ms, random, jitterShare), signal);
  let failures = 0;
  await wait(firstMs);
  while (!signal.aborted) {
    failures = (await round()) === false ? failures + 1 : 0;
    const backoffMs = Math.min(retryMsMax, retryMs * 2 ** (failures - 1));
    await wait(failures === 0 ? intervalMs : backoffMs);
  }
}
