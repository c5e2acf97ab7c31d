/** Options of a sandbox, and the settings of its services and deliveries that can be changed at run time. */
import { X509Certificate } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import type { DispatcherOptions } from './delivery/dispatcher.ts';

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
      const all = new Map<string, unknown>(Object.entries(settings));
      for (const [key, value] of Object.entries(Object(changes))) {
        const current = all.get(key);
        all.set(key, isObject(current) && isObject(value) ? { ...current, ...value } : value);
      }
      settings = validate(schema, Object.fromEntries(all), `${name}; nothing was changed`);
      return settings;
    },
  };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

const share = z.number().min(0).max(1).default(0);
const count = z.int().min(0).max(1_000_000).default(0);
const errorStatus = z.int().min(400).max(599);
const off = z.boolean().default(false);

/** Returns a schema of a number for each name (default: 0). */
function numberForEach<Name extends string>(names: readonly Name[], value: typeof share) {
  const fields = Object.fromEntries(names.map((name) => [name, value])) as Record<
    Name,
    typeof share
  >;
  return z.strictObject(fields).prefault({} as never);
}

/** Returns a fault that is set for the next requests, and decrements its count in the settings; undefined if none is set. */
export function takeNext<Fault extends string>(
  faults: readonly Fault[],
  counts: Record<Fault, number>,
): Fault | undefined {
  const fault = faults.find((one) => counts[one] > 0);
  if (fault !== undefined) counts[fault] -= 1;
  return fault;
}

/** Rates of faults of deliveries, each drawn independently. */
export const faultsSchema = numberForEach(
  [
    // These change the body. Entries of a queue have only `ackIdGuid`, `capitalValue` and `eventAbsent`.
    'ackIdAbsent', // The body has no AckId, as in the documented push examples.
    'ackIdGuid', // The AckId is a GUID, as specified, instead of the observed base64 form.
    'arrayBody', // The body is an array with one notification, as in some documented examples.
    'capitalValue', // The product is in `Value`, as in the first documentation.
    'eventAbsent', // An entry of a queue has no SubscriptionEvent and no ProductId; pushes always have them.
    // These change the delivery.
    'duplicate', // Delivered again shortly after, although the first delivery succeeded.
    'outOfOrder', // Delayed shortly, so that later notifications are sent before.
    'answerLost', // The endpoint receives an attempt, but the sender does not receive the answer.
    'connectionFails', // An attempt fails before it reaches the endpoint.
    'lost', // Every attempt of a notification fails before it reaches the endpoint.
  ],
  share,
);
export type Faults = Readonly<z.output<typeof faultsSchema>>;
export type LiveFaults = LiveSettings<typeof faultsSchema>;

/** Preset: every notification arrives once, in its usual shape. */
export const noFaults: Faults = faultsSchema.parse({});

/** Preset: frequent enough that 200 products show duplicates, retries and losses. */
export const demoFaults: Faults = {
  ...noFaults,
  ...{ ackIdAbsent: 0.1, ackIdGuid: 0.05, arrayBody: 0.05, capitalValue: 0.05, duplicate: 0.1 },
  ...{ outOfOrder: 0.1, answerLost: 0.05, connectionFails: 0.05, lost: 0.03 },
};

/** Faults of product lists and of queue calls: at most one per answer. The first three replace the answer. */
export const queryFaults = [
  'rateLimited', // Status 429, with Retry-After.
  'serverError', // Status 500.
  'htmlPage', // An HTML page with status 200, as from a proxy.
  'connectionCut', // The connection closes in the middle of the answer; an Ack has no effect then.
  'brokenJson', // Truncated JSON, with status 200.
] as const;

/** Faults of a Read or Ack of a queue. A fault that does not apply to a call is not used up by it. */
const queueFaults = [
  ...queryFaults,
  'ackAnswerLost', // Ack only: it takes effect, but the connection closes without an answer.
  'doubleRead', // Read only: the page of the previous Read, although it was acknowledged since.
] as const;
export type QueueFault = (typeof queueFaults)[number];

/** Faults of a download, by HTTP or from the object store: at most one each. */
export const downloadFaults = [
  'rateLimited', // Status 429, as for too many downloads; from the object store 503.
  'serverError', // Status 500.
  'offline', // The product is offline: `offlineStatus`; from the object store 403.
  'connectionCut', // The connection closes in the middle.
  'wrongByte', // One byte is wrong, so that the checksum does not match.
] as const;

/** Settings of the catalogue and the identity provider. */
export const serviceSettingsSchema = z.strictObject({
  /** Maximum numbers of running and of all subscriptions of the account, pull included. */
  runningMax: count.default(2),
  totalMax: count.default(10),
  /** Status for exceeding a limit, an unknown subscription id, and an invalid access token (specification: not shown). */
  limitStatus: errorStatus.default(400),
  unknownIdStatus: errorStatus.default(404),
  unauthorizedStatus: errorStatus.default(401),
  /** Resuming beyond the limit: an error, or status 200 with the subscription still paused (not shown). */
  resumeBeyondLimit: z.enum(['refuse', 'ignore']).default('refuse'),
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
  createAnswersLost: count,
  createsRefused503: count,
  /** Retry-After of `rateLimited`; null: none. */
  retryAfterSeconds: count.nullable().default(5),
  /** Number of next product lists with each fault; counts down. */
  nextQueries: numberForEach(queryFaults, count),
  /** Maximum number of entries of a queue; the oldest are dropped. */
  queueMax: z.int().min(1).max(1_000_000).default(100_000),
  /** Read of a paused subscription: its entries, or status 400. */
  readOfPaused: z.enum(['allow', 'refuse']).default('allow'),
  /** Number of next Reads and Acks with each fault; counts down. */
  nextQueueCalls: numberForEach(queueFaults, count),
  /** Maximum number of concurrent downloads, by HTTP and from the object store together. */
  downloadsMax: z.int().min(1).max(1_000).default(4),
  /** Maximum speed of a download; null: unlimited. */
  downloadBytesPerSecond: z.int().min(100).nullable().default(null),
  /** Downloads can begin in the middle (Range). The documentation of the service does not say so. */
  downloadRanges: z.boolean().default(true),
  /** Status of an offline product (not documented). */
  offlineStatus: errorStatus.default(404),
  /** Number of next downloads with each fault; counts down. */
  nextDownloads: numberForEach(downloadFaults, count),
});
export type ServiceSettings = Readonly<z.output<typeof serviceSettingsSchema>>;
export type ServiceSettingsInput = z.input<typeof serviceSettingsSchema>;
export type LiveServiceSettings = LiveSettings<typeof serviceSettingsSchema>;

/** Faults of a completion: at most one per request. */
export const inferenceFaults = [
  'rateLimited', // Status 429, with Retry-After.
  'serverError', // Status 503.
  'hang', // No answer; the connection stays open.
  'cut', // Half of the text, with finish_reason `length`.
] as const;

/** Settings of the inference service. */
export const inferenceSettingsSchema = z.strictObject({
  /** Number of next completions with each fault; counts down. */
  next: numberForEach(inferenceFaults, count),
});
export type InferenceSettingsInput = z.input<typeof inferenceSettingsSchema>;
export type LiveInferenceSettings = LiveSettings<typeof inferenceSettingsSchema>;

/** Default name and password of the account. */
export const accountDefault = 'sandbox';

/** Keys of the object store. */
export const demoKeys = { access: 'sandbox-access', secret: 'sandbox-secret' } as const;

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

const dayMs = 86_400_000;
const delayMs = z.number().min(0).max(3_600_000);
const callback = <Callback>() => z.custom<Callback>((value) => typeof value === 'function');
const listenAddress = z
  .string()
  .regex(/^(\[[^\]]+\]|[^:]+):\d{1,5}$/, 'expected host:port, e.g. 127.0.0.1:0')
  .default('127.0.0.1:0');

/** Options of `startSandbox`. */
export type SandboxOptions = z.input<typeof sandboxOptionsSchema>;

export const sandboxOptionsSchema = z.strictObject({
  /** Certificate authorities trusted in addition to the public ones, PEM. */
  trustedCaPems: z.array(z.string().refine(isCertificate, 'not a PEM certificate')).default([]),
  /** JSON Lines file of product records to publish instead of generated products. */
  recordsFile: z.string().min(1).optional(),
  /** Size of the content of each generated product (default: no content, so no downloads). */
  contentBytes: z.int().min(1).max(100_000_000).optional(),
  /** 32-bit integer; the same seed gives the same products and faults. */
  seed: z.int32().default(1),
  /** Number of products to publish by rate (default: all records of the file, or unlimited). */
  count: z.int().min(0).optional(),
  ratePerSecond: z.number().positive().max(10_000).default(1),
  /** Probabilities that each publication modifies, and deletes, one of the products published last. */
  modifiedShare: share,
  deletedShare: share,
  /**
   * Share of the products that query results contain only after a delay of up to `lateMaxMs` from the
   * notification. Until then, the catalogue does not find them by id either.
   */
  lateShare: share,
  lateMaxMs: z.int().min(1).default(3_600_000),
  /** Products published before the start, without notifications. Adds about 0.5 ms per product to the start. */
  past: z
    .strictObject({
      durationMs: z
        .number()
        .min(1)
        .max(400 * dayMs),
      productsPerDay: z.number().positive().max(10_000_000).default(32_000),
    })
    .transform((past) => ({
      ...past,
      products: Math.round((past.durationMs / dayMs) * past.productsPerDay),
    }))
    .refine(({ products }) => products <= 1_000_000, 'has more than 1,000,000 products')
    .optional(),
  /** Maximum number of stored events, with their products; those of `past` are added. */
  eventsMax: z.int().min(1).default(100_000),
  /** Initial fault rates (default: 0). */
  faults: faultsSchema,
  /** `host:port` of the control port, of catalogue and identity provider, and of the inference service; 0: any port. */
  controlListen: listenAddress,
  serviceListen: listenAddress,
  inferenceListen: listenAddress,
  /** Credentials of the only account. */
  account: z
    .strictObject({ username: z.string().min(1), password: z.string().min(1) })
    .default({ username: accountDefault, password: accountDefault }),
  /** Initial settings of the catalogue and the identity provider, and of the inference service. */
  service: serviceSettingsSchema.prefault({}),
  inference: inferenceSettingsSchema.prefault({}),
  /**
   * Delays before the second, third and fourth attempt. Three retries are documented; their delays and the answers
   * that cause them are not known, so everything except 2xx is retried.
   */
  retryDelaysMs: z.tuple([delayMs, delayMs, delayMs]).default([1_000, 5_000, 25_000]),
  /** Real clock, ms since 1970. */
  now: callback<() => number>(),
  onSettled: callback<NonNullable<DispatcherOptions['onSettled']>>().optional(),
});

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca;
  } catch {
    return false;
  }
}

/** Returns true for localhost, 127.0.0.0/8 and ::1. An IPv6 address may have brackets. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const family = isIP(bare);
  if (family === 0) return bare.toLowerCase() === 'localhost';
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8);
  loopback.addAddress('::1', 'ipv6');
  return loopback.check(bare, family === 6 ? 'ipv6' : 'ipv4');
}
