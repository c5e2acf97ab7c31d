/** The running subscriptions as the sender sees them: each with a stream of notifications of its own. */
import type { ProductView } from '../../filter/product-view.ts';
import type { EndpointAddress, PushSubscription, Subscriptions } from '../account.ts';
import { createRandom, type Random } from '../random.ts';
import {
  type AckIds,
  createNotificationBuilder,
  type NotificationBuilder,
  type NotificationEvent,
} from './notification.ts';

/** The receiver of a notification. */
export interface Recipient {
  readonly builder: NotificationBuilder;
  /** Draws the content of the bodies. */
  readonly contentRandom: Random;
  /** Draws the fates; null: they are those that the publisher draws for every event. */
  readonly random: Random | null;
  /**
   * Returns the address now: an edit shows between two attempts. When the subscription is gone, the last
   * one that it had, so that open attempts are finished. Whether the real service does so is not known.
   */
  address(): EndpointAddress;
  /** Notes for the subscription that the sender saw a success. */
  delivered(): void;
}

/** Returns the recipients of an event of a product. */
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
    const bodyRandom = createRandom(bodySeed);
    count += 1;
    return {
      builder: createNotificationBuilder({
        subscriptionId: subscription.id,
        random: bodyRandom,
        ackIds,
      }),
      contentRandom: createRandom(bodySeed ^ contentSeed),
      random,
      address: () => subscription.address,
      delivered: () => subscriptions.delivered(subscription),
    };
  };

  return (event, product) => {
    const matchesByFilter = new Map<string, boolean>();
    return subscriptions.listening(event).flatMap((subscription) => {
      // Created before the filter is asked, so that what a seed brings does not depend on filters.
      const recipient = recipients.get(subscription) ?? create(subscription);
      recipients.set(subscription, recipient);
      const { filter, matches } = subscription;
      // Subscriptions with the same filter share the work.
      const isMatch = matchesByFilter.get(filter) ?? matches(product);
      matchesByFilter.set(filter, isMatch);
      return isMatch ? [recipient] : [];
    });
  };
}
