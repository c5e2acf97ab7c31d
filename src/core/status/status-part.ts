/** The contribution of a feature to the status, the alerts and the metrics of a receiver. */

import type { z } from 'zod';
import type { Store, StoreReader } from '../../store/store.ts';
import type { Io } from '../cli/io.ts';
import type { StartConfig } from '../config/config.ts';
import type { Feature } from '../feature.ts';
import type { Alert, Check, Situation } from '../terms/check.ts';
import type { Evaluation } from '../terms/evaluation.ts';
import type { Logger } from '../terms/ports.ts';
import type { StatusMetric } from './gauge.ts';
import type { Status } from './status.ts';

/** Facts of the status, as they are read. Features declare theirs in this interface. */
export interface StatusFacts {
  /** Microseconds since 1970, UTC, as all times. */
  atUs: number;
  version: string;
  /** Parts that could not be read. Their facts are null or empty. */
  failures: readonly { part: string; reason: string }[];
  /** False if the receiver only reads queues. */
  hasEndpoint: boolean;
  /** Why the current `earshot.config.ts` is rejected; null when it is in effect. */
  rejectedConfig: string | null;
  /** Null without a running receiver: only the store was read. */
  receiver: ReceiverStatus | null;
  /** Active alerts. */
  alerts: readonly Alert[];
}

export interface ReceiverStatus {
  startedAtUs: number | null;
  pid: number | null;
  refusing: string | null;
  queue: { bytes: number; bytesMax: number } | null;
}

/** Facts that are evaluated one by one. Features declare theirs in this interface. */
// biome-ignore lint/suspicious/noEmptyInterface: features add members.
export interface EvaluatedFacts {}

/** Sources of all parts. */
export interface StatusSources {
  store: StoreReader;
  /** Returns a setting of the receiver. Throws `configuration` if it is invalid. */
  setting<Name extends keyof StartConfig>(name: Name): StartConfig[Name];
  /** State of the receiver. Resolves with null if none runs; rejects if that cannot be determined. */
  receiver: () => Promise<ReceiverStatus | null>;
  /** Why the current `earshot.config.ts` is rejected; null when it is in effect. */
  rejected(): Promise<string | null>;
  /** Only inside a running receiver. */
  running: RunningSources | null;
  version: string;
  io: Io;
  log: Pick<Logger, 'warn'>;
}

export interface RunningSources {
  store: Store;
  /** State of a job of this receiver; undefined if it does not run. */
  job(name: string): { state?: unknown } | undefined;
}

/** Things by name. One of which there is only one has no name. */
export type Named<Thing> = readonly (readonly [name: string, thing: Thing])[];

/** Things that the watchdog reads and checks together. */
export interface Watch<Thing> {
  checks: readonly Check<Thing>[];
  read: () => Promise<Named<Thing>>;
}

/** A watch of any things: its checks apply to what it reads. */
export interface AnyWatch {
  checks: readonly Check<never>[];
  read: () => Promise<Named<unknown>>;
}

/** Returns the check of a single thing. */
export const watchOne = <Thing>(check: Check<Thing>, read: () => Promise<Thing>): Watch<Thing> => ({
  checks: [check],
  read: async () => [['', await read()]],
});

/** A part of the status. It is evaluated and shown separately. */
export interface StatusPart {
  name: string;
  /** Its facts while they are not known. */
  unknown: Partial<StatusFacts>;
  /** Its fields in JSON. Times are microseconds. */
  fields: Readonly<Record<string, z.ZodType>>;
  /** Returns the values of these fields; by default, the facts of the same names. */
  toFields?(status: Status): object;
  /** Returns the functions that read the part. They may keep state between calls, and reject if a read fails. */
  open(sources: StatusSources): {
    read?: (nowUs: number) => Promise<Partial<StatusFacts>>;
    watch?: (nowUs: number) => readonly AnyWatch[];
  };
  /** Evaluates things one by one. */
  evaluateEach?(facts: StatusFacts, situation: Situation): Partial<EvaluatedFacts>;
  /** Evaluates the part. Null: there is no such part. */
  evaluate(status: Omit<Status, 'parts'>, situation: Situation): Evaluation | null;
  /** Kinds of the alerts of its watches. */
  alertKinds?: readonly string[];
  /** Metrics, by heading of the reference page. */
  metrics?: readonly MetricGroup[];
}

export interface MetricGroup {
  title: string;
  rows: readonly StatusMetric[];
}

/** Declares a part, whose read returns the facts of `unknown`. */
export function defineStatusPart<const Names extends keyof StatusFacts = never>(
  part: Omit<StatusPart, 'unknown' | 'open'> & {
    unknown: Pick<StatusFacts, Names>;
    open(sources: StatusSources): {
      read?: (nowUs: number) => Promise<Pick<StatusFacts, Names>>;
      watch?: (nowUs: number) => readonly AnyWatch[];
    };
  },
): StatusPart {
  return part;
}

/** Returns the active alerts; none without the feature that has them. */
export async function activeAlertsOf(
  features: readonly Feature[],
  store: StoreReader,
): Promise<readonly Alert[]> {
  const found = features.flatMap(({ activeAlerts }) => activeAlerts?.(store) ?? []);
  return (await Promise.all(found)).flat();
}

/** Loads the parts of all features, in their order. */
export async function loadStatusParts(features: readonly Feature[]): Promise<StatusPart[]> {
  const slots = features.flatMap(({ status }) => (status === undefined ? [] : [status()]));
  return (await Promise.all(slots)).flatMap(({ parts }) => parts);
}
