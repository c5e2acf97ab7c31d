/** Settings of the sandbox's services that can be changed at run time. */
import { z } from 'zod';

/** Thrown before anything is started or changed. The message states the problem and how to fix it. */
export class SandboxConfigurationError extends Error {
  override readonly name = 'SandboxConfigurationError';
}

/** Parses a value. Throws SandboxConfigurationError naming every problem, but no values. */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  name: string,
): z.output<Schema> {
  const { data, error } = schema.safeParse(value);
  if (error === undefined) return data;
  const problems = error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  );
  throw new SandboxConfigurationError(`Invalid ${name}: ${problems.join('; ')}.`);
}

export type LiveSettings<Schema extends z.ZodType<object>> = ReturnType<
  typeof createLiveSettings<Schema>
>;

/** Creates settings with initial values; `name` identifies them in error messages. */
export function createLiveSettings<Schema extends z.ZodType<object>>(
  schema: Schema,
  initial: z.output<Schema>,
  name: string,
) {
  let settings = initial;
  return {
    current: () => settings,
    /**
     * Changes the given settings and, in settings with a number for each fault, only the given faults.
     * Throws SandboxConfigurationError for an unknown name or an invalid value.
     */
    change: (changes: z.input<Schema>): z.output<Schema> => {
      const known = new Map(entriesOf(settings));
      const merged = entriesOf(changes).map(([key, value]) => {
        const current = known.get(key);
        return [key, isObject(current) && isObject(value) ? { ...current, ...value } : value];
      });
      const all = { ...settings, ...Object.fromEntries(merged) };
      settings = validate(schema, all, `${name}; nothing was changed`);
      return settings;
    },
  };
}

function entriesOf(settings: unknown): [string, unknown][] {
  return Object.entries(Object(settings));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Returns a schema of a number for each name (default: 0). */
function numberForEach<Name extends string>(names: readonly Name[], value: z.ZodType<number>) {
  const none = Object.fromEntries(names.map((name) => [name, 0]));
  return z
    .partialRecord(z.enum(names), value)
    .transform((some) => ({ ...none, ...some }) as Readonly<Record<Name, number>>)
    .prefault({});
}

/** Returns a fault that is set for the next requests and decrements its count; null if none is set. */
export function takeNext<Fault extends string>(
  faults: readonly Fault[],
  counts: Readonly<Record<Fault, number>>,
  change: (counts: Record<Fault, number>) => void,
): Fault | null {
  const fault = faults.find((one) => counts[one] > 0);
  if (fault === undefined) return null;
  change({ ...counts, [fault]: counts[fault] - 1 });
  return fault;
}

const share = z.number().min(0).max(1);
const count = z.int().min(0).max(1_000_000);
const errorStatus = z.int().min(400).max(599);
const delayMs = z.int().min(0).max(3_600_000).default(0);
const on = z.boolean().default(true);
const off = z.boolean().default(false);

/** Faults of product lists and of queue calls: at most one per answer. The first three replace the answer. */
export const queryFaults = [
  'rateLimited', // Status 429, with Retry-After.
  'serverError', // Status 500.
  'htmlPage', // An HTML page with status 200, as from a proxy.
  'connectionCut', // The connection closes in the middle of the answer; an Ack has no effect then.
  'brokenJson', // Truncated JSON, with status 200.
] as const;
export type QueryFault = (typeof queryFaults)[number];

/** Faults of a Read or Ack of a queue. A fault that does not apply to a call is not used up by it. */
export const queueFaults = [
  ...queryFaults,
  'ackAnswerLost', // Ack only: it takes effect, but the connection closes without an answer.
  'doubleRead', // Read only: the page of the previous Read, although it was acknowledged since.
  'otherReader', // Ack only: another reader first acknowledges the oldest entry.
] as const;
export type QueueFault = (typeof queueFaults)[number];

/** Settings of the catalogue and the identity provider. Where the real behaviour is not known, they select one. */
export const serviceSettingsSchema = z.strictObject({
  /** Maximum numbers of running and of all subscriptions of the account, pull included. */
  runningMax: count.default(2),
  totalMax: count.default(10),
  /** Status for exceeding a limit, an unknown subscription id, and an invalid access token. */
  limitStatus: errorStatus.default(400),
  unknownIdStatus: errorStatus.default(404),
  unauthorizedStatus: errorStatus.default(401),
  /** Resuming beyond the limit: an error, or status 200 with the subscription still paused. */
  resumeBeyondLimit: z.enum(['refuse', 'ignore']).default('refuse'),
  /** Form of `detail` in errors of the catalogue, except errors with a fixed form. */
  detailForm: z.enum(['string', 'object', 'list']).default('object'),
  /** Returns LastNotificationDate when it is set. */
  lastNotificationDateShown: on,
  /** SubscriptionEvent as an array, or as one comma-separated string. */
  eventsAs: z.enum(['array', 'string']).default('array'),
  /** SubmissionDate as …267Z, or as …2670 without a zone, as in an old example. */
  submissionDateForm: z.enum(['millisecond', 'withoutZone']).default('millisecond'),
  /** Returns StageOrder as sent; otherwise always false. */
  stageOrderReturned: off,
  /** Lifetime of an access token. */
  accessTokenSeconds: z.int().min(1).max(86_400).default(600),
  /** Shared secret of the one-time codes; null: no code required. */
  totpSecret: z
    .string()
    .regex(/^[a-z2-7]{8,}=*$/i, 'expected a base32 secret')
    .nullable()
    .default(null),
  /** The catalogue, or the identity provider, answers every request with 503. */
  unavailable: off,
  identityUnavailable: off,
  /** Number of next creations that succeed without an answer, and that are answered 503 and create nothing. */
  createAnswersLost: count.default(0),
  createsRefused503: count.default(0),
  /** Delay of every answer after processing; additional delay of product queries. */
  answerDelayMs: delayMs,
  queryDelayMs: delayMs,
  /** Product queries require an access token. */
  queriesNeedToken: off,
  /** Retry-After of `rateLimited` for product queries, and for queues; null: none. */
  queryRetryAfterSeconds: count.nullable().default(5),
  queueRetryAfterSeconds: count.nullable().default(5),
  /** Number of next product lists with each fault; counts down. */
  nextQueries: numberForEach(queryFaults, count),
  /** Maximum number of entries of a queue; the oldest are dropped. */
  queueMax: z.int().min(1).max(1_000_000).default(100_000),
  /** Read with `$top` above 20: status 422, or the first 20 entries. */
  readTopBeyondMax: z.enum(['refuse', 'clamp']).default('refuse'),
  /** Read of a paused subscription: its entries, or status 400. */
  readOfPaused: z.enum(['allow', 'refuse']).default('allow'),
  /** Probability of each fault in a Read or Ack, and number of next ones with each fault; counts down. */
  queueFaults: numberForEach(queueFaults, share),
  nextQueueCalls: numberForEach(queueFaults, count),
});

export type ServiceSettings = Readonly<z.output<typeof serviceSettingsSchema>>;
export type ServiceSettingsInput = z.input<typeof serviceSettingsSchema>;
export type LiveServiceSettings = LiveSettings<typeof serviceSettingsSchema>;

/** Faults of a completion: at most one per request. Those before `noChoices` replace the answer. */
export const inferenceFaults = [
  'unauthorized', // A valid key is refused.
  'modelUnavailable', // An available model is refused.
  'rateLimited', // Status 429, with Retry-After.
  'serverError', // Status 503.
  'hang', // No answer; the connection stays open.
  'errorWithStatus200', // An error as JSON, with status 200.
  'noChoices', // `choices` is empty.
  'emptyContent', // The content is an empty string.
  'contentParts', // The content is a list of parts.
  'reasoning', // The text begins with the model's reasoning.
  'cut', // Half of the text, with finish_reason `length`.
  'inventedNumber', // A fact written by the model: a number outside braces.
  'inventedName', // A name in braces that the prompt does not have.
] as const;
export type InferenceFault = (typeof inferenceFaults)[number];

/** Settings of the inference service. */
export const inferenceSettingsSchema = z.strictObject({
  retryAfterSeconds: count.default(20),
  /** Allows listing the models of a project; otherwise the path is unknown. */
  modelsListed: on,
  /** Delay of every answer. */
  answerDelayMs: delayMs,
  /** Probability of each fault in a completion, and number of next completions with each fault; counts down. */
  faults: numberForEach(inferenceFaults, share),
  next: numberForEach(inferenceFaults, count),
});

export type InferenceSettingsInput = z.input<typeof inferenceSettingsSchema>;
export type LiveInferenceSettings = LiveSettings<typeof inferenceSettingsSchema>;

/** Default name and password of the account. */
export const accountDefault = 'sandbox';

/** Project of the key that is given to users. */
export const demoProject = {
  name: 'demo',
  key: 'sandbox-key',
  models: ['openai/gpt-oss-120b', 'meta-llama/Llama-3.3-70B-Instruct'],
} as const;

/** Project of another user, whose key has other models. */
export const otherProject = {
  name: 'other',
  key: 'other-sandbox-key',
  models: ['mistralai/Mistral-Small-3.2-24B-Instruct-2506'],
} as const;
