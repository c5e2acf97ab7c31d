/** Notes that the receiver is up, so that a later start knows since when events may be missing. */
import { errorText } from '../domain/app-error.ts';
import type { Completeness } from '../domain/completeness.ts';
import type { Logger } from '../domain/ports.ts';

const intervalMs = 60_000;

/** Keeps a mark now, every minute, and when it is stopped. While marks fail, as on a full disk, nothing is taken either. */
export function startUptimeMarks(options: {
  completeness: Pick<Completeness, 'markUp'>;
  nowUs: () => number;
  log: Logger;
}): { stop(): Promise<void> } {
  const { completeness, nowUs, log } = options;
  let fromUs = nowUs();
  let lastUs = fromUs;
  let isBroken = false;
  const mark = async () => {
    const toUs = nowUs();
    // After a failure, a sleep of the machine, or with a clock set back, it was not up all the time in between.
    if (isBroken || toUs < lastUs || toUs - lastUs > 3 * intervalMs * 1_000) fromUs = toUs;
    lastUs = toUs;
    try {
      await completeness.markUp({ fromUs, toUs });
      isBroken = false;
    } catch (error) {
      isBroken = true;
      const reason = errorText(error);
      log.debug({ reason }, 'that the receiver is up could not be noted');
    }
  };
  let marking = mark();
  const timer = setInterval(() => {
    marking = marking.then(mark);
  }, intervalMs);
  timer.unref();
  return {
    stop: async () => {
      clearInterval(timer);
      await marking;
      await mark();
    },
  };
}
