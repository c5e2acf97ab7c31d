/** What time does to a subscription: it is paused after 60 days of inactivity, cancelled after 365. */
import type { Subscription } from './subscription.ts';

const dayMs = 86_400_000;

/** Specification, Limits: inactivity before the automatic pause. */
export const inactivityMaxMs = 60 * dayMs;
/** Specification, Limits: time after the last notification before the automatic cancellation. */
export const silenceMaxMs = 365 * dayMs;

/**
 * True when the subscription is gone by `nowMs`. What counts as inactivity, and from when on a
 * subscription without any notification is counted, is not specified: here it is the latest of
 * submission, last notification and last order to run; and the submission.
 */
export function isCancelledBy(subscription: Subscription, nowMs: number): boolean {
  const { submittedMs, lastNotificationMs } = subscription;
  return nowMs >= (lastNotificationMs ?? submittedMs) + silenceMaxMs;
}

/** Pauses a subscription whose 60 days had passed by `nowMs`, as of the end of them. */
export function pauseIfInactive(subscription: Subscription, nowMs: number): void {
  const { submittedMs, lastNotificationMs, resumedMs } = subscription;
  if (subscription.status !== 'running') return;
  const activeMs = Math.max(submittedMs, lastNotificationMs ?? 0, resumedMs ?? 0);
  const inactiveMs = activeMs + inactivityMaxMs;
  if (nowMs < inactiveMs) return;
  subscription.status = 'paused';
  subscription.statusMs = inactiveMs;
}
