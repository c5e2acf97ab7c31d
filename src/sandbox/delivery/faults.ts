/** Injected faults of deliveries: rates, three presets, and the plan for a notification. */
import { z } from 'zod';
import type { Random } from '../clock.ts';
import type { LiveSettings } from '../live-settings.ts';

const rate = z.number().min(0).max(1).default(0);

/**
 * Rates from 0 (never) to 1 (always), each drawn independently. Unknown names are an error. The first
 * ten change the body, the others the delivery. Entries of a queue have only `ackIdGuid`, `capitalValue`,
 * `valueAbsent` and `eventAbsent`.
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
  /** The body has no product and no ProductName, as in old entries. */
  valueAbsent: rate,
  /** An entry of a queue has an AckId, but no SubscriptionEvent and no ProductId; pushes always have them. */
  eventAbsent: rate,
  /** The AckId is the latest one of another subscription, as in documented examples. */
  ackIdOfOther: rate,
  /** The body is compressed, with Content-Encoding; the first of the three that is drawn applies. */
  gzipBody: rate,
  deflateBody: rate,
  brBody: rate,
  /** Delivered again shortly after, with the same AckId but another NotificationDate. */
  contentChanged: rate,
  /** Delivered again shortly after, although the first delivery succeeded. */
  duplicate: rate,
  /** Delayed until later notifications have been sent. */
  outOfOrder: rate,
  /** The endpoint receives an attempt, but the sender does not receive the answer. */
  answerLost: rate,
  /** An attempt fails before it reaches the endpoint. */
  connectionFails: rate,
  /** Every attempt of a notification fails before it reaches the endpoint. */
  lost: rate,
});

export type Faults = z.output<typeof faultsSchema>;

/** Preset: every notification arrives once, in its usual shape. */
export const noFaults: Faults = Object.freeze(faultsSchema.parse({}));

/**
 * Preset: known (duplicates, documented shapes) or suspected faults of the real service. The faults have
 * sources; the rates are guesses.
 */
export const realisticFaults: Faults = Object.freeze({
  ...noFaults,
  ackIdAbsent: 0.1,
  ackIdGuid: 0.01,
  arrayBody: 0.02,
  capitalValue: 0.01,
  duplicate: 0.02,
  outOfOrder: 0.05,
  answerLost: 0.005,
  connectionFails: 0.01,
  lost: 0.001,
});

/** Preset: frequent enough that 200 products show duplicates, retries and losses. */
export const demoFaults: Faults = Object.freeze({
  ...noFaults,
  ackIdAbsent: 0.1,
  ackIdGuid: 0.05,
  arrayBody: 0.05,
  capitalValue: 0.05,
  duplicate: 0.1,
  outOfOrder: 0.1,
  answerLost: 0.05,
  connectionFails: 0.05,
  lost: 0.03,
});

/** Current fault rates. */
export type LiveFaults = LiveSettings<typeof faultsSchema>;

/** Number of attempts to deliver a notification: one plus three retries. */
const attemptsMax = 4;

const retryDelayMs = z.number().min(0).max(3_600_000);

/**
 * Delays before the second, third and fourth attempt, in ms. Three retries are documented; the answers
 * that cause them are not, so everything except 2xx is retried.
 */
export const retryDelaysMsSchema = z.tuple([retryDelayMs, retryDelayMs, retryDelayMs]);

export type RetryDelaysMs = Readonly<z.output<typeof retryDelaysMsSchema>>;

/** Our choice: the delays of the real service are not known. */
export const defaultRetryDelaysMs: RetryDelaysMs = [1_000, 5_000, 25_000];

/** Faults of one attempt. */
export interface AttemptPlan {
  readonly connectionFails: boolean;
  readonly answerLost: boolean;
}

const shapeFaults = [
  'ackIdAbsent',
  'ackIdGuid',
  'arrayBody',
  'capitalValue',
  'valueAbsent',
] as const;

/** Shape of a notification's body. */
export type ShapePlan = Readonly<Record<(typeof shapeFaults)[number], boolean>>;

const entryFaults = ['ackIdGuid', 'capitalValue', 'valueAbsent', 'eventAbsent'] as const;

/** Shape of an entry of a queue. */
export type EntryShape = Readonly<Record<(typeof entryFaults)[number], boolean>>;

const bodyEncodings = ['gzip', 'deflate', 'br'] as const;
export type BodyEncoding = (typeof bodyEncodings)[number];

/** Encoding of a body (null: none), reuse of another AckId, and a second delivery with changed content. */
export type ContentPlan = ReturnType<typeof planContent>;

/** Faults of a notification's delivery. */
export type DeliveryPlan = ReturnType<typeof planDelivery>;

const duplicateDelayMs = [50, 500] as const;
const overtakenByMax = 5;

/** Draws the shape of one body. */
export function planShape(faults: Faults, random: Random): ShapePlan {
  const drawn = shapeFaults.map((name) => [name, random.chance(faults[name])]);
  return Object.fromEntries(drawn);
}

/** Draws the shape of one entry of a queue. */
export function planEntryShape(faults: Faults, random: Random): EntryShape {
  const drawn = entryFaults.map((name) => [name, random.chance(faults[name])]);
  return Object.fromEntries(drawn);
}

/** Draws the content faults of one body. They need a separate generator, to keep the results of a seed. */
export function planContent(faults: Faults, random: Random) {
  const drawn = bodyEncodings.filter((encoding) => random.chance(faults[`${encoding}Body`]));
  return {
    encoding: drawn[0] ?? null,
    ackIdOfOther: random.chance(faults.ackIdOfOther),
    contentChanged: random.chance(faults.contentChanged),
  };
}

/**
 * Draws the delivery faults of one notification. Draws everything, needed or not, so that neither the timing of
 * answers nor another fault's rate changes the results of a seed.
 */
export function planDelivery(faults: Faults, random: Random) {
  const lost = random.chance(faults.lost);
  const duplicate = random.chance(faults.duplicate);
  const duplicateAfterMs = random.integer(...duplicateDelayMs);
  const outOfOrder = random.chance(faults.outOfOrder);
  const overtakenBy = random.integer(1, overtakenByMax);
  const attempts: readonly AttemptPlan[] = Array.from({ length: attemptsMax }, () => ({
    connectionFails: random.chance(faults.connectionFails),
    answerLost: random.chance(faults.answerLost),
  }));
  return {
    attempts,
    lost,
    /** Delay from the successful delivery to the duplicate, in ms; null: no duplicate. */
    duplicateAfterMs: duplicate ? duplicateAfterMs : null,
    /** Number of later notifications that are sent first; 0: in order. */
    overtakenBy: outOfOrder ? overtakenBy : 0,
  };
}
