/**
 * The status of a receiver as one document, shown by `earshot status`, `/api/status` and the metrics. Times are
 * microseconds since 1970, UTC. Null: not known, or none.
 */

import { z } from 'zod';
import type { Store, StoreReader } from '../../store/store.ts';
import { type Io, within } from '../cli/io.ts';
import type { StartConfig } from '../config/config.ts';
import { type ConfigFileState, readConfigState } from '../config/subscriptions-file.ts';
import type { Feature } from '../feature.ts';
import { AppError, errorText, isAppError } from '../terms/app-error.ts';
import {
  type Alert,
  type Check,
  type Evaluation,
  evaluation,
  evaluationSchema,
  isProblem,
  levels,
  type Situation,
} from '../terms/evaluation.ts';
import { toJson } from '../terms/json-rows.ts';
import type { Logger } from '../terms/ports.ts';
import type { StatusMetric } from './gauge.ts';

const partStatus = z.object({ part: z.string(), ...evaluationSchema.shape });

export type PartStatus = z.infer<typeof partStatus>;

/** Facts and their evaluation. */
export type Status = Omit<StatusFacts, keyof EvaluatedFacts> &
  EvaluatedFacts & {
    /** Parts, in the order of the features. */
    parts: readonly PartStatus[];
  };

/** Evaluates the facts. Pure: the same facts give the same result. */
export function evaluateStatus(parts: readonly StatusPart[], facts: StatusFacts): Status {
  const { atUs, alerts, receiver } = facts;
  const situation: Situation = { nowUs: atUs, upSinceUs: receiver?.startedAtUs ?? 0, alerts };
  const each = parts.map((part) => part.evaluateEach?.(facts, situation) ?? {});
  // Each part adds the evaluated form of its facts.
  const status = Object.assign({}, facts, ...each) as Omit<Status, 'parts'>;
  const evaluated = parts.flatMap((part): PartStatus[] => {
    const { name } = part;
    const failure = facts.failures.find((one) => one.part === name);
    if (failure === undefined) {
      const own = part.evaluate(status, situation);
      return own === null ? [] : [{ part: name, ...own }];
    }
    const text = `The state is unknown: ${failure.reason}`;
    return [{ part: name, ...evaluation('unknown', text, 'For details, run `earshot doctor`.') }];
  });
  return { ...status, parts: evaluated };
}

/** Returns the schema of the document, written by `toStatusJson`. */
export function statusSchema(parts: readonly StatusPart[]) {
  const fields: Record<string, z.ZodType> = Object.assign({}, ...parts.map((part) => part.fields));
  return z.object({
    atUs: z.number().describe('Time of the status: at most a few seconds ago.'),
    version: z.string(),
    ok: z.boolean().describe('True if each part has the level ok.'),
    parts: z.array(partStatus).describe('Evaluation of each part.'),
    failures: z
      .array(z.object({ part: z.string(), reason: z.string() }))
      .describe('Parts that could not be checked. The fields of these parts are null or empty.'),
    hasEndpoint: z.boolean().describe('False if the receiver only reads queues.'),
    ...fields,
  });
}

/** Converts a status to JSON, with times as ISO 8601 UTC. */
export function toStatusJson(parts: readonly StatusPart[], status: Status) {
  const fields = parts.map((part) => part.toFields?.(status) ?? {});
  return toJson(statusSchema(parts), Object.assign({}, status, ...fields, { ok: isOk(status) }));
}

/** Returns true when no part has a problem. */
export function isOk({ parts }: Pick<Status, 'parts'>): boolean {
  return !parts.some(isProblem);
}

/** Returns the overall state, or the most severe problem and the names of the other parts with problems. */
export function headline(status: Pick<Status, 'parts'>): string {
  if (isOk(status)) return 'Everything is ok.';
  const [worst, ...others] = worstFirst(status);
  const also = others.filter(({ part }) => part !== 'alerts').map(({ part }) => part);
  const rest = also.length === 0 ? '' : ` Also not ok: ${also.join(', ')}.`;
  return `${worst?.text ?? ''}${rest}`;
}

/** Returns the parts with problems, the most severe first. */
export function worstFirst({ parts }: Pick<Status, 'parts'>): PartStatus[] {
  return parts
    .filter(isProblem)
    .toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
}

/** Facts of the status, as they are read. Features declare theirs in this interface. */
export interface StatusFacts {
  /** Microseconds since 1970, UTC, as all times. */
  atUs: number;
  version: string;
  /** Parts that could not be read. Their facts are null or empty. */
  failures: readonly { part: string; reason: string }[];
  /** False if the receiver only reads queues. */
  hasEndpoint: boolean;
  /** `earshot.config.ts` on disk. A running receiver uses the version of its start. */
  configFile: ConfigFileState;
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
  metrics?: Readonly<Record<string, readonly StatusMetric[]>>;
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

/** A part that takes longer is reported as failed. */
const partTimeoutMs = 5_000;

/** Lifetime of a gathered status: more frequent requests get the same one. */
const freshUs = 5_000_000;

/** Returns a function that gives the current status. Concurrent calls share one result. Never rejects. */
export function createStatus(
  parts: readonly StatusPart[],
  sources: StatusSources,
): () => Promise<Status> {
  const { nowUs } = sources.io;
  const gatherNow = createGather(parts, sources);
  let latest: Status | undefined;
  let gathering: Promise<Status> | undefined;
  const gather = async () => {
    try {
      latest = await gatherNow();
      return latest;
    } finally {
      gathering = undefined;
    }
  };
  return async () => {
    const ageUs = latest === undefined ? freshUs : nowUs() - latest.atUs;
    // The age is negative after the clock was set back.
    if (latest !== undefined && ageUs >= 0 && ageUs < freshUs) return latest;
    gathering ??= gather();
    return gathering;
  };
}

function noAnswer(): never {
  throw new AppError('unavailable', `No answer within ${partTimeoutMs / 1_000} s.`);
}

/** Returns a function that reads all parts. It never rejects: parts that fail are listed in `failures`. */
export function createGather(
  parts: readonly StatusPart[],
  sources: StatusSources,
): () => Promise<Status> {
  const opened = parts.map((part) => ({ part, read: part.open(sources).read }));
  return async () => {
    const atUs = sources.io.nowUs();
    const found = await Promise.all(
      opened.map(async ({ part: { name, unknown }, read }) => {
        try {
          return {
            facts: read === undefined ? unknown : await within(partTimeoutMs, read(atUs), noAnswer),
          };
        } catch (error) {
          return {
            facts: unknown,
            failure: { part: name, reason: reasonOf(name, error, sources) },
          };
        }
      }),
    );
    const failures = found.flatMap(({ failure }) => failure ?? []);
    const configFile = await readConfigState(sources.io);
    const base = {
      ...{ atUs, version: sources.version, configFile, hasEndpoint: hasEndpoint(sources) },
      // An invalid file is one finding: rules in it cannot be read for the same reason.
      failures: failures.filter(({ reason }) => reason !== configFile.fault),
      ...{ receiver: null, alerts: [] },
    };
    // Each feature reads the facts that it declares.
    return evaluateStatus(
      parts,
      Object.assign({}, base, ...found.map(({ facts }) => facts)) as StatusFacts,
    );
  };
}

/** True with unreadable settings. */
function hasEndpoint({ setting }: Pick<StatusSources, 'setting'>): boolean {
  try {
    return setting('listen') !== null;
  } catch (error) {
    if (isAppError(error, 'configuration')) return true;
    throw error;
  }
}

/** Describes an error. The text of an unexpected one is written to the log only. */
function reasonOf(part: string, error: unknown, { log }: Pick<StatusSources, 'log'>): string {
  if (isAppError(error) && error.code !== 'internal') {
    return [errorText(error), ...error.details].join(' ');
  }
  log.warn({ part, err: error }, 'failed to read a part of the status');
  return 'Internal error; see the log.';
}
