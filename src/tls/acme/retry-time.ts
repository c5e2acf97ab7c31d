/** When to try again after failures, and how often at all: gentle with the authority's limits. */
import type { RenewalState } from './renewal-state.ts';

const minuteUs = 60_000_000;
const dayUs = 24 * 60 * minuteUs;

/** The pauses after the first failures; the last one stays. */
const pausesUs = [1, 2, 5, 10, 30, 60, 120, 240, 360].map((minutes) => minutes * minuteUs);
/** A pause may be so much longer, so that many receivers do not come back together. */
const jitterShare = 1 / 4;

/**
 * The time of the next try after `failures` in a row (1 for the first). What the authority asks for
 * counts where it is longer.
 */
export function nextTryTime(
  failures: number,
  failed: { nowUs: number; retryAfterMs: number | null; random: () => number },
): number {
  const pauseUs = pausesUs[Math.min(failures, pausesUs.length) - 1] ?? 0;
  const waitUs = Math.max(pauseUs, (failed.retryAfterMs ?? 0) * 1000);
  return failed.nowUs + Math.round(waitUs * (1 + jitterShare * failed.random()));
}

/** True while a failure is too fresh. A clock that was set back must not stretch the pause. */
export function isWaiting(state: RenewalState, nowUs: number): boolean {
  const { nextTryAtUs, lastAttemptAtUs } = state;
  if (nextTryAtUs === null || nowUs >= nextTryAtUs) return false;
  return lastAttemptAtUs === null || nowUs >= lastAttemptAtUs;
}

/**
 * The longest time that a certificate counts as just issued, and the share of its life. At one in two days an
 * authority that errs for ever stays below Let's Encrypt's five in a week.
 */
const freshUsMax = 2 * dayUs;
const freshShare = 1 / 4;

/**
 * Until when the certificate in use is too new to be replaced by itself; null when it is not. One that
 * is due at once shows a clock that is wrong or an authority that errs, and so would the next one be.
 */
export function freshUntilUs(
  { lastSuccessAtUs }: RenewalState,
  nowUs: number,
  { notBefore, notAfter }: { notBefore: Date; notAfter: Date },
): number | null {
  // A success in the future: the clock was set back.
  if (lastSuccessAtUs === null || nowUs < lastSuccessAtUs) return null;
  const lifetimeUs = (notAfter.getTime() - notBefore.getTime()) * 1000;
  const untilUs = lastSuccessAtUs + Math.min(freshUsMax, lifetimeUs * freshShare);
  return nowUs < untilUs ? Math.round(untilUs) : null;
}

/** So many certificates in 24 hours: enough for every honest need, below every authority's limit. */
const issuesPerDay = 5;
/** What lives shorter than this must be a mistake, and is not worth more orders. */
const shortestLifetimeUs = 60 * minuteUs;

/**
 * While the limit of the day is reached: when it ends; else null. Let's Encrypt gives five certificates
 * for the same name in a week; those that live for hours need more, from authorities that issue such.
 */
export function capEndsAtUs(
  state: RenewalState,
  nowUs: number,
  certificate: { notBefore: Date; notAfter: Date } | null,
): number | null {
  const lifetimeUs =
    certificate === null
      ? Number.POSITIVE_INFINITY
      : (certificate.notAfter.getTime() - certificate.notBefore.getTime()) * 1000;
  const countedUs = Math.max(lifetimeUs, shortestLifetimeUs);
  const issuesMax = Math.max(issuesPerDay, Math.ceil((4 * dayUs) / countedUs));
  // Those from the future, as a clock was set back, are of no day that is known.
  const issued = state.issuedAtUs.filter((atUs) => atUs > nowUs - dayUs && atUs <= nowUs);
  const first = issued.at(-issuesMax);
  return first === undefined ? null : first + dayUs;
}
