/** Publishes step by step: a product, and the changes of earlier ones that are due with it. */
import type { Random } from '../random.ts';
import type { FollowUps } from './follow-ups.ts';
import type { LiveProduct } from './live-products.ts';
import type { PublicationSource } from './publication-source.ts';
import type { Moment, PublishEvent } from './publish-event.ts';

/** Late records: the lists show a product only some time after its notification was due. */
export interface Lateness {
  /** Share of the products, 0 to 1; none unless told. */
  readonly lateShare?: number;
  /** How late they are at most; drawn evenly from 1 ms on. */
  readonly lateMaxMs?: number;
}

/** Publishes the source's next product; undefined when there is none. */
export type PublishNext = (moment: Moment) => LiveProduct | undefined;

/** What a step had: a product, only changes of earlier ones, or nothing at all. */
export type StepOutcome = 'product' | 'changes' | 'nothing';

export type PublishStep = (moment: Moment, withProduct: boolean) => StepOutcome;

// The two documented bodies that allow the comparison came 46 and 48 s after the publication.
const catalogueDelayMs = { min: 46_000, max: 48_000 };

export function createPublishNext(
  options: Lateness & { readonly source: PublicationSource; readonly random: Random },
  publish: PublishEvent,
): PublishNext {
  const { source, random, lateShare = 0, lateMaxMs = 1 } = options;
  return (moment) => {
    const delayMs = random.integer(catalogueDelayMs.min, catalogueDelayMs.max);
    const changedMs = moment.atMs - delayMs;
    const latest = source.next(changedMs);
    if (latest === undefined) return undefined;
    // Drawn only where it is wanted: without it, a seed brings what it always did.
    const isLate = lateShare > 0 && random.chance(lateShare);
    const shownFromMs = moment.atMs + (isLate ? random.integer(1, lateMaxMs) : 0);
    const product = { latest, changedMs, delayMs, shownFromMs };
    publish('created', product, moment);
    return product;
  };
}

/** Creates the steps; without a product, a step goes on to where something is planned. */
export function createPublishStep(
  followUps: FollowUps,
  publish: PublishEvent,
  publishNext: PublishNext,
): PublishStep {
  let step = 0;
  return (moment, withProduct) => {
    const product = withProduct ? publishNext(moment) : undefined;
    if (product) {
      step += 1;
      followUps.plan(product, step);
    } else {
      const nextStep = followUps.nextStep();
      if (nextStep === undefined) return 'nothing';
      step = Math.max(step + 1, nextStep);
    }
    for (const followUp of followUps.takeDue(step)) {
      publish(followUp.change, followUp.product, moment);
    }
    return product ? 'product' : 'changes';
  };
}
