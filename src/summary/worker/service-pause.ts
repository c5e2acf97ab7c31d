/** Gives a service that fails time to recover: the longer it has failed, the more. */
import { jittered } from '../../domain/jitter.ts';
import type { FaultScope } from '../chat/inference-fault.ts';

/** Before jitter; it doubles with each failure. */
const firstPauseMs = 30_000;
/** With jitter. */
const pauseMsMax = 600_000;
/** Somebody has to put it right, which takes its time. */
const settingsPauseMs = 900_000;
/** A service that asks for more is asked again after this all the same. */
const retryAfterMsMax = 3_600_000;

/** The least for a person who waits, also where `Retry-After` is 0 or in the past. */
const attendedPauseMsMin = 1_000;

export interface ServicePause {
  /** Until when nothing is sent; 0 when nothing keeps it. */
  untilUs(): number;
  /** True after a failure, until an answer came: then one request at a time feels the way. */
  isProbing(): boolean;
  /** Whether the current pause has the length that the service asked for (`Retry-After`). */
  isAsked(): boolean;
  /** Notes a failure that was not a job's own; returns until when nothing is sent. */
  noteFault(scope: FaultScope, retryAfterMs: number | null): number;
  /** Ends the failures. In a pause it does nothing: that answer was on its way before the pause began. */
  noteAnswer(): void;
}

/** `isAttended`: a person waits for the work, so that a short `Retry-After` leads to a short pause. */
export function createServicePause(
  io: { nowUs: () => number; random: () => number },
  { isAttended = false }: { isAttended?: boolean } = {},
): ServicePause {
  let failures = 0;
  let isAsked = false;
  let pause = { fromUs: 0, untilUs: 0 };
  // A pause that begins in the future was begun by a clock that ran ahead: it is over.
  const untilUs = () => (io.nowUs() < pause.fromUs ? 0 : pause.untilUs);
  return {
    untilUs,
    isProbing: () => failures > 0,
    isAsked: () => isAsked,
    noteFault: (scope, retryAfterMs) => {
      const ownMs =
        scope === 'settings'
          ? jittered(settingsPauseMs, io.random)
          : Math.min(pauseMsMax, jittered(firstPauseMs * 2 ** Math.min(failures, 10), io.random));
      const askedMs = Math.min(retryAfterMs ?? 0, retryAfterMsMax);
      failures += 1;
      isAsked = isAttended && retryAfterMs !== null && scope === 'service';
      const pauseMs = isAsked ? Math.max(askedMs, attendedPauseMsMin) : Math.max(askedMs, ownMs);
      const fromUs = io.nowUs();
      pause = { fromUs, untilUs: Math.max(untilUs(), fromUs + Math.round(pauseMs * 1000)) };
      return pause.untilUs;
    },
    noteAnswer: () => {
      if (io.nowUs() < untilUs()) return;
      failures = 0;
      pause = { fromUs: 0, untilUs: 0 };
    },
  };
}
