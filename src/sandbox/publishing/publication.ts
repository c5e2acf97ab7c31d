/** What happens to products step by step: the catalogue shows it, the ledger notes it, subscriptions are notified. */

import type { Random } from '../clock.ts';
import type { Dispatcher, Recipient, RecipientsOf } from '../delivery/dispatcher.ts';
import { type LiveFaults, planContent, planDelivery, planShape } from '../delivery/faults.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import type { ProductGenerator } from '../products/product-generator.ts';
import type { CatalogueProduct } from '../products/record.ts';
import type { EventLedger } from './events.ts';
import type { Holdings } from './holdings.ts';
import type { StoredProduct } from './record-archive.ts';

/** Where products come from: the generator, or a file of records, which has no more at some time. */
export type PublicationSource = Omit<ProductGenerator, 'next'> & {
  next(publicationMs: number): CatalogueProduct | undefined;
};

export interface PublicationOptions {
  readonly source: PublicationSource;
  readonly recipientsOf: RecipientsOf;
  /** Returns the ids of the paused subscriptions that an event matches; none by default. */
  readonly pausedIdsOf?: (event: NotificationEvent, product: StoredProduct['view']) => string[];
  readonly holdings: Pick<Holdings, 'apply'>;
  readonly ledger?: Pick<EventLedger, 'add'>;
  readonly dispatcher: Pick<Dispatcher, 'dispatch'>;
  readonly random: Random;
  readonly faults: Pick<LiveFaults, 'current'>;
  /** Shares of the products, 0 to 1, that are modified and deleted later. */
  readonly modifiedShare: number;
  readonly deletedShare: number;
  /** Share of those that were modified whose checksums are corrected after that; 0 by default. */
  readonly secondModifiedShare?: number;
  /** Share of the products that the lists show late, 0 by default, and how late at most, from 1 ms on. */
  readonly lateShare?: number;
  readonly lateMaxMs?: number;
}

/** A published product; what is not readonly follows its changes. Times are ms since 1970. */
interface LiveProduct {
  latest: CatalogueProduct;
  /** Its publication or latest change in the catalogue. */
  changedMs: number;
  /** Time that the catalogue takes from a change of it to the notification, in ms. */
  readonly delayMs: number;
  /** From when on the lists show it. */
  readonly shownFromMs: number;
}

/** The time of an event; nobody is notified of the past. */
export interface Moment {
  /** When notifications are due; whole ms since 1970. */
  readonly atMs: number;
  readonly past: boolean;
}

/** What happens to a product; a correction is a second modification. */
type Change = NotificationEvent | 'corrected';

/** A change that is due once the publisher has made its step number `step`. */
interface FollowUp {
  readonly product: LiveProduct;
  readonly change: Exclude<Change, 'created'>;
  readonly step: number;
}

// The two documented bodies that allow the comparison came 46 and 48 s after the publication.
const catalogueDelayMs = [46_000, 48_000] as const;
const liveMax = 1_000;
const followUpStepsMax = 20;

const dateFields: Readonly<Record<NotificationEvent, string>> = {
  created: 'PublicationDate',
  modified: 'ModificationDate',
  deleted: 'DeletionDate',
};

/** Shared, as most events of a long past have none. */
const none: readonly never[] = [];

export type Publication = ReturnType<typeof createPublication>;

/** Creates what publishes products, one at a time, and their changes. */
export function createPublication(options: PublicationOptions) {
  const { source, random, lateShare = 0, lateMaxMs = 1 } = options;
  const live = new Set<LiveProduct>();
  const followUps = createFollowUps(options);
  const publishEvent = createEventPublisher(options);
  let step = 0;

  const publish = (change: Change, product: LiveProduct, moment: Moment) => {
    // Drawn even when nobody is listening, so that subscriptions do not change what is published.
    const plans = moment.past ? null : drawEventPlans(options);
    const isDeletion = change === 'deleted';
    const record = changed(source, change, product, moment.atMs);
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
    // Drawn only where it is set: without it, a seed brings what it always did.
    const isDelayed = lateShare > 0 && random.chance(lateShare);
    const shownFromMs = moment.atMs + (isDelayed ? random.integer(1, lateMaxMs) : 0);
    const product = { latest, changedMs, delayMs, shownFromMs };
    publish('created', product, moment);
    return product;
  };

  return {
    /**
     * Publishes up to `count` products, or changes as many of those that were published or changed last,
     * oldest first; returns how many there were.
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
     * Publishes a product, if requested, and the changes of earlier ones that are due with it; without a
     * product, the next changes that are planned. Returns what there was.
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

/** Returns the record after a change, which the catalogue makes some time before it notifies. */
function changed(source: PublicationSource, change: Change, product: LiveProduct, atMs: number) {
  if (change === 'created') return product.latest;
  product.changedMs = Math.max(atMs - product.delayMs, product.changedMs + 1);
  if (change === 'deleted') return source.deleted(product.latest, product.changedMs);
  product.latest = source[change](product.latest, product.changedMs);
  return product.latest;
}

type EventPlans = ReturnType<typeof drawEventPlans>;

function drawEventPlans({ faults, random }: Pick<PublicationOptions, 'faults' | 'random'>) {
  const rates = faults.current();
  return { shape: planShape(rates, random), plan: planDelivery(rates, random) };
}

/** Creates the publisher of an event to the catalogue's lists, its subscriptions and the ledger. */
function createEventPublisher(options: PublicationOptions) {
  const { holdings, ledger, recipientsOf, pausedIdsOf, dispatcher, faults } = options;
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
      plans === null ? none : recipientsOf(event, view).map((one) => notify(one, plans));
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

/** Creates an empty plan of what happens to products after their publication. */
function createFollowUps(options: PublicationOptions) {
  const { random, modifiedShare, secondModifiedShare = 0, deletedShare } = options;
  let planned: FollowUp[] = [];
  return {
    /** Draws the future of a product published in step number `step`. */
    plan: (product: LiveProduct, step: number) => {
      // Counted in steps, not in time, so that a seed brings the same order at every speed.
      const modifiedStep = step + random.integer(1, followUpStepsMax);
      const isModified = random.chance(modifiedShare);
      const deletedStep = (isModified ? modifiedStep : step) + random.integer(1, followUpStepsMax);
      const isDeleted = random.chance(deletedShare);
      // Drawn only where it is set: without it, a seed brings what it always did.
      const isCorrected =
        isModified && secondModifiedShare > 0 && random.chance(secondModifiedShare);
      const correctedStep = isCorrected ? modifiedStep + random.integer(1, followUpStepsMax) : 0;
      const afterAll = Math.max(deletedStep, correctedStep + 1);
      if (isModified) planned.push({ product, change: 'modified', step: modifiedStep });
      if (isCorrected) planned.push({ product, change: 'corrected', step: correctedStep });
      if (isDeleted) planned.push({ product, change: 'deleted', step: afterAll });
      planned.sort((one, other) => one.step - other.step);
    },
    /** Takes out what is due by a step, in order. */
    removeDue: (step: number): FollowUp[] => {
      const due = planned.filter((followUp) => followUp.step <= step);
      planned = planned.slice(due.length);
      return due;
    },
    /** Returns the step of the next one; undefined when nothing is planned. */
    nextStep: () => planned[0]?.step,
    /** Cancels what was planned for a product. */
    cancel: (product: LiveProduct) => {
      planned = planned.filter((followUp) => followUp.product !== product);
    },
  };
}
