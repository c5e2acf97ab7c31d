/** The options of a sandbox, checked once. */
import { z } from 'zod';
import type { DispatcherOptions } from './delivery/dispatcher.ts';
import { defaultRetryDelaysMs, faultsSchema, retryDelaysMsSchema } from './delivery/faults.ts';
import {
  describeIssues,
  inferenceSettingsSchema,
  SandboxConfigurationError,
  serviceSettingsSchema,
} from './live-settings.ts';
import type { ListenAddress } from './local-server.ts';
import { eventsMaxDefault } from './publishing/events.ts';
import { holdingsMaxDefault } from './publishing/holdings.ts';
import { pastProducts } from './publishing/publisher.ts';

const dayMs = 86_400_000;
const productsMax = 1_000_000;

const share = z.number().min(0).max(1).default(0);
const callback = <Callback>() =>
  z.custom<Callback>((value) => typeof value === 'function', 'expected a function');

const listenAddress = z
  .string()
  .regex(/^(\[[^\]]+\]|[^:]+):\d{1,5}$/, 'expected host:port, e.g. 127.0.0.1:0')
  .transform(toListenAddress)
  .default({ host: '127.0.0.1', port: 0 });

const optionsSchema = z.strictObject({
  /**
   * A push subscription that runs from the start, for all events: the user's endpoint, `https://` with
   * the path; loopback unless `allowRemote`. Without it, publishing waits until a subscription runs.
   */
  endpoint: z
    .union([z.url(), z.instanceof(URL)])
    .transform((url) => new URL(url).href)
    .optional(),
  /** Basic credentials of that endpoint; given with it, or not at all. */
  username: z.string().optional(),
  password: z.string().optional(),
  /** Authorities trusted besides the public ones, PEM. */
  trustedCaPems: z.array(z.string()).default([]),
  /** A JSONL file of product records to publish, instead of made-up products. */
  recordsFile: z.string().min(1).optional(),
  /** A 32-bit integer: the same one brings the same products and faults. */
  seed: z.int32().default(1),
  /** Products to publish; without it, until the records end, or for ever. */
  count: z.int().min(0).optional(),
  ratePerSecond: z.number().positive().max(10_000).default(1),
  /** Shares of the products, 0 to 1, that are modified or deleted some products later. */
  modifiedShare: share,
  deletedShare: share,
  /** Share of the modified products whose checksums are put right after that: a second modification. */
  secondModifiedShare: share,
  /**
   * Share of the products that the lists show late: not at once with the notification, but up to
   * `lateMaxMs` after it. Until then, the catalogue does not find them by their id either.
   */
  lateShare: share,
  lateMaxMs: z
    .int()
    .min(1)
    .max(30 * dayMs)
    .default(3_600_000),
  /** Products published before the start, without notifications; the start takes some 0.15 ms a product. */
  past: z
    .strictObject({
      durationMs: z
        .number()
        .min(1)
        .max(400 * dayMs),
      productsPerDay: z.number().positive().max(10_000_000).default(32_000),
    })
    .optional(),
  /** How many products are kept, and how many deleted ones; by default 12,000 and the past. */
  holdingsMax: z.int().min(1).max(productsMax).optional(),
  /** How many events are remembered; by default 100,000 and those of the past. */
  eventsMax: z
    .int()
    .min(1)
    .max(4 * productsMax)
    .optional(),
  /** GUID of the subscription that runs from the start; made from the seed by default. */
  subscriptionId: z.guid().optional(),
  /** Fault rates to start with; what is left out is 0. */
  faults: faultsSchema.prefault({}),
  /** `host:port` of the control port; port 0 is any free one. */
  controlListen: listenAddress,
  /** `host:port` of the subscription service and the identity provider; port 0 is any free one. */
  serviceListen: listenAddress,
  /** `host:port` of the inference service, an origin of its own as the real one is; port 0 is any free one. */
  inferenceListen: listenAddress,
  /** Allows a control port and services that other machines reach. */
  allowRemoteControl: z.boolean().default(false),
  /** Who may log in. */
  account: z
    .strictObject({ username: z.string().min(1), password: z.string().min(1) })
    .default({ username: 'sandbox', password: 'sandbox' }),
  /** LiveSettings of the services to start with; what is left out has its default. */
  service: serviceSettingsSchema.prefault({}),
  /** LiveSettings of the inference service to start with; what is left out has its default. */
  inference: inferenceSettingsSchema.prefault({}),
  retryDelaysMs: retryDelaysMsSchema.default([...defaultRetryDelaysMs]),
  /** Time for a complete answer of the endpoint, ms. */
  timeoutMs: z.number().min(1).max(3_600_000).default(30_000),
  /** Allows an endpoint on another machine. */
  allowRemote: z.boolean().default(false),
  /** Allows an `http://` endpoint, behind a proxy that does the TLS. */
  allowPlainHttp: z.boolean().default(false),
  /** The real clock, ms since 1970. */
  now: callback<() => number>(),
  /** Called once for each notification, when it is delivered or lost: by its last failure, else null. */
  onSettled: callback<NonNullable<DispatcherOptions['onSettled']>>().optional(),
  /** Called after each attempt with why it failed; null when it did not. */
  onAttempt: callback<NonNullable<DispatcherOptions['onAttempt']>>().optional(),
});

const sandboxOptionsSchema = optionsSchema
  .check(({ value, issues }) => {
    const fault = endpointIssue(value) ?? pastIssue(value);
    if (fault !== null) issues.push({ code: 'custom', input: undefined, ...fault });
  })
  .transform((options) => {
    const past = options.past === undefined ? 0 : pastProducts(options.past);
    return {
      ...options,
      holdingsMax: options.holdingsMax ?? Math.min(productsMax, holdingsMaxDefault + past),
      // Published, modified twice and deleted.
      eventsMax: options.eventsMax ?? eventsMaxDefault + 4 * past,
    };
  });

type GivenOptions = z.output<typeof optionsSchema>;

function endpointIssue({ endpoint, username, password, subscriptionId }: GivenOptions) {
  const given = [endpoint, username, password].filter((one) => one !== undefined);
  const isOdd = given.length % 3 !== 0 || (subscriptionId !== undefined && given.length === 0);
  if (!isOdd) return null;
  const message = 'goes with username and password, and subscriptionId with all three';
  return { path: ['endpoint'], message };
}

function pastIssue({ past }: GivenOptions) {
  if (past === undefined || pastProducts(past) <= productsMax) return null;
  return { path: ['past'], message: `has more than ${productsMax} products` };
}

/** What `startSandbox` takes. */
export type SandboxOptions = z.input<typeof sandboxOptionsSchema>;

/** The same, complete and checked. */
export type CheckedSandboxOptions = z.output<typeof sandboxOptionsSchema>;

/** Completes options with their defaults. Throws SandboxConfigurationError naming every fault and no value. */
export function checkSandboxOptions(options: SandboxOptions): CheckedSandboxOptions {
  const { data, error } = sandboxOptionsSchema.safeParse(options);
  if (data) return data;
  const faults = describeIssues(error, 'options');
  throw new SandboxConfigurationError(`The sandbox was not started. ${faults}.`);
}

function toListenAddress(text: string): ListenAddress {
  const colon = text.lastIndexOf(':');
  return {
    host: text.slice(0, colon).replace(/^\[|\]$/g, ''),
    port: Number(text.slice(colon + 1)),
  };
}
