/** One sink at work: one part finds what it wants in the log, another hands it over. */
import { errorText, isAppError } from '../domain/app-error.ts';
import type { SinkDefinition } from '../domain/sinks.ts';
import { createItemCollector, type ItemCollector } from './collect-items.ts';
import { createHandingOver } from './hand-over.ts';
import { openTarget } from './open-target.ts';
import type { SinkWorld } from './sink-world.ts';
import { createWakeUp } from './wake-up.ts';

/** How often the end of the log is looked at, and how often replays are. */
const logPollMs = 200;
const replayPollMs = 1_000;
/** After a full round of a long log: others come between. */
const moreMs = 5;
/** After a failure of the store: the disk may be full. */
const retryMs = 10_000;
/**
 * What is on its way may come to its end for so long when the program ends: an answer that is on its way saves
 * handing over twice, and a sink that hangs must not keep intake from being stopped in order.
 */
const drainMs = 2_000;

export interface RunningSink {
  /** Takes up nothing new; what is on its way has two seconds, and is given up then. */
  stop(): Promise<void>;
}

/** What fails is logged, once, and tried again. Throws `invalid` for a filter that is none. */
export function runSink(definition: SinkDefinition, world: SinkWorld): RunningSink {
  const stopping = new AbortController();
  const givingUp = new AbortController();
  const { signal } = stopping;
  const { pause } = world;
  const room = createWakeUp(pause);
  const collector = createItemCollector(definition, world, room.wake);
  const target = openTarget(definition, world);
  const handingOver = createHandingOver({
    definition,
    world,
    target,
    onRoom: room.wake,
    signal: givingUp.signal,
  });
  const means = { sink: definition.name, world, signal };
  const running = Promise.all([
    repeat(collectRounds(collector, world), pause, means),
    repeat(handingOver.startDue, room.wait, means),
  ]);
  return {
    stop: async () => {
      stopping.abort();
      await running;
      const ended = new AbortController();
      const idle = handingOver.idle().then(() => ended.abort());
      await pause(drainMs, ended.signal);
      givingUp.abort();
      await idle;
      await target.close();
    },
  };
}

function collectRounds(collector: ItemCollector, { nowUs }: SinkWorld) {
  let replaysAtUs = 0;
  return async (): Promise<number> => {
    let isMore = await collector.collectNew();
    // A look that lies far ahead was dated by a clock that was set back since.
    if (Math.abs(replaysAtUs - nowUs()) > replayPollMs * 1000 || nowUs() >= replaysAtUs) {
      if (await collector.collectReplayed()) isMore = true;
      else replaysAtUs = nowUs() + replayPollMs * 1000;
    }
    return isMore ? moreMs : logPollMs;
  };
}

/** A round resolves with how long to wait before the next one. */
async function repeat(
  round: () => Promise<number>,
  wait: SinkWorld['pause'],
  { sink, world, signal }: { sink: string; world: SinkWorld; signal: AbortSignal },
): Promise<void> {
  let failed: string | null = null;
  while (!signal.aborted) {
    try {
      const waitMs = await round();
      if (failed !== null) world.logger.info({ sink }, 'a sink goes on');
      failed = null;
      await wait(waitMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      const reason = isAppError(error) ? errorText(error) : String(error);
      if (reason !== failed)
        world.logger.error({ sink, reason, err: error }, 'a sink cannot go on');
      failed = reason;
      await world.pause(retryMs, signal);
    }
  }
}
