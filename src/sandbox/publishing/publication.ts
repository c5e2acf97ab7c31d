/** Publishes events of products step by step: to the catalogue, the ledger and the subscriptions. */

import type { Random } from '../clock.ts';
import type { Dispatcher, Recipient, RecipientsOf } from '../delivery/dispatcher.ts';
import { type LiveFaults, planContent, planDelivery, planShape } from '../delivery/faults.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import type { ProductGenerator } from '../products/product-generator.ts';
import type { CatalogueProduct } from '../products/record.ts';
import type { EventLedger } from './events.ts';
import type { Holdings } from './holdings.ts';
import type { StoredProduct } from './record-archive.ts';

/** Source of products: the generator, or a file of records; `next` returns undefined at its end. */
export type PublicationSource = Omit<ProductGenerator, 'next'> & {
  next(publicationMs: number): CatalogueProduct | undefined;
};

export interface PublicationOptions {
  readonly source: PublicationSource;
  readonly recipientsOf: RecipientsOf;
  /**
   * Adds an event to the queues of the running pull subscriptions that match; returns the sequences of the entries
   * in the delivery record (default: none).
   */
  readonly enqueue?: (event: NotificationEvent, stored: StoredProduct, atMs: number) => number[];
  /** Returns the ids of the paused subscriptions that match an event (default: none). */
  readonly pausedIdsOf?: (event: NotificationEvent, product: StoredProduct['view']) => string[];
  readonly holdings: Pick<Holdings, 'apply'>;
  readonly ledger?: Pick<EventLedger, 'add'>;
  readonly dispatcher: Pick<Dispatcher, 'dispatch'>;
  readonly random: Random;
  readonly faults: Pick<LiveFaults, 'current'>;
  /** Shares of the products, 0 to 1, that are modified and deleted later. */
  readonly modifiedShare: number;
  readonly deletedShare: number;
  /** Share of the modified products whose checksums are corrected later (default: 0). */
  readonly secondModifiedShare?: number;
  /** Share of the products that query results show with a delay (default: 0), and its maximum, ms, from 1. */
  readonly lateShare?: number;
  readonly lateMaxMs?: number;
}

/** A published product in its current state. Times are ms since 1970. */
interface LiveProduct {
  latest: CatalogueProduct;
  /** Time of its publication or latest change in the catalogue. */
  changedMs: number;
  /** Delay from a change in the catalogue to the notification, ms. */
  readonly delayMs: number;
  /** Time from which query results contain it. */
  readonly shownFromMs: number;
}

/** Time of an event. Past events are not notified. */
export interface Moment {
  /** Due time of notifications; whole ms since 1970. */
  readonly atMs: number;
  readonly past: boolean;
}

/** Change of a product; a correction is a second modification. */
type Change = NotificationEvent | 'corrected';

/** A change that is due at step number `step`. */
interface FollowUp {
  readonly product: LiveProduct;
  readonly change: Exclude<Change, 'created'>;
  readonly step: number;
}

// The two documented bodies that contain both times were sent 46 and 48 s after the publication.
const catalogueDelayMs = [46_000, 48_000] as const;
const liveMax = 1_000;
const followUpStepsMax = 20;

const dateFields: Readonly<Record<NotificationEvent, string>> = {
  created: 'PublicationDate',
  modified: 'ModificationDate',
  deleted: 'DeletionDate',
};

/** Shared, because most events of a long past have no deliveries. */
const none: readonly never[] = [];

export type Publication = ReturnType<typeof createPublication>;

/** Creates the publication of products, one at a time, and their changes. */
export function createPublication(options: PublicationOptions) {
  const { source, random, lateShare = 0, lateMaxMs = 1 } = options;
  const live = new Set<LiveProduct>();
  const followUps = createFollowUps(options);
  const publishEvent = createEventPublisher(options);
  let step = 0;

  const publish = (change: Change, product: LiveProduct, moment: Moment) => {
    // Drawn even without recipients, so that subscriptions do not affect later draws.
    const plans = moment.past ? null : drawEventPlans(options);
    const isDeletion = change === 'deleted';
    const record = applyChange(source, change, product, moment.atMs);
    live.delete(product);
    if (isDeletion) followUps.cancel(product);
    else live.add(product);
    const [oldest] = live.size > liveMax ? live : [];
    if (oldest) live.delete(oldest);
    const shownFromMs = isDeletion ? moment.atMs : Math.max(moment.atMs, product.shownFromMs);
    publishEvent(
      change === 'corrected' ? 'modified' : change,
      record,
      { ...moment, shownFromMs },
      plans,
    );
  };

  const publishNext = (moment: Moment) => {
    const delayMs = random.integer(...catalogueDelayMs);
    const changedMs = moment.atMs - delayMs;
    const latest = source.next(changedMs);
    if (latest === undefined) return undefined;
    // Drawn only if set, so that the results of a seed stay the same without it.
    const isDelayed = lateShare > 0 && random.chance(lateShare);
    const shownFromMs = moment.atMs + (isDelayed ? random.integer(1, lateMaxMs) : 0);
    const product = { latest, changedMs, delayMs, shownFromMs };
    publish('created', product, moment);
    return product;
  };

  return {
    /**
     * Publishes up to `count` products, or changes up to `count` of the recently published or changed ones,
     * oldest first; returns the number of events.
     */
    publish: (event: NotificationEvent, count: number, moment: () => Moment): number => {
      if (event !== 'created') {
        const products = [...live].slice(0, count);
        for (const product of products) publish(event, product, moment());
        return products.length;
      }
      let published = 0;
      while (published < count && publishNext(moment())) published += 1;
      return published;
    },
    /**
     * Publishes a product, if requested, and the changes of earlier products that are due; without a
     * product, the next planned changes. Returns what was published.
     */
    step: (moment: Moment, withProduct: boolean): 'product' | 'changes' | 'nothing' => {
      const product = withProduct ? publishNext(moment) : undefined;
      if (product) {
        step += 1;
        followUps.plan(product, step);
      } else {
        const nextStep = followUps.nextStep();
        if (nextStep === undefined) return 'nothing';
        step = Math.max(step + 1, nextStep);
      }
      for (const followUp of followUps.removeDue(step)) {
        publish(followUp.change, followUp.product, moment);
      }
      return product ? 'product' : 'changes';
    },
  };
}

/** Returns the record after a change, which happens before the notification. */
function applyChange(
  source: PublicationSource,
  change: Change,
  product: LiveProduct,
  atMs: number,
) {
  if (change === 'created') return product.latest;
  product.changedMs = Math.max(atMs - product.delayMs, product.changedMs + 1);
  if (change === 'deleted') return source.deleted(product.latest, product.changedMs);
  product.latest = source.modified(product.latest, product.changedMs);
  return product.latest;
}

type EventPlans = ReturnType<typeof drawEventPlans>;

function drawEventPlans({ faults, random }: Pick<PublicationOptions, 'faults' | 'random'>) {
  const rates = faults.current();
  return { shape: planShape(rates, random), plan: planDelivery(rates, random) };
}

/** Creates the function that applies an event to the holdings, notifies subscriptions and adds it to the ledger. */
function createEventPublisher(options: PublicationOptions) {
  const { holdings, ledger, recipientsOf, enqueue, pausedIdsOf, dispatcher, faults } = options;
  return (
    event: NotificationEvent,
    record: StoredProduct['record'],
    { atMs, shownFromMs }: { atMs: number; shownFromMs: number },
    plans: EventPlans | null,
  ) => {
    const stored = holdings.apply(event, record, shownFromMs);
    const { view } = stored;
    const notify = (recipient: Recipient, common: EventPlans) => {
      const { random, contentRandom, builder } = recipient;
      const { shape, plan } = random === null ? common : drawEventPlans({ faults, random });
      const content = planContent(faults.current(), contentRandom);
      const notification = builder.build({ event, product: record, atMs, shape, content });
      return dispatcher.dispatch(notification, plan, recipient);
    };
    const deliveries =
      plans === null
        ? none
        : [
            ...recipientsOf(event, view).map((one) => notify(one, plans)),
            ...(enqueue?.(event, stored, atMs) ?? none),
          ];
    ledger?.add({
      event,
      productId: record.Id,
      productName: record.Name,
      dateUs: view.dateUs(dateFields[event]),
      atMs,
      shownFromMs,
      stored,
      deliveries: deliveries.length === 0 ? none : deliveries,
      pausedIds: (plans === null ? null : pausedIdsOf?.(event, view)) ?? none,
    });
  };
}

/** Creates an empty plan of changes after publication. */
function createFollowUps(options: PublicationOptions) {
  const { random, modifiedShare, secondModifiedShare = 0, deletedShare } = options;
  let planned: FollowUp[] = [];
  return {
    /** Draws the changes of a product published at `step`. */
    plan: (product: LiveProduct, step: number) => {
      // Counted in steps, not in time, so that a seed gives the same order at every rate.
      const modifiedStep = step + random.integer(1, followUpStepsMax);
      const isModified = random.chance(modifiedShare);
      const deletedStep = (isModified ? modifiedStep : step) + random.integer(1, followUpStepsMax);
      const isDeleted = random.chance(deletedShare);
      // Drawn only if set, so that the results of a seed stay the same without it.
      const isCorrected =
        isModified && secondModifiedShare > 0 && random.chance(secondModifiedShare);
      const correctedStep = isCorrected ? modifiedStep + random.integer(1, followUpStepsMax) : 0;
      const afterAll = Math.max(deletedStep, correctedStep + 1);
      if (isModified) planned.push({ product, change: 'modified', step: modifiedStep });
      if (isCorrected) planned.push({ product, change: 'corrected', step: correctedStep });
      if (isDeleted) planned.push({ product, change: 'deleted', step: afterAll });
      planned.sort((one, other) => one.step - other.step);
    },
    /** Removes and returns the changes due by a step, in order. */
    removeDue: (step: number): FollowUp[] => {
      const due = planned.filter((followUp) => followUp.step <= step);
      planned = planned.slice(due.length);
      return due;
    },
    /** Returns the step of the next change; undefined if there is none. */
    nextStep: () => planned[0]?.step,
    /** Cancels the planned changes of a product. */
    cancel: (product: LiveProduct) => {
      planned = planned.filter((followUp) => followUp.product !== product);
    },
  };
}
