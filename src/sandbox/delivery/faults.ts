/** The faults the sandbox can play, as rates: what they are called, what each does, and three mixes. */
import { z } from 'zod';

const rate = (meaning: string) => z.number().min(0).max(1).default(0).describe(meaning);

/**
 * Rates from 0 (never) to 1 (always), each drawn independently; 0 by default. Unknown names are an error. The first
 * nine change the body, the others what happens on the way.
 */
export const faultsSchema = z.strictObject({
  ackIdAbsent: rate('The body has no AckId, as in the documented push examples.'),
  ackIdGuid: rate(
    'The AckId is a GUID, as specified, instead of the base64 form seen in practice.',
  ),
  arrayBody: rate('The notification stands in an array of one, as some documented examples do.'),
  capitalValue: rate('The product stands under `Value`, as in the first documentation.'),
  valueAbsent: rate('The body has no product and no ProductName, as entries of some age.'),
  ackIdOfOther: rate(
    'The AckId is the last one of another subscription, as in the documented examples of modified and deleted products.',
  ),
  gzipBody: rate('The body is compressed with gzip, and Content-Encoding says so.'),
  deflateBody: rate('The same with deflate, unless it is compressed with gzip.'),
  brBody: rate('The same with br (Brotli), unless it is compressed with gzip or deflate.'),
  duplicate: rate('Delivered once more a little later, although it was answered with success.'),
  contentChanged: rate(
    'Delivered once more a little later with the same AckId, but with another NotificationDate.',
  ),
  outOfOrder: rate('Held back until notifications published after it have gone out.'),
  answerLost: rate('An attempt reaches the endpoint, but its answer does not reach the sender.'),
  connectionFails: rate('An attempt fails before the endpoint sees anything of it.'),
  lost: rate('Every attempt of a notification fails before the endpoint sees anything of it.'),
});

/** One rate per fault, each from 0 to 1. */
export type Faults = z.output<typeof faultsSchema>;

const shapes = {
  ...{ ackIdAbsent: 0, ackIdGuid: 0, arrayBody: 0, capitalValue: 0, valueAbsent: 0 },
  ...{ ackIdOfOther: 0, gzipBody: 0, deflateBody: 0, brBody: 0, contentChanged: 0 },
};
const deliveries = { duplicate: 0, outOfOrder: 0, answerLost: 0, connectionFails: 0, lost: 0 };

/** Every notification arrives once, in its usual shape. */
export const noFaults: Faults = Object.freeze({ ...shapes, ...deliveries });

/**
 * What the real service is known (duplicates, documented shapes) or suspected to do. That these
 * things happen has sources; how often does not: the rates are a guess.
 */
export const realisticFaults: Faults = Object.freeze({
  ...shapes,
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
  ...shapes,
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

/** The rates in force, which may change while the sandbox runs. */
export interface FaultSettings {
  current(): Faults;
  /** Sets the rates that are named and keeps the others; returns all. */
  change(rates: Partial<Faults>): Faults;
}

/** Creates settings that start with the given rates. */
export function createFaultSettings(initial: Faults): FaultSettings {
  let faults = initial;
  return {
    current: () => faults,
    change: (rates) => {
      faults = Object.freeze({ ...faults, ...rates });
      return faults;
    },
  };
}
