/** Lets one thing happen to a product: the catalogue shows it, the ledger notes it, subscriptions are told. */
import type { Dispatcher } from '../delivery/dispatcher.ts';
import { planContent, planDelivery, planShape } from '../delivery/fault-plan.ts';
import type { FaultSettings, Faults } from '../delivery/faults.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import type { RecipientsOf } from '../delivery/recipients.ts';
import type { CatalogueProduct, DeletedProduct } from '../products/catalogue-product.ts';
import type { Random } from '../random.ts';
import type { EventLedger } from './event-ledger.ts';
import type { Change, FollowUps } from './follow-ups.ts';
import type { Holdings } from './holdings.ts';
import type { LiveProduct, LiveProducts } from './live-products.ts';
import type { PublicationSource } from './publication-source.ts';
import type { HeldProduct } from './record-archive.ts';

export interface PublishEventOptions {
  readonly source: PublicationSource;
  readonly recipientsOf: RecipientsOf;
  /** Ids of the subscriptions that an event would be owed to, were they not paused; none unless told. */
  readonly pausedIdsOf?: (event: NotificationEvent, product: HeldProduct['view']) => string[];
  /** Takes in all that is published. */
  readonly holdings: Pick<Holdings, 'note'>;
  readonly ledger?: Pick<EventLedger, 'note'>;
  readonly dispatcher: Pick<Dispatcher, 'dispatch'>;
  readonly random: Random;
  readonly faults: FaultSettings;
}

/** When something happens, and whether it is the past: then nobody is told. */
export interface Moment {
  /** When notifications are due; whole ms since 1970. */
  readonly atMs: number;
  readonly past: boolean;
}

export type PublishEvent = (
  change: 'created' | Change,
  product: LiveProduct,
  moment: Moment,
) => void;

/** Creates what publishes; `live` and `followUps` are kept up to date. */
export function createPublishEvent(
  options: PublishEventOptions,
  live: LiveProducts,
  followUps: FollowUps,
): PublishEvent {
  const { source, holdings, random, faults, ledger } = options;
  return (change, product, moment) => {
    // Drawn even when nobody is listening, so that subscriptions do not change what is published.
    const fate = moment.past ? null : drawFate(faults.current(), random);
    const notified = changed(source, change, product, moment.atMs);
    const event = change === 'corrected' ? 'modified' : change;
    live.remove(product);
    if (event === 'deleted') followUps.cancel(product);
    else live.add(product);
    const shownFromMs =
      event === 'deleted' ? moment.atMs : Math.max(moment.atMs, product.shownFromMs);
    const held = holdings.note(event, notified, shownFromMs);
    const { view } = held;
    const deliveries = fate === null ? [] : notify(options, event, held, moment.atMs, fate);
    ledger?.note({
      event,
      productId: notified.Id,
      productName: notified.Name,
      dateUs: view.dateUs(dateFields[event]),
      atMs: moment.atMs,
      shownFromMs,
      held,
      deliveries: deliveries.length === 0 ? none : deliveries,
      pausedIds: (moment.past ? null : options.pausedIdsOf?.(event, view)) ?? none,
    });
  };
}

/** What an event is dated by. */
const dateFields: Readonly<Record<NotificationEvent, string>> = {
  created: 'PublicationDate',
  modified: 'ModificationDate',
  deleted: 'DeletionDate',
};

/** Shared, as most events of a long past have none. */
const none: readonly never[] = [];

/** The product after a change; what the catalogue does, it does some time before it tells. */
function changed(
  source: PublicationSource,
  change: 'created' | Change,
  product: LiveProduct,
  atMs: number,
): CatalogueProduct | DeletedProduct {
  if (change === 'created') return product.latest;
  product.changedMs = Math.max(atMs - product.delayMs, product.changedMs + 1);
  if (change === 'deleted') return source.deleted(product.latest, product.changedMs);
  product.latest = source[change](product.latest, product.changedMs);
  return product.latest;
}

function notify(
  { recipientsOf, dispatcher, faults }: PublishEventOptions,
  event: NotificationEvent,
  { record, view }: HeldProduct,
  atMs: number,
  fate: ReturnType<typeof drawFate>,
): number[] {
  return recipientsOf(event, view).map((recipient) => {
    const { shape, plan } = recipient.random ? drawFate(faults.current(), recipient.random) : fate;
    const content = planContent(faults.current(), recipient.contentRandom);
    const notification = recipient.builder.build({ event, product: record, atMs, shape, content });
    return dispatcher.dispatch(notification, plan, recipient);
  });
}

function drawFate(faults: Faults, random: Random) {
  return { shape: planShape(faults, random), plan: planDelivery(faults, random) };
}
