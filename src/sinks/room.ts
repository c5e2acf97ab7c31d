/** How many more items of a sink may be queued. */
import { type Sinks, sinkWaitingMax } from '../domain/sinks.ts';

/** Replays stop short of the bound, so that what comes in now always has room. */
const replayedMax = sinkWaitingMax / 2;

export interface Room {
  /** Rejects with `unavailable`. */
  left(stream: 'new' | 'replayed'): Promise<number>;
  /** Says that so many were queued. */
  queued(count: number): void;
}

/**
 * All that waits counts, but dead letters that are tried again: these are as many as there are, and must not
 * keep what is new from being read. They are known by this: more wait than were queued. After a restart only those
 * beyond the bound are known, as nothing else goes beyond it.
 */
export function createRoom({ counts }: Pick<Sinks, 'counts'>, sink: string): Room {
  let retried = 0;
  let expected = sinkWaitingMax;
  return {
    left: async (stream) => {
      const waiting = (await counts()).find((one) => one.sink === sink)?.waiting ?? 0;
      retried = Math.min(waiting, retried + Math.max(0, waiting - expected));
      expected = waiting;
      const max = stream === 'new' ? sinkWaitingMax : replayedMax;
      return Math.max(0, max + retried - waiting);
    },
    queued: (count) => {
      expected += count;
    },
  };
}
