/** The running subscriptions as the sender sees them: each with a stream of notifications of its own. */

import type { ProductView } from '../../filter/product-view.ts';
import type { EndpointAddress, PushSubscription } from '../account/subscription.ts';
import type { Subscriptions } from '../account/subscriptions.ts';
import { createRandom, type Random } from '../random.ts';
import {
  type AckIds,
  createNotificationBuilder,
  type NotificationBuilder,
  type NotificationEvent,
} from './notification.ts';

/** Whom a notification is for. */
export interface Recipient {
  /** Writes its notifications. */
  readonly builder: NotificationBuilder;
  /** Draws what their bodies hold. */
  readonly contentRandom: Random;
  /** Draws their fates; null: they are those that the publisher draws for every event. */
  readonly random: Random | null;
  /**
   * Where it is sent to now: an edit shows between two attempts. When the subscription is gone, the
   * last address that it had: attempts in hand are finished, whatever becomes of the subscription.
   * Whether the real service finishes them is not known.
   */
  address(): EndpointAddress;
  /** Tells the subscription that the sender saw a success. */
  delivered(): void;
}

/** Gives those to whom an event of a product is owed. */
export type RecipientsOf = (event: NotificationEvent, product: ProductView) => readonly Recipient[];

// Any odd number does; this one spreads well (2^32 divided by the golden ratio).
const seedStep = 0x9e37_79b9;
const contentSeed = 0x51ed_270b;

/** Creates the view over an account. `seed` is that of the bodies. */
export function createRecipients(subscriptions: Subscriptions, seed: number): RecipientsOf {
  const recipients = new WeakMap<PushSubscription, Recipient>();
  const ackIds: AckIds = new Map();
  let count = 0;

  const create = (subscription: PushSubscription): Recipient => {
    const bodySeed = (seed + count * seedStep) | 0;
    // The first one has what a sandbox with one subscription has, so that a seed brings the same there.
    const random = count === 0 ? null : createRandom(~bodySeed);
    count += 1;
    return {
      builder: createNotificationBuilder({
        subscriptionId: subscription.id,
        random: createRandom(bodySeed),
        ackIds,
      }),
      contentRandom: createRandom(bodySeed ^ contentSeed),
      random,
      address: () => subscription.address,
      delivered: () => subscriptions.delivered(subscription),
    };
  };

  const recipientOf = (subscription: PushSubscription): Recipient => {
    const known = recipients.get(subscription) ?? create(subscription);
    recipients.set(subscription, known);
    return known;
  };

  return (event, product) => {
    const verdicts = new Map<string, boolean>();
    return subscriptions.listening(event).flatMap((subscription) => {
      // Before the filter is asked, so that what a seed brings does not depend on filters.
      const recipient = recipientOf(subscription);
      const { filter, matches } = subscription;
      // Subscriptions with the same filter share the work.
      const isOwed = verdicts.get(filter) ?? matches(product);
      verdicts.set(filter, isOwed);
      return isOwed ? [recipient] : [];
    });
  };
}

/** The ids of those to whom an event of a product would be owed, were they not paused. */
export function pausedRecipientIds(
  subscriptions: Pick<Subscriptions, 'paused'>,
  event: NotificationEvent,
  product: ProductView,
): string[] {
  const paused = subscriptions.paused(event).filter(({ matches }) => matches(product));
  return paused.map(({ id }) => id);
}
