/** Decides, when a notification is published, which faults it will meet. */

import type { Random } from '../random.ts';
import type { Faults } from './faults.ts';
import { attemptsMax } from './retry.ts';

/** What will go wrong with one attempt. */
export interface AttemptPlan {
  readonly connectionFails: boolean;
  readonly answerLost: boolean;
}

/** How a notification's body looks. */
export interface ShapePlan {
  readonly ackIdAbsent: boolean;
  readonly ackIdGuid: boolean;
  readonly arrayBody: boolean;
  readonly capitalValue: boolean;
  readonly valueAbsent: boolean;
}

export const bodyEncodings = ['gzip', 'deflate', 'br'] as const;
export type BodyEncoding = (typeof bodyEncodings)[number];

/** How a body is encoded, and what of its AckId is used again. */
export interface ContentPlan {
  /** Null: as it is. */
  readonly encoding: BodyEncoding | null;
  readonly ackIdOfOther: boolean;
  /** Whether it is delivered again with other content. */
  readonly contentChanged: boolean;
}

/** What happens to a notification on its way. */
export interface DeliveryPlan {
  /** One plan per attempt, the first one first. */
  readonly attempts: readonly AttemptPlan[];
  readonly lost: boolean;
  /** How long after its success it is delivered again, in ms; null: it is not. */
  readonly duplicateAfterMs: number | null;
  /** How many later notifications go out first; 0: it is not held back. */
  readonly heldBehind: number;
}

const duplicateDelayMs = { min: 50, max: 500 };
const heldBehindMax = 5;

/** Draws the shape of one body. */
export function planShape(faults: Faults, random: Random): ShapePlan {
  return {
    ackIdAbsent: random.chance(faults.ackIdAbsent),
    ackIdGuid: random.chance(faults.ackIdGuid),
    arrayBody: random.chance(faults.arrayBody),
    capitalValue: random.chance(faults.capitalValue),
    valueAbsent: random.chance(faults.valueAbsent),
  };
}

/** Draws the content of one body, from a generator of its own: it came later, and must not change what a seed brings. */
export function planContent(faults: Faults, random: Random): ContentPlan {
  const drawn = bodyEncodings.filter((encoding) => random.chance(faults[`${encoding}Body`]));
  return {
    encoding: drawn[0] ?? null,
    ackIdOfOther: random.chance(faults.ackIdOfOther),
    contentChanged: random.chance(faults.contentChanged),
  };
}

/**
 * Draws the fate of one notification. Everything is drawn here, whether it will be needed or not:
 * then neither the timing of answers nor another fault's rate changes what a seed brings.
 */
export function planDelivery(faults: Faults, random: Random): DeliveryPlan {
  const lost = random.chance(faults.lost);
  const duplicate = random.chance(faults.duplicate);
  const duplicateAfterMs = random.integer(duplicateDelayMs.min, duplicateDelayMs.max);
  const outOfOrder = random.chance(faults.outOfOrder);
  const heldBehind = random.integer(1, heldBehindMax);
  const attempts = Array.from({ length: attemptsMax }, () => ({
    connectionFails: random.chance(faults.connectionFails),
    answerLost: random.chance(faults.answerLost),
  }));
  return {
    attempts,
    lost,
    duplicateAfterMs: duplicate ? duplicateAfterMs : null,
    heldBehind: outOfOrder ? heldBehind : 0,
  };
}
