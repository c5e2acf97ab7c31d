/** When the catalogue will pause a subscription by itself, and when it will delete it. */
import type { Registration } from '../../domain/administration.ts';
import type { CatalogueSubscription } from '../service/catalogue-subscription.ts';

export const dayUs = 86_400_000_000;
/** Specification, Limits: without activity for so long, a running subscription is paused. */
export const inactivityPauseUs = 60 * dayUs;
/** Specification, Limits: so long after the last notification, a subscription is deleted. */
export const cancellationUs = 365 * dayUs;

export interface Lifetime {
  lastActivityAtUs: number;
  /** The last notification that is known; the creation when there was none. */
  lastNotificationAtUs: number;
  pausesAtUs: number;
  cancelsAtUs: number;
}

/**
 * Reckons from what the catalogue shows, else from our own records: `LastNotificationDate` is not
 * among the fields that the specification promises. `lastDeliveryAtUs` is the last delivery that the
 * receiver took for it.
 */
export function lifetimeOf(known: {
  listed: CatalogueSubscription | undefined;
  registration: Registration | undefined;
  lastDeliveryAtUs: number | null;
  nowUs: number;
}): Lifetime {
  const { listed, registration, lastDeliveryAtUs, nowUs } = known;
  const latest = (...times: (number | null | undefined)[]) => {
    const there = times.filter((time) => typeof time === 'number');
    return there.length === 0 ? undefined : Math.max(...there);
  };
  const submittedAtUs = listed?.submittedAtUs;
  const notifiedAtUs = listed?.lastNotificationAtUs ?? lastDeliveryAtUs;
  const lastNotificationAtUs =
    latest(notifiedAtUs, submittedAtUs, registration?.notifiedAtUs) ?? nowUs;
  const lastActivityAtUs =
    latest(lastNotificationAtUs, registration?.activityAtUs) ?? lastNotificationAtUs;
  return {
    lastActivityAtUs,
    lastNotificationAtUs,
    pausesAtUs: lastActivityAtUs + inactivityPauseUs,
    cancelsAtUs: lastNotificationAtUs + cancellationUs,
  };
}
