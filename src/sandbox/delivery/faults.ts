/** Injected faults of deliveries: their rates, and the plan for one notification. */
import { z } from 'zod';
import type { Random } from '../clock.ts';
import type { LiveSettings } from '../live-settings.ts';

const rate = z.number().min(0).max(1).default(0);

/**
 * Rates from 0 (never) to 1 (always), each drawn independently. Unknown names are an error. The first five change
 * the body, the others the delivery. Entries of a queue have only `ackIdGuid`, `capitalValue` and `eventAbsent`.
 */
export const faultsSchema = z.strictObject({
  /** The body has no AckId, as in the documented push examples. */
  ackIdAbsent: rate,
  /** The AckId is a GUID, as specified, instead of the observed base64 form. */
  ackIdGuid: rate,
  /** The body is an array with one notification, as in some documented examples. */
  arrayBody: rate,
  /** The product is in `Value`, as in the first documentation. */
  capitalValue: rate,
  /** An entry of a queue has no SubscriptionEvent and no ProductId; pushes always have them. */
  eventAbsent: rate,
  /** Delivered again shortly after, although the first delivery succeeded. */
  duplicate: rate,
  /** Delayed shortly, so that later notifications are sent before. */
  outOfOrder: rate,
  /** The endpoint receives an attempt, but the sender does not receive the answer. */
  answerLost: rate,
  /** An attempt fails before it reaches the endpoint. */
  connectionFails: rate,
  /** Every attempt of a notification fails before it reaches the endpoint. */
  lost: rate,
});

export type Faults = z.output<typeof faultsSchema>;

export type LiveFaults = LiveSettings<typeof faultsSchema>;

/** Preset: every notification arrives once, in its usual shape. */
export const noFaults: Faults = Object.freeze(faultsSchema.parse({}));

/** Preset: frequent enough that 200 products show duplicates, retries and losses. */
export const demoFaults: Faults = Object.freeze({
  ...noFaults,
  ...{ ackIdAbsent: 0.1, ackIdGuid: 0.05, arrayBody: 0.05, capitalValue: 0.05, duplicate: 0.1 },
  ...{ outOfOrder: 0.1, answerLost: 0.05, connectionFails: 0.05, lost: 0.03 },
});

const delayMs = [50, 500] as const;

/** Shape of a notification's document. */
export type Shape = ReturnType<typeof planShape>;

export function planShape(faults: Faults, random: Random) {
  return {
    ackIdAbsent: random.chance(faults.ackIdAbsent),
    ackIdGuid: random.chance(faults.ackIdGuid),
    arrayBody: random.chance(faults.arrayBody),
    capitalValue: random.chance(faults.capitalValue),
    eventAbsent: random.chance(faults.eventAbsent),
  };
}

/** Draws everything at once, so that the timing of answers does not change the results of a seed. */
export function planDelivery(faults: Faults, random: Random, attempts: number) {
  const lost = random.chance(faults.lost);
  return {
    /** Delays of the first attempt, and of a second delivery after the first succeeded; null: none. */
    startMs: random.chance(faults.outOfOrder) ? random.integer(...delayMs) : null,
    duplicateMs: random.chance(faults.duplicate) ? random.integer(...delayMs) : null,
    attempts: Array.from({ length: attempts }, () => ({
      connectionFails: random.chance(faults.connectionFails) || lost,
      answerLost: random.chance(faults.answerLost),
    })),
  };
}
