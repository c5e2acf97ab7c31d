/** Records when the receiver runs: hours without it are no losses of the catalogue. */
import type { Job } from '../../core/host/job.ts';
import { errorText } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { repeat } from '../../receiver/own-jobs.ts';
import type { Completeness } from './completeness.ts';

const uptimeIntervalMs = 60_000;

/** Records a heartbeat at the start, every minute, and at the stop. It fails when intake fails, as on a full disk. */
export function startUptimeMarks(options: {
  completeness: Pick<Completeness, 'recordUptime'>;
  nowUs: () => number;
  log: Logger;
}): Job {
  const { completeness, nowUs, log } = options;
  let fromUs = nowUs();
  let lastUs = fromUs;
  let isBroken = false;
  const mark = async () => {
    const toUs = nowUs();
    // After a failure, a sleep of the machine, or a clock set back, the uptime has a gap.
    if (isBroken || toUs < lastUs || toUs - lastUs > 3 * uptimeIntervalMs * 1_000) fromUs = toUs;
    lastUs = toUs;
    try {
      await completeness.recordUptime({ fromUs, toUs });
      isBroken = false;
    } catch (error) {
      isBroken = true;
      const reason = errorText(error);
      log.debug({ reason }, 'failed to record heartbeat');
    }
  };
  return repeat(mark, uptimeIntervalMs, mark());
}
