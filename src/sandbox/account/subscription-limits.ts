/** How many subscriptions an account may have, and how many of them may run. */
import type { ServiceSettings } from '../services/service-settings.ts';
import type { Subscription, SubscriptionStatus } from './subscription.ts';
import { SubscriptionRefusal } from './subscription-refusal.ts';

/** Throws SubscriptionRefusal (`limit`) when the account has no room for one more of that status. */
export function checkCreationLimits(
  account: readonly Subscription[],
  status: SubscriptionStatus,
  { runningMax, totalMax }: ServiceSettings,
): void {
  if (account.length >= totalMax) {
    throw new SubscriptionRefusal(
      'limit',
      `The maximum number of subscriptions (${totalMax}) has been reached. Delete one first.`,
    );
  }
  if (status === 'running' && countRunning(account) >= runningMax) throw tooManyRunning(runningMax);
}

/**
 * The status that an edit leads to; undefined when it stays. What the real service does when two run
 * already is not known: the settings say whether it refuses (`limit`) or does nothing.
 */
export function permittedStatus(
  others: readonly Subscription[],
  subscription: Subscription,
  wanted: SubscriptionStatus | undefined,
  { runningMax, resumeBeyondLimit }: ServiceSettings,
): SubscriptionStatus | undefined {
  if (wanted !== 'running' || subscription.status === 'running') return wanted;
  if (countRunning(others) < runningMax) return wanted;
  if (resumeBeyondLimit === 'refuse') throw tooManyRunning(runningMax);
  return undefined;
}

function countRunning(account: readonly Subscription[]): number {
  return account.filter(({ status }) => status === 'running').length;
}

function tooManyRunning(runningMax: number): SubscriptionRefusal {
  return new SubscriptionRefusal(
    'limit',
    `The maximum number of running subscriptions (${runningMax}) has been reached. Pause one first, or leave this one paused.`,
  );
}
