/** Tells whether a sink answers at all; one that does not is felt for with one item at a time. */
import { jittered } from '../domain/jitter.ts';
import { sinkRetryAfterMaxMs } from '../domain/sinks.ts';

/** Failures in a row, of more than one item, after which the sink counts as down. */
const failuresMax = 5;

/** Before jitter; it doubles with each probe that fails. */
const firstPauseMs = 1_000;

const pauseMsMax = 300_000;

export interface SinkFailure {
  /** The item's. */
  id: number;
  startedAtUs: number;
  /** Nothing can be handed over before somebody puts something right. */
  isMisconfigured: boolean;
  retryAfterMs: number | null;
}

export interface SinkHealth {
  /** True until the sink answered: took an item, or refused one. */
  isDown(): boolean;
  /** Until when nothing is handed over; in the past when nothing keeps it, or the clock was set back meanwhile. */
  untilUs(): number;
  noteAnswer(): void;
  noteFailure(failure: SinkFailure): void;
}

/** A single item that fails again and again has its own waits: it never keeps the others. */
export function createSinkHealth(io: { nowUs: () => number; random: () => number }): SinkHealth {
  let inARow = 0;
  let firstId: number | null = null;
  let isOfSeveral = false;
  let isDown = false;
  let probes = 0;
  let pause = { fromUs: 0, untilUs: 0 };

  const untilUs = () => (io.nowUs() < pause.fromUs ? 0 : pause.untilUs);
  const countUp = ({ id, isMisconfigured }: SinkFailure) => {
    inARow += 1;
    firstId ??= id;
    isOfSeveral ||= id !== firstId;
    isDown = isMisconfigured || (inARow >= failuresMax && isOfSeveral);
  };
  return {
    isDown: () => isDown,
    untilUs,
    noteAnswer: () => {
      if (isDown) pause = { fromUs: 0, untilUs: 0 };
      inARow = 0;
      firstId = null;
      isOfSeveral = false;
      isDown = false;
      probes = 0;
    },
    noteFailure: (failure) => {
      // What was on its way before the pause says nothing new.
      if (isDown && failure.startedAtUs < untilUs()) return;
      if (isDown) probes += 1;
      else countUp(failure);
      const ownMs = Math.min(pauseMsMax, firstPauseMs * 2 ** Math.min(probes, 20));
      const askedMs = Math.min(failure.retryAfterMs ?? 0, sinkRetryAfterMaxMs);
      const pauseMs = Math.max(isDown ? jittered(ownMs, io.random) : 0, askedMs);
      const fromUs = io.nowUs();
      pause = { fromUs, untilUs: Math.max(untilUs(), fromUs + Math.round(pauseMs * 1000)) };
    },
  };
}
