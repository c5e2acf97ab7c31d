/** The faults the sandbox can play on deliveries: their rates, three mixes, and the plan for a notification. */
import { z } from 'zod';
import type { Random } from '../clock.ts';
import type { LiveSettings } from '../live-settings.ts';

const rate = z.number().min(0).max(1).default(0);

/**
 * Rates from 0 (never) to 1 (always), each drawn independently. Unknown names are an error. The first
 * nine change the body, the others what happens on the way.
 */
export const faultsSchema = z.strictObject({
  /** The body has no AckId, as in the documented push examples. */
  ackIdAbsent: rate,
  /** The AckId is a GUID, as specified, instead of the base64 form seen in practice. */
  ackIdGuid: rate,
  /** The notification stands in an array of one, as some documented examples do. */
  arrayBody: rate,
  /** The product stands under `Value`, as in the first documentation. */
  capitalValue: rate,
  /** The body has no product and no ProductName, as entries of some age. */
  valueAbsent: rate,
  /** The AckId is the last one of another subscription, as in documented examples. */
  ackIdOfOther: rate,
  /** The body is compressed, and Content-Encoding says so; the first of the three that is drawn counts. */
  gzipBody: rate,
  deflateBody: rate,
  brBody: rate,
  /** Delivered once more a little later with the same AckId, but with another NotificationDate. */
  contentChanged: rate,
  /** Delivered once more a little later, although it was answered with success. */
  duplicate: rate,
  /** Held back until notifications published after it have gone out. */
  outOfOrder: rate,
  /** An attempt reaches the endpoint, but its answer does not reach the sender. */
  answerLost: rate,
  /** An attempt fails before the endpoint sees anything of it. */
  connectionFails: rate,
  /** Every attempt of a notification fails before the endpoint sees anything of it. */
  lost: rate,
});

export type Faults = z.output<typeof faultsSchema>;

/** Every notification arrives once, in its usual shape. */
export const noFaults: Faults = Object.freeze(faultsSchema.parse({}));

/**
 * What the real service is known (duplicates, documented shapes) or suspected to do. That these
 * things happen has sources; how often does not: the rates are a guess.
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

/** Frequent enough that a run of 200 products shows duplicates, retries and losses. */
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

/** The rates in force. */
export type LiveFaults = LiveSettings<typeof faultsSchema>;

/** Number of attempts to deliver a notification: one, and three retries. */
const attemptsMax = 4;

const retryDelayMs = z.number().min(0).max(3_600_000);

/**
 * The waits before the second, third and fourth attempt, in ms. That there are three retries is
 * documented; which answers cause one is not, so anything but a 2xx does.
 */
export const retryDelaysMsSchema = z.tuple([retryDelayMs, retryDelayMs, retryDelayMs]);

export type RetryDelaysMs = Readonly<z.output<typeof retryDelaysMsSchema>>;

/** Our choice: the intervals of the real service are not known. */
export const defaultRetryDelaysMs: RetryDelaysMs = [1_000, 5_000, 25_000];

/** The faults of one attempt. */
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

/** The form of a notification's body. */
export type ShapePlan = Readonly<Record<(typeof shapeFaults)[number], boolean>>;

const bodyEncodings = ['gzip', 'deflate', 'br'] as const;
export type BodyEncoding = (typeof bodyEncodings)[number];

/** The encoding of a body (null for none), the reuse of its AckId, and a second delivery with other content. */
export type ContentPlan = ReturnType<typeof planContent>;

/** What happens to a notification on its way. */
export type DeliveryPlan = ReturnType<typeof planDelivery>;

const duplicateDelayMs = [50, 500] as const;
const overtakenByMax = 5;

/** Draws the shape of one body. */
export function planShape(faults: Faults, random: Random): ShapePlan {
  const drawn = shapeFaults.map((name) => [name, random.chance(faults[name])]);
  return Object.fromEntries(drawn);
}

/** Draws the content of one body, from a generator of its own: it came later, and must not change what a seed brings. */
export function planContent(faults: Faults, random: Random) {
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
    /** Time from its success to its repeated delivery, in ms; null: there is none. */
    duplicateAfterMs: duplicate ? duplicateAfterMs : null,
    /** Number of later notifications that go out first; 0: it is not held back. */
    overtakenBy: outOfOrder ? overtakenBy : 0,
  };
}
