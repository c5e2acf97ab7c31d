/** The simulated past day of the demo: its notifications are in the log, except those of one hour. */

import type { Registration } from '../../admin/account.ts';
import type { ListedEvent } from '../../admin/listing.ts';
import { type Io, stopped } from '../../core/cli/io.ts';
import { loadConfig } from '../../core/config/config.ts';
import { formatDateUs, hourOf, hourUs } from '../../core/terms/dates.ts';
import type { Delivery } from '../../core/terms/ports.ts';
import { type DesiredSubscription, notificationDelayUs } from '../../core/terms/subscription.ts';
import { openConfiguredStore, type Store } from '../../store/store.ts';
import { isExpected } from '../coverage/compare-page.ts';
import { openListing } from '../coverage/reconcile.ts';
import { reconcileSections } from '../coverage/settings.ts';

const hours = 24;

/** Number of hours from the start of the missing hour to the start of the current one. */
const missingHoursAgo = 5;

/** Returns the time at which the past begins: the start of an hour. */
export function pastStartUs(nowUs: number): number {
  return hourOf(nowUs) - hours * hourUs;
}

/** Returns the past of the sandbox. */
export function simulatedPast({ nowUs }: Pick<Io, 'nowUs'>, productsPerDay: number) {
  const now = nowUs();
  return { durationMs: (now - pastStartUs(now)) / 1_000, productsPerDay };
}

interface PastEvent extends ListedEvent {
  subscription: DesiredSubscription;
  event: DesiredSubscription['events'][number];
}

/**
 * Fills an empty store with the events that the catalogue lists, as if the subscriptions had run since the start of the
 * past. One hour is missing, until the receiver compares the day. Resolves with the numbers of stored and of missing
 * notifications. `io` has the settings of the receiver.
 */
export async function storePast(
  io: Io,
  store: Store,
  subscriptions: readonly DesiredSubscription[],
): Promise<{ stored: number; missing: number }> {
  const config = loadConfig(io, reconcileSections);
  const nowUs = io.nowUs();
  const fromUs = pastStartUs(nowUs);
  const missingHourUs = hourOf(nowUs) - missingHoursAgo * hourUs;
  const window = { fromUs, toUs: nowUs };
  const events = await listEvents(io, config, subscriptions, window).catch((error: unknown) => {
    throw io.signal.aborted ? stopped() : error;
  });
  const pushes = events.filter(({ eventUs }) => hourOf(eventUs) !== missingHourUs);
  const definedAtUs = fromUs + notificationDelayUs;
  for (const one of subscriptions) {
    await store.administration.commit({ save: registrationOf(one, nowUs), definedAtUs });
  }
  await store.completeness.recordUptime({ fromUs, toUs: nowUs });
  await Promise.all(pushes.map((one) => store.accept(deliveryOf(one, io))));
  return { stored: pushes.length, missing: events.length - pushes.length };
}

/** Opens the store of the settings, creates it if it is missing, and closes it when `use` has ended. */
export async function withStore<Result>(io: Io, use: (store: Store) => Promise<Result>) {
  const store = await openConfiguredStore(loadConfig(io, ['data']), io);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** Returns the events of all subscriptions, oldest first. */
async function listEvents(
  io: Io,
  config: Parameters<typeof openListing>[0],
  subscriptions: readonly DesiredSubscription[],
  window: { fromUs: number; toUs: number },
): Promise<PastEvent[]> {
  const { listing } = openListing(config, io, () => undefined);
  const found: PastEvent[] = [];
  for (const subscription of subscriptions) {
    for (const event of subscription.events) {
      const query = { event, filter: subscription.filter, ...window };
      for await (const page of listing.list(query, io.signal)) {
        const expected = page.events.filter((one) => isExpected(event, one));
        found.push(...expected.map((one) => ({ ...one, subscription, event })));
      }
    }
  }
  return found.toSorted((a, b) => a.eventUs - b.eventUs);
}

/** Returns the notification of an event, received within two seconds. */
function deliveryOf(
  { subscription, event, eventUs, productId, productName, record }: PastEvent,
  { newId, nowUs, random }: Pick<Io, 'newId' | 'nowUs' | 'random'>,
): Delivery {
  const untilNow = (us: number) => Math.min(nowUs(), Math.round(us));
  const notifiedUs = untilNow(eventUs + notificationDelayUs - 2_000_000 * random());
  const value = JSON.parse(new TextDecoder().decode(record ?? undefined) || '{}');
  // The catalogue lists the newest record: that of a publication had not been modified.
  if (event === 'created') value.ModificationDate = value.PublicationDate;
  const notification = {
    ...{ SubscriptionEvent: event, ProductId: productId, ProductName: productName },
    ...{ NotificationDate: formatDateUs(notifiedUs), AckId: newId(), value },
  };
  return {
    body: new TextEncoder().encode(JSON.stringify(notification)),
    subscription: subscription.name,
    receivedAtUs: untilNow(notifiedUs + 2_000_000 * random() ** 2),
    source: subscription.type,
    headers: [],
  };
}

/** Returns a registration that `register` completes. */
function registrationOf(one: DesiredSubscription, atUs: number): Registration {
  return {
    ...one,
    ...{ subscriptionId: null, earlierIds: [], unfinished: false, origin: 'flags' },
    ...{ credentialsDigest: null, runningSeenAtUs: null, pausedSeenAtUs: null },
    ...{ activityAtUs: atUs, notifiedAtUs: atUs, changedByPerson: false },
  };
}
