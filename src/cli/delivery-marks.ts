/** Notes which subscription was delivered to last, and with which user name, without slowing intake. */

import type { Administration, DeliveryMark } from '../domain/administration.ts';
import { errorText } from '../domain/app-error.ts';
import type { Logger } from '../domain/ports.ts';

/** How long a mark may wait in memory; what a crash takes is made good by the next delivery. */
const intervalMs = 2_000;
/** Anyone with the password may invent names; beyond so many in one interval they are left out. */
const marksMax = 1_000;

export interface DeliveryMarks {
  note(subscription: string | null, username: string): void;
  /** Keeps what has been noted since the last time, and ends. */
  stop(): Promise<void>;
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
  let keeping = Promise.resolve();
  const timer = setInterval(() => {
    keeping = keeping.then(keep);
  }, intervalMs);
  timer.unref();
  return {
    note: (subscription, username) => {
      const key = `${subscription ?? ''} ${username}`;
      if (marks.size >= marksMax && !marks.has(key)) return;
      marks.set(key, { subscription, username, lastAtUs: nowUs() });
    },
    stop: async () => {
      clearInterval(timer);
      await keeping;
      await keep();
    },
  };
}
