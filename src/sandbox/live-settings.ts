/** Settings of the sandbox's services that can be changed at run time. */
import { z } from 'zod';

/** Returns a schema of a number for each name (default: 0). */
export function numberForEach<Name extends string>(
  names: readonly Name[],
  value: z.ZodType<number>,
) {
  const none = Object.fromEntries(names.map((name) => [name, 0]));
  return z
    .partialRecord(z.enum(names), value)
    .transform((some) => ({ ...none, ...some }) as Readonly<Record<Name, number>>)
    .prefault({});
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
  const changedSchema = () =>
    z
      .looseObject({})
      .transform((changes) => withChanges(settings, changes))
      .pipe(schema);
  return {
    current: () => settings,
    /**
     * Changes the given settings and, in settings with a number for each fault, only the given faults.
     * Throws SandboxConfigurationError for an unknown name or an invalid value.
     */
    change: (changes: z.input<Schema>): z.output<Schema> => {
      const result = changedSchema().safeParse(changes);
      if (!result.success) {
        const problems = z.prettifyError(result.error);
        throw new SandboxConfigurationError(
          `Invalid ${name} settings; nothing was changed. ${problems}`,
        );
      }
      Object.freeze(result.data);
      settings = result.data;
      return settings;
    },
    /** Returns a schema that merges partial changes into the current settings. */
    changedSchema,
  };
}

/** Merges objects (a number for each fault) and replaces other values; the schema validates the result. */
function withChanges(settings: object, changes: Readonly<Record<string, unknown>>): unknown {
  const merged = Object.entries(settings).flatMap(([name, current]) => {
    const change = changes[name];
    return isObject(current) && isObject(change) ? [[name, { ...current, ...change }]] : [];
  });
  return { ...settings, ...changes, ...Object.fromEntries(merged) };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns a fault that is set for the next requests and decrements its count; null if none is set. */
export function takeNextFault<Fault extends string>(
  faults: readonly Fault[],
  counts: Readonly<Record<Fault, number>>,
  change: (counts: Partial<Record<Fault, number>>) => void,
): Fault | null {
  const fault = faults.find((one) => counts[one] > 0);
  if (fault === undefined) return null;
  change({ [fault]: counts[fault] - 1 } as Partial<Record<Fault, number>>);
  return fault;
}

/** Thrown before anything is started. The message states the problem and how to fix it. */
export class SandboxConfigurationError extends Error {
  override readonly name = 'SandboxConfigurationError';
}

/** Lists validation problems with their paths; `whole` is the path of the value itself. */
export function describeIssues({ issues }: z.ZodError, whole = ''): string {
  const problems = issues.map(({ path, message }) => {
    const place = path.length === 0 ? whole : path.join('.');
    return place === '' ? message : `${place}: ${message}`;
  });
  return problems.join('; ');
}

const count = z.int().min(0).max(1_000_000);
const errorStatus = z.int().min(400).max(599);
const seconds = z.int().min(1).max(86_400);
const delayMs = z.int().min(0).max(3_600_000).default(0);
const on = z.boolean().default(true);
const off = z.boolean().default(false);

/** Faults of a list, in order of precedence: at most one per answer. The first three replace the answer. */
export const queryFaults = [
  'rateLimited', // Status 429, with Retry-After.
  'serverError', // Status 500.
  'htmlPage', // An HTML page with status 200, as from a proxy.
  'connectionCut', // The connection closes in the middle of the page.
  'brokenJson', // Truncated JSON, with status 200.
  'valueMissing', // JSON without `value`.
  'outOfOrder', // The records of the page in reverse order.
] as const;
export type QueryFault = (typeof queryFaults)[number];

/**
 * Faults of a Read or Ack of a queue, in order of precedence: at most one per call. The first three replace
 * the answer, so that the call has no effect. A fault that does not apply to a call is not used up by it.
 */
export const queueFaults = [
  'rateLimited', // Status 429, with Retry-After.
  'serverError', // Status 500.
  'htmlPage', // An HTML page with status 200, as from a proxy.
  'connectionCut', // Read: the connection closes in the middle of the answer. Ack: it closes before any effect.
  'brokenJson', // Truncated JSON, with status 200.
  'ackAnswerLost', // Ack only: it takes effect, but the connection closes without an answer.
  'doubleRead', // Read only: the page of the previous Read, although it was acknowledged since.
  'entriesDropped', // The oldest entry is dropped first, as in an overflow.
  'otherReader', // Ack only: another reader first acknowledges the oldest entry.
] as const;
export type QueueFault = (typeof queueFaults)[number];

/** Settings with their defaults. Unknown names are an error. */
export const serviceSettingsSchema = z.strictObject({
  /** Maximum numbers of running and of all subscriptions of the account, pull included. */
  runningMax: count.default(2),
  totalMax: count.default(10),
  /** Status for exceeding a limit. */
  limitStatus: errorStatus.default(400),
  /** Resuming beyond the limit: an error, or status 200 with the subscription still paused. */
  resumeBeyondLimit: z.enum(['refuse', 'ignore']).default('refuse'),
  /** Refuses every filter with this text: the catalogue may support less than it documents. */
  filterRefusal: z.string().nullable().default(null),
  /** Status for an unknown subscription id. */
  unknownIdStatus: errorStatus.default(404),
  /** Status for a missing, unknown or expired access token. */
  unauthorizedStatus: errorStatus.default(401),
  /** Form of `detail` in errors of the catalogue, except errors with a fixed form. */
  detailForm: z.enum(['string', 'object', 'list']).default('object'),
  /** Allows reading one subscription by its id. */
  getById: on,
  /** Returns LastNotificationDate when it is set. */
  lastNotificationDateShown: on,
  /** SubscriptionEvent as an array, or as one comma-separated string. */
  eventsAs: z.enum(['array', 'string']).default('array'),
  /** SubmissionDate as …267Z, or as …2670 without a zone, as in an old example. */
  submissionDateForm: z.enum(['millisecond', 'withoutZone']).default('millisecond'),
  /** Returns StageOrder as sent; otherwise always false. */
  stageOrderReturned: off,
  /** Lifetime of an access token; lifetime of a refresh token and its session, from the login. */
  accessTokenSeconds: seconds.default(600),
  refreshTokenSeconds: seconds.default(3_600),
  /** Maximum number of sessions; each login opens one. */
  sessionsMax: count.default(100),
  /** Shared secret of the one-time codes; null: no code required. */
  totpSecret: z
    .string()
    .regex(/^[a-z2-7]{8,}=*$/i, 'expected a base32 secret')
    .nullable()
    .default(null),
  /** The account is activated. */
  accountActive: on,
  /** The catalogue, or the identity provider, answers every request with 503. */
  unavailable: off,
  identityUnavailable: off,
  /** Number of next creations that succeed, but whose connection closes before the answer. */
  createAnswersLost: count.default(0),
  /** Number of next creations that are answered 503 and create nothing. */
  createsRefused503: count.default(0),
  /** Delay of every answer after processing; additional delay of product queries. */
  answerDelayMs: delayMs,
  /** Product queries require an access token. */
  queriesNeedToken: off,
  queryDelayMs: delayMs,
  /** Retry-After of `rateLimited`; null: none. */
  queryRetryAfterSeconds: z.int().min(0).max(86_400).nullable().default(5),
  /** Probability of each fault in a product list, 0 to 1. */
  queryFaults: numberForEach(queryFaults, z.number().min(0).max(1)),
  /** Number of next product lists with each fault; counts down. */
  nextQueries: numberForEach(queryFaults, count),
  /** Maximum number of entries of a queue; the oldest are dropped. */
  queueMax: z.int().min(1).max(1_000_000).default(100_000),
  /** Age from which an entry is returned without the product and ProductName (default: three days). */
  queueRecordMaxAgeMs: z.int().min(0).max(8_640_000_000).default(259_200_000),
  /** Read with `$top` above 20: status 422, or the first 20 entries. The real behaviour is not known. */
  readTopBeyondMax: z.enum(['refuse', 'clamp']).default('refuse'),
  /** Read of a paused subscription: its entries, or status 400. The real behaviour is not known. */
  readOfPaused: z.enum(['allow', 'refuse']).default('allow'),
  /** Ack of an entry that is not in the queue: no effect, or status 404. The real behaviour is not known. */
  ackUnknown: z.enum(['ignore', 'refuse']).default('ignore'),
  /** Status of Read and Ack for a push subscription; the real one is not known. */
  queueOfPushStatus: errorStatus.default(400),
  /** Retry-After of `rateLimited` for a queue; null: none. */
  queueRetryAfterSeconds: z.int().min(0).max(86_400).nullable().default(5),
  /** Probability of each fault in a Read or Ack, 0 to 1. */
  queueFaults: numberForEach(queueFaults, z.number().min(0).max(1)),
  /** Number of next Reads and Acks with each fault; counts down. */
  nextQueueCalls: numberForEach(queueFaults, count),
});

export type ServiceSettings = Readonly<z.output<typeof serviceSettingsSchema>>;
export type ServiceSettingsInput = z.input<typeof serviceSettingsSchema>;

export type LiveServiceSettings = LiveSettings<typeof serviceSettingsSchema>;

export function createLiveServiceSettings(initial: ServiceSettings): LiveServiceSettings {
  return createLiveSettings(serviceSettingsSchema, initial, 'service');
}

/**
 * Faults of a request, in order of precedence: at most one per request. Those before `nullContent`
 * replace or break the answer; the others change its text.
 */
export const inferenceFaults = [
  'unauthorized', // A valid key is refused.
  'modelUnavailable', // An available model is refused.
  'rateLimited', // Status 429.
  'serverError', // Status `serverErrorStatus`.
  'hang', // No answer; the connection stays open.
  'connectionCut', // The connection closes without an answer.
  'htmlPage', // An HTML page with status 200, as from a proxy.
  'brokenJson', // Truncated JSON.
  'nullContent', // The content is null.
  'emptyContent', // The content is an empty string.
  'cut', // Half of the text, with finish_reason `length`.
  'inventedNumber', // A number that is not in the request.
  'inventedPlace', // A place that is not in the request.
  'obeyedCommand', // Obeys a command hidden in the data, if there is one.
  'markup', // Emphasis, a tag and a link.
] as const;
export type InferenceFault = (typeof inferenceFaults)[number];

/** Settings; the defaults match most servers of this interface. Unknown names are an error. */
export const inferenceSettingsSchema = z.strictObject({
  /** Status for a missing or unknown key. */
  unauthorizedStatus: errorStatus.default(401),
  /** Status for a model that the key's project does not have. */
  modelUnavailableStatus: errorStatus.default(404),
  /** Status of `serverError`. */
  serverErrorStatus: z.int().min(500).max(599).default(503),
  /** Form of errors: {"error":{…}}, {"object":"error",…}, {"detail":…}, or a page. */
  errorForm: z.enum(['openai', 'object', 'detail', 'html']).default('openai'),
  /** Form and value of Retry-After in `rateLimited`, on the sandbox's clock. */
  retryAfter: z.enum(['seconds', 'date', 'none']).default('seconds'),
  retryAfterSeconds: z.int().min(0).max(86_400).default(20),
  /** Allows listing the models of a project; otherwise the path is unknown. */
  modelsListed: z.boolean().default(true),
  /** Handling of request fields other than the specified model and messages. */
  optionalFields: z.enum(['ignored', 'refused']).default('ignored'),
  /** Returns token counts in `usage`. */
  usageGiven: z.boolean().default(true),
  /** Returns `reasoning` in addition to the content of the message. */
  reasoningGiven: z.boolean().default(false),
  /** Delay of every answer. */
  answerDelayMs: z.int().min(0).max(3_600_000).default(0),
  /** Probability of each fault in a completion, 0 to 1. */
  faults: numberForEach(inferenceFaults, z.number().min(0).max(1)),
  /** Number of next completions with each fault; counts down. */
  next: numberForEach(inferenceFaults, z.int().min(0).max(1_000_000)),
});

export type InferenceSettings = Readonly<z.output<typeof inferenceSettingsSchema>>;
export type InferenceSettingsInput = z.input<typeof inferenceSettingsSchema>;

export type LiveInferenceSettings = LiveSettings<typeof inferenceSettingsSchema>;

/** A project with its key and models (spec, What the service does). */
export interface InferenceProject {
  readonly name: string;
  readonly key: string;
  /** `<vendor>/<model_name>` */
  readonly models: readonly string[];
}

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
