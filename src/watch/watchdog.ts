/** The watchdog beside a receiver: looks each minute, tells what it finds, and is never in the way. */
import { type AlertChannel, alertChannels } from '../domain/alerts.ts';
import { doRounds } from '../domain/rounds.ts';
import { deliverDue } from './telling/deliver-due.ts';
import { createWatchMemory, watchOnce } from './watch-once.ts';
import type { WatchWorld } from './watch-world.ts';

/** What tests make shorter. All times are jittered by a tenth. */
export interface WatchTiming {
  /** After the start, so that what takes its time to begin is not judged for it. */
  firstMs: number;
  intervalMs: number;
  /** Between looks for what is to be told. */
  tellEveryMs: number;
}

const usual: WatchTiming = { firstMs: 30_000, intervalMs: 60_000, tellEveryMs: 10_000 };
/** What is under way when the program ends can be cut anywhere: it is done again, or told again. */
const stopGraceMs = 3_000;

export interface Watchdog {
  stop(): Promise<void>;
}

/**
 * Starts looking, and telling: each channel by itself, so that one that hangs holds up nobody. Whatever fails
 * is logged, and tried again in the next round.
 */
export function startWatchdog(world: WatchWorld, timing: Partial<WatchTiming> = {}): Watchdog {
  const { firstMs, intervalMs, tellEveryMs } = { ...usual, ...timing };
  const stopping = new AbortController();
  const { signal } = stopping;
  const memory = createWatchMemory();
  const means = { pause: world.pause, random: world.random, signal };
  const tellTimes = { firstMs: tellEveryMs, intervalMs: tellEveryMs };
  const running = Promise.all([
    doRounds(() => watchOnce(world, memory, signal), { firstMs, intervalMs }, means),
    // All there are: what waits for one that was taken out of the settings is given up.
    ...alertChannels.map((channel) =>
      doRounds(() => tellOrLog(world, channel, signal), tellTimes, means),
    ),
  ]);
  return {
    stop: async () => {
      stopping.abort();
      const enough = new AbortController();
      await Promise.race([running, world.pause(stopGraceMs, enough.signal)]);
      enough.abort();
    },
  };
}

async function tellOrLog(
  world: WatchWorld,
  channel: AlertChannel,
  signal: AbortSignal,
): Promise<void> {
  try {
    await deliverDue(world, channel, signal);
  } catch (error) {
    if (!signal.aborted) world.log.error({ err: error, channel }, 'alerts cannot be told now');
  }
}
