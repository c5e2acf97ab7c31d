/** Notes which subscription was delivered to last, and with which user name, without slowing intake. */
import type { Administration, DeliveryMark } from '../../domain/account.ts';
import { errorText } from '../../domain/app-error.ts';
import type { Completeness } from '../../domain/completeness.ts';
import type { Job } from '../../domain/job.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Outcome } from '../../receiver/app.ts';

/** How long a mark may wait in memory; what a crash takes is made good by the next delivery. */
const deliveryIntervalMs = 2_000;

/** Anyone with the password may invent names; beyond so many in one interval they are left out. */
const marksMax = 1_000;

interface DeliveryMarks extends Job {
  note(subscription: string | null, username: string): void;
}

/** Keeps the marks in the store every few seconds, if there are any. */
export function startDeliveryMarks(options: {
  administration: Pick<Administration, 'markDeliveries'>;
  nowUs: () => number;
  log: Logger;
}): DeliveryMarks {
  const { administration, nowUs, log } = options;
  let marks = new Map<string, DeliveryMark>();
  const keep = async () => {
    if (marks.size === 0) return;
    const kept = marks;
    marks = new Map();
    try {
      await administration.markDeliveries([...kept.values()]);
    } catch (error) {
      const reason = errorText(error);
      log.debug({ reason }, 'the times of the last deliveries could not be kept');
      marks = new Map([...new Map([...kept, ...marks])].slice(0, marksMax));
    }
  };
  return {
    ...repeat(keep, deliveryIntervalMs),
    note: (subscription, username) => {
      const key = `${subscription ?? ''} ${username}`;
      if (marks.size >= marksMax && !marks.has(key)) return;
      marks.set(key, { subscription, username, lastAtUs: nowUs() });
    },
  };
}

const uptimeIntervalMs = 60_000;

/** Keeps a mark now, every minute, and when it is stopped. While marks fail, as on a full disk, nothing is taken either. */
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
    // After a failure, a sleep of the machine, or with a clock set back, it was not up all the time in between.
    if (isBroken || toUs < lastUs || toUs - lastUs > 3 * uptimeIntervalMs * 1_000) fromUs = toUs;
    lastUs = toUs;
    try {
      await completeness.recordUptime({ fromUs, toUs });
      isBroken = false;
    } catch (error) {
      isBroken = true;
      const reason = errorText(error);
      log.debug({ reason }, 'that the receiver is up could not be noted');
    }
  };
  return repeat(mark, uptimeIntervalMs, mark());
}

const outcomeIntervalMs = 60_000;

interface OutcomeSummary extends Job {
  observe(outcome: Outcome): void;
}

/** Logs one line a minute, unless nothing happened. */
export function startOutcomeSummary(log: Logger): OutcomeSummary {
  let counts: Partial<Record<Outcome, number>> = {};
  const report = async () => {
    if (Object.keys(counts).length > 0) log.info(counts, 'requests since the last report');
    counts = {};
  };
  return {
    ...repeat(report, outcomeIntervalMs),
    observe: (outcome) => {
      counts[outcome] = (counts[outcome] ?? 0) + 1;
    },
  };
}

/** Runs the work at the interval, one run after the other, and once more at the stop. It does not keep the process running. */
function repeat(run: () => Promise<void>, intervalMs: number, first = Promise.resolve()): Job {
  let running = first;
  const timer = setInterval(() => {
    running = running.then(run);
  }, intervalMs);
  timer.unref();
  return {
    stop: () => {
      clearInterval(timer);
      return running.then(run);
    },
  };
}
