/** Plans what happens to a product after its publication: that it is modified, corrected, deleted. */

import type { Random } from '../random.ts';
import type { LiveProduct } from './live-products.ts';

/** What happens to it; a correction is a second modification. */
export type Change = 'modified' | 'corrected' | 'deleted';

/** A change that is due once the publisher has made its step number `step`. */
export interface FollowUp {
  readonly product: LiveProduct;
  readonly change: Change;
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

/** Shares from 0 to 1. */
export interface FollowUpShares {
  /** Of the products: those that are modified later. */
  readonly modifiedShare: number;
  /** Of those that were modified: whose checksums are put right after that. None unless told. */
  readonly secondModifiedShare?: number;
  /** Of the products: those that are deleted later. */
  readonly deletedShare: number;
}

/** Creates an empty plan. */
export function createFollowUps({
  random,
  modifiedShare,
  secondModifiedShare = 0,
  deletedShare,
}: FollowUpShares & { readonly random: Random }): FollowUps {
  let planned: FollowUp[] = [];
  return {
    plan: (product, step) => {
      // Counted in steps, not in time, so that a seed brings the same order at every speed.
      const modifiedStep = step + random.integer(1, stepsMax);
      const isModified = random.chance(modifiedShare);
      const deletedStep = (isModified ? modifiedStep : step) + random.integer(1, stepsMax);
      const isDeleted = random.chance(deletedShare);
      // Drawn only where it is wanted: without it, a seed brings what it always did.
      const isCorrected =
        isModified && secondModifiedShare > 0 && random.chance(secondModifiedShare);
      const correctedStep = isCorrected ? modifiedStep + random.integer(1, stepsMax) : 0;
      if (isModified) planned.push({ product, change: 'modified', step: modifiedStep });
      if (isCorrected) planned.push({ product, change: 'corrected', step: correctedStep });
      if (isDeleted) {
        const afterAll = Math.max(deletedStep, correctedStep + 1);
        planned.push({ product, change: 'deleted', step: afterAll });
      }
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
