/** The times at which the catalogue pauses and deletes a subscription that sends nothing (specification, Limits). */

import { dayUs } from '../core/terms/dates.ts';
import type { DeliveryMark, Registration } from './account.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

/** Time without activity after which a running subscription is paused. */
const inactivityPauseUs = 60 * dayUs;

/** Time after the last notification when a subscription is deleted. */
const cancellationUs = 365 * dayUs;

export interface Lifetime {
  lastActivityAtUs: number;
  /** Time of the last known notification; of the creation when there was none. */
  lastNotificationAtUs: number;
  pausesAtUs: number;
  cancelsAtUs: number;
}

/**
 * Computes the lifetime from the catalogue's fields, else from the store: the specification does not guarantee
 * `LastNotificationDate`. `lastDeliveryAtUs` is its last delivery to the receiver.
 */
export function lifetimeOf(input: {
  listed: CatalogueSubscription | null;
  registration: Registration | undefined;
  lastDeliveryAtUs: number | null;
  nowUs: number;
}): Lifetime {
  const { listed, registration, lastDeliveryAtUs, nowUs } = input;
  const latest = (times: (number | null | undefined)[]) => Math.max(...times.map((us) => us ?? 0));
  const notifiedAtUs = listed?.lastNotificationAtUs ?? lastDeliveryAtUs;
  const known = [notifiedAtUs, listed?.submittedAtUs, registration?.notifiedAtUs];
  const lastNotificationAtUs = latest(known) || nowUs;
  const lastActivityAtUs = latest([lastNotificationAtUs, registration?.activityAtUs]);
  return {
    lastActivityAtUs,
    lastNotificationAtUs,
    pausesAtUs: lastActivityAtUs + inactivityPauseUs,
    cancelsAtUs: lastNotificationAtUs + cancellationUs,
  };
}

/**
 * Returns the time of the last delivery to a subscription's path, with any credentials. Ignores times in the future,
 * from a clock that was ahead.
 */
export function lastDeliveryOf(
  name: string,
  marks: readonly DeliveryMark[],
  nowUs: number,
): number | null {
  const times = marks
    .filter((mark) => mark.subscription === name && mark.lastAtUs <= nowUs)
    .map((mark) => mark.lastAtUs);
  return times.length === 0 ? null : Math.max(...times);
}
