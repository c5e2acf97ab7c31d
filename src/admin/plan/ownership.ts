/** Tells our subscriptions in the account from those of others, which are never touched. */
import type { Registration } from '../../domain/administration.ts';
import {
  type DesiredSubscription,
  nameInEndpoint,
  subscriptionEvents,
} from '../../domain/subscription.ts';
import type { CatalogueSubscription } from '../service/catalogue-subscription.ts';

export interface SortedAccount {
  /** Name -> ours, at least one each; more than one while a replacement is unfinished. */
  ours: Map<string, CatalogueSubscription[]>;
  strangers: CatalogueSubscription[];
}

/**
 * Ours is a subscription whose Id is remembered, or whose endpoint is under our public URL, or under
 * an earlier one that the user names. Cancelled ones are gone and left out.
 */
export function sortAccount(
  listed: readonly CatalogueSubscription[],
  known: {
    publicUrl: string;
    movedFrom?: string | undefined;
    registrations: readonly Registration[];
  },
): SortedAccount {
  const { publicUrl, movedFrom, registrations } = known;
  const remembered = new Map(registrations.map((one) => [one.subscriptionId, one.name]));
  const ours = new Map<string, CatalogueSubscription[]>();
  const strangers: CatalogueSubscription[] = [];
  for (const subscription of listed) {
    const { id, endpoint, status } = subscription;
    if (status === 'cancelled') continue;
    const name =
      remembered.get(id) ??
      (endpoint === null ? null : nameInEndpoint(publicUrl, endpoint)) ??
      (endpoint === null || movedFrom === undefined ? null : nameInEndpoint(movedFrom, endpoint));
    if (name === null) strangers.push(subscription);
    else ours.set(name, [...(ours.get(name) ?? []), subscription]);
  }
  return { ours, strangers };
}

/** What an account holds of ours, as if it had been wanted so: for a store that remembers nothing. */
export function heldDesired(
  listed: readonly CatalogueSubscription[],
  publicUrl: string,
): DesiredSubscription[] {
  const { ours } = sortAccount(listed, { publicUrl, registrations: [] });
  return [...ours].flatMap(([name, [first]]) => {
    if (first === undefined) return [];
    const events = subscriptionEvents.filter((event) => first.events.includes(event));
    const status = first.status === 'paused' ? 'paused' : 'running';
    return events.length === 0 ? [] : [{ name, events, filter: first.filter, status }];
  });
}
