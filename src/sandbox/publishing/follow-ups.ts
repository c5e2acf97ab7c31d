/** Plans what happens to a product after its publication: that it is modified, deleted, or both. */

import type { Random } from '../random.ts';
import type { LiveProduct } from './live-products.ts';

/** An event that is due once the publisher has made its step number `step`. */
export interface FollowUp {
  readonly product: LiveProduct;
  readonly event: 'modified' | 'deleted';
  readonly step: number;
}

export interface FollowUps {
  /** Draws the future of a product published in step number `step`. */
  plan(product: LiveProduct, step: number): void;
  /** Takes out what is due by a step, in order. */
  takeDue(step: number): FollowUp[];
  /** The step of the next one; undefined when nothing is planned. */
  nextStep(): number | undefined;
  /** Cancels what was planned for a product. */
  cancel(product: LiveProduct): void;
}

const stepsMax = 20;

/** Creates an empty plan. The shares (0 to 1) say how many products are modified and deleted later. */
export function createFollowUps({
  random,
  modifiedShare,
  deletedShare,
}: {
  random: Random;
  modifiedShare: number;
  deletedShare: number;
}): FollowUps {
  let planned: FollowUp[] = [];
  return {
    plan: (product, step) => {
      // Counted in steps, not in time, so that a seed brings the same order at every speed.
      const modifiedStep = step + random.integer(1, stepsMax);
      const isModified = random.chance(modifiedShare);
      const deletedStep = (isModified ? modifiedStep : step) + random.integer(1, stepsMax);
      const isDeleted = random.chance(deletedShare);
      if (isModified) planned.push({ product, event: 'modified', step: modifiedStep });
      if (isDeleted) planned.push({ product, event: 'deleted', step: deletedStep });
      planned.sort((one, other) => one.step - other.step);
    },
    takeDue: (step) => {
      const due = planned.filter((followUp) => followUp.step <= step);
      planned = planned.slice(due.length);
      return due;
    },
    nextStep: () => planned[0]?.step,
    cancel: (product) => {
      planned = planned.filter((followUp) => followUp.product !== product);
    },
  };
}
