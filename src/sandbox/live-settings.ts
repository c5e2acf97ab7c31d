/** LiveSettings: settings of the sandbox's services, which may change while they run. */
import { z } from 'zod';

/** Returns a schema of a number for each name; those left out are 0. */
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

/** Creates knobs that start as given; `name` is the subject of messages, with its verb. */
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
     * Sets the knobs that are named and, within those that have a number for each fault, the faults that are
     * named. Throws SandboxConfigurationError for an unknown name or a value that does not fit.
     */
    change: (changes: z.input<Schema>): z.output<Schema> => {
      const result = changedSchema().safeParse(changes);
      if (!result.success) {
        const faults = z.prettifyError(result.error);
        throw new SandboxConfigurationError(
          `Invalid ${name} settings; nothing was changed. ${faults}`,
        );
      }
      Object.freeze(result.data);
      settings = result.data;
      return settings;
    },
    /** Returns a schema that reads a selection of knobs into all of them. */
    changedSchema,
  };
}

/** Merges what has a number for each fault; anything else is replaced, for the schema to check. */
function withChanges(settings: object, changes: Readonly<Record<string, unknown>>): unknown {
  const merged = Object.entries(settings).flatMap(([knob, current]) => {
    const change = changes[knob];
    return isObject(current) && isObject(change) ? [[knob, { ...current, ...change }]] : [];
  });
  return { ...settings, ...changes, ...Object.fromEntries(merged) };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Takes a fault that is set for the next requests, and counts it down; null when none is. */
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

/** Thrown before anything is started; the message says what is wrong and what to do about it. */
export class SandboxConfigurationError extends Error {
  override readonly name = 'SandboxConfigurationError';
}

/** Names each fault; `whole` is the place of a fault of the value itself. */
export function describeIssues({ issues }: z.ZodError, whole = ''): string {
  const faults = issues.map(({ path, message }) => {
    const place = path.length === 0 ? whole : path.join('.');
    return place === '' ? message : `${place}: ${message}`;
  });
  return faults.join('; ');
}

const count = z.int().min(0).max(1_000_000);
const errorStatus = z.int().min(400).max(599);
const seconds = z.int().min(1).max(86_400);
const delayMs = z.int().min(0).max(3_600_000).default(0);
const on = z.boolean().default(true);
const off = z.boolean().default(false);

/** In the order in which they are played: at most one for a list. The first three replace the answer. */
export const queryFaults = [
  'rateLimited', // Answered 429, with Retry-After.
  'serverError', // Answered 500.
  'htmlPage', // An HTML page with status 200, as of a proxy.
  'connectionCut', // The connection is cut in the middle of the page.
  'brokenJson', // JSON that ends half-way, with status 200.
  'valueMissing', // JSON without `value`.
  'outOfOrder', // The records of the page in the opposite order.
] as const;
export type QueryFault = (typeof queryFaults)[number];

/** Every knob with its default. Unknown names are an error. */
export const serviceSettingsSchema = z.strictObject({
  /** Subscriptions of the account that may run, and those that it may have, pull included. */
  runningMax: count.default(2),
  totalMax: count.default(10),
  /** Answer to what exceeds a limit. */
  limitStatus: errorStatus.default(400),
  /** Resuming beyond the limit: an error, or 200 with the subscription still paused. */
  resumeBeyondLimit: z.enum(['refuse', 'ignore']).default('refuse'),
  /** Refuses every filter with this text: a catalogue may know less than its documentation. */
  filterRefusal: z.string().nullable().default(null),
  /** Answer to an unknown subscription id. */
  unknownIdStatus: errorStatus.default(404),
  /** Answer to a missing, unknown or expired access token. */
  unauthorizedStatus: errorStatus.default(401),
  /** Form of `detail` in errors of the catalogue, except those with a form of their own. */
  detailForm: z.enum(['string', 'object', 'list']).default('object'),
  /** Whether one subscription can be read by its id. */
  getById: on,
  /** Whether LastNotificationDate is returned, once there is one. */
  lastNotificationDateShown: on,
  /** SubscriptionEvent as an array, or as one text with commas. */
  eventsAs: z.enum(['array', 'string']).default('array'),
  /** SubmissionDate as …267Z, or as …2670 without a zone, as seen in an old example. */
  submissionDateForm: z.enum(['millisecond', 'withoutZone']).default('millisecond'),
  /** Whether StageOrder is returned as it was sent; otherwise it is always false. */
  stageOrderReturned: off,
  /** Lifetime of an access token; of a refresh token and its session, counted from the login. */
  accessTokenSeconds: seconds.default(600),
  refreshTokenSeconds: seconds.default(3_600),
  /** Sessions of the account; each login is one. */
  sessionsMax: count.default(100),
  /** Shared secret of the one-time codes; null: a login needs no code. */
  totpSecret: z
    .string()
    .regex(/^[a-z2-7]{8,}=*$/i, 'expected a base32 secret')
    .nullable()
    .default(null),
  /** Whether the account was activated. */
  accountActive: on,
  /** Every call of the catalogue, or of the identity provider, is answered 503. */
  unavailable: off,
  identityUnavailable: off,
  /** Number of creations that are done, but the connection is cut before the answer. */
  createAnswersLost: count.default(0),
  /** Number of creations that are answered 503 and create nothing. */
  createsRefused503: count.default(0),
  /** Delay of every answer after the work is done, and the additional one of answers about products. */
  answerDelayMs: delayMs,
  /** Whether products are shown only to clients with an access token. */
  queriesNeedToken: off,
  queryDelayMs: delayMs,
  /** Retry-After of `rateLimited`; null: none. */
  queryRetryAfterSeconds: z.int().min(0).max(86_400).nullable().default(5),
  /** Shares of the product lists, 0 to 1, that a fault is played for. */
  queryFaults: numberForEach(queryFaults, z.number().min(0).max(1)),
  /** Numbers of the next product lists that a fault is played for; they count down. */
  nextQueries: numberForEach(queryFaults, count),
});

export type ServiceSettings = Readonly<z.output<typeof serviceSettingsSchema>>;
export type ServiceSettingsInput = z.input<typeof serviceSettingsSchema>;

export type LiveServiceSettings = LiveSettings<typeof serviceSettingsSchema>;

export function createLiveServiceSettings(initial: ServiceSettings): LiveServiceSettings {
  return createLiveSettings(serviceSettingsSchema, initial, 'service');
}

/**
 * In the order in which they are played: at most one for a request. Those before `cut` replace the
 * answer; the others give it a text that is not what it should be.
 */
export const inferenceFaults = [
  'unauthorized', // The key is refused, although it is right.
  'modelUnavailable', // The model is refused, although the project has it.
  'rateLimited', // Answered 429.
  'serverError', // Answered with `serverErrorStatus`.
  'hang', // Never answered; the connection stays open.
  'connectionCut', // The connection is cut instead of an answer.
  'htmlPage', // An HTML page with status 200, as of a proxy.
  'brokenJson', // JSON that ends half-way.
  'nullContent', // The content is null.
  'emptyContent', // The content is an empty text.
  'cut', // Half of the text, with finish_reason `length`.
  'inventedNumber', // A number that the request does not have.
  'inventedPlace', // A place that the request does not have.
  'obeyedCommand', // Does what a command hidden in the data says, if there is one.
  'markup', // Emphasis, a tag and a link.
] as const;
export type InferenceFault = (typeof inferenceFaults)[number];

/** Every knob with its default: what most servers of this interface do. Unknown names are an error. */
export const inferenceSettingsSchema = z.strictObject({
  /** Answer to a missing or unknown key. */
  unauthorizedStatus: errorStatus.default(401),
  /** Answer to a model that the key's project does not have. */
  modelUnavailableStatus: errorStatus.default(404),
  /** Answer to `serverError`. */
  serverErrorStatus: z.int().min(500).max(599).default(503),
  /** Form of errors: {"error":{…}}, {"object":"error",…}, {"detail":…}, or a page. */
  errorForm: z.enum(['openai', 'object', 'detail', 'html']).default('openai'),
  /** Form of Retry-After in the answer to `rateLimited`, and its value by the clock of the sandbox. */
  retryAfter: z.enum(['seconds', 'date', 'none']).default('seconds'),
  retryAfterSeconds: z.int().min(0).max(86_400).default(20),
  /** Whether a project can list its models; otherwise the path is unknown. */
  modelsListed: z.boolean().default(true),
  /** Request fields beyond the specified model and messages. */
  optionalFields: z.enum(['ignored', 'refused']).default('ignored'),
  /** Whether answers count tokens, in `usage`. */
  usageGiven: z.boolean().default(true),
  /** Whether the message has a `reasoning` next to its content. */
  reasoningGiven: z.boolean().default(false),
  /** Delay of every answer. */
  answerDelayMs: z.int().min(0).max(3_600_000).default(0),
  /** Shares of the completions, 0 to 1, that a fault is played for. */
  faults: numberForEach(inferenceFaults, z.number().min(0).max(1)),
  /** Numbers of the next completions that a fault is played for; they count down. */
  next: numberForEach(inferenceFaults, z.int().min(0).max(1_000_000)),
});

export type InferenceSettings = Readonly<z.output<typeof inferenceSettingsSchema>>;
export type InferenceSettingsInput = z.input<typeof inferenceSettingsSchema>;

export type LiveInferenceSettings = LiveSettings<typeof inferenceSettingsSchema>;

/** A key belongs to one project, and each has its models (spec, What the service does). */
export interface InferenceProject {
  readonly name: string;
  readonly key: string;
  /** `<vendor>/<model_name>` */
  readonly models: readonly string[];
}

/** The project whose key users are given. */
export const demoProject = {
  name: 'demo',
  key: 'sandbox-key',
  models: ['openai/gpt-oss-120b', 'meta-llama/Llama-3.3-70B-Instruct'],
} as const;

/** Another user's project, for a key with other models. */
export const otherProject = {
  name: 'other',
  key: 'other-sandbox-key',
  models: ['mistralai/Mistral-Small-3.2-24B-Instruct-2506'],
} as const;
