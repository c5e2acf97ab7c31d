/** Options of a sandbox, and their validation. */
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
   * URL of the endpoint of an initial push subscription for all events: `https://` with the path;
   * loopback unless `allowRemote`. Without it, publishing waits until a subscription runs.
   */
  endpoint: z
    .union([z.url(), z.instanceof(URL)])
    .transform((url) => new URL(url).href)
    .optional(),
  /** Basic credentials of that endpoint; required with it, otherwise not allowed. */
  username: z.string().optional(),
  password: z.string().optional(),
  /** Certificate authorities trusted in addition to the public ones, PEM. */
  trustedCaPems: z.array(z.string()).default([]),
  /** JSON Lines file of product records to publish instead of generated products. */
  recordsFile: z.string().min(1).optional(),
  /** 32-bit integer; the same seed gives the same products and faults. */
  seed: z.int32().default(1),
  /** Number of products to publish (default: all records of the file, or unlimited). */
  count: z.int().min(0).optional(),
  ratePerSecond: z.number().positive().max(10_000).default(1),
  /** Shares of the products, 0 to 1, that are modified or deleted a few products later. */
  modifiedShare: share,
  deletedShare: share,
  /** Share of the modified products whose checksums are corrected later: a second modification. */
  secondModifiedShare: share,
  /**
   * Share of the products that query results contain only after a delay of up to `lateMaxMs` from the
   * notification. Until then, the catalogue does not find them by id either.
   */
  lateShare: share,
  lateMaxMs: z
    .int()
    .min(1)
    .max(30 * dayMs)
    .default(3_600_000),
  /** Products published before the start, without notifications. Adds about 0.15 ms per product to the start. */
  past: z
    .strictObject({
      durationMs: z
        .number()
        .min(1)
        .max(400 * dayMs),
      productsPerDay: z.number().positive().max(10_000_000).default(32_000),
    })
    .optional(),
  /** Maximum number of stored products, and of deleted ones (default: 12,000 plus those of `past`). */
  holdingsMax: z.int().min(1).max(productsMax).optional(),
  /** Maximum number of stored events (default: 100,000 plus those of `past`). */
  eventsMax: z
    .int()
    .min(1)
    .max(4 * productsMax)
    .optional(),
  /** GUID of the initial subscription (default: drawn from the seed). */
  subscriptionId: z.guid().optional(),
  /** Initial fault rates (default: 0). */
  faults: faultsSchema.prefault({}),
  /** `host:port` of the control port; port 0 selects a free one. */
  controlListen: listenAddress,
  /** `host:port` of the catalogue and the identity provider; port 0 selects a free one. */
  serviceListen: listenAddress,
  /** `host:port` of the inference service, a separate origin like the real one; port 0 selects a free one. */
  inferenceListen: listenAddress,
  /** Allows listen addresses that other machines can reach. */
  allowRemoteControl: z.boolean().default(false),
  /** Credentials of the only account. */
  account: z
    .strictObject({ username: z.string().min(1), password: z.string().min(1) })
    .default({ username: 'sandbox', password: 'sandbox' }),
  /** Initial settings of the catalogue and the identity provider. */
  service: serviceSettingsSchema.prefault({}),
  /** Initial settings of the inference service. */
  inference: inferenceSettingsSchema.prefault({}),
  retryDelaysMs: retryDelaysMsSchema.default([...defaultRetryDelaysMs]),
  /** Timeout for the endpoint's complete answer, ms. */
  timeoutMs: z.number().min(1).max(3_600_000).default(30_000),
  /** Allows an endpoint on another machine. */
  allowRemote: z.boolean().default(false),
  /** Allows an `http://` endpoint, for a proxy that terminates TLS. */
  allowPlainHttp: z.boolean().default(false),
  /** Real clock, ms since 1970. */
  now: callback<() => number>(),
  /** Called once per push notification when it is delivered (failure: null) or lost (its last failure). */
  onSettled: callback<NonNullable<DispatcherOptions['onSettled']>>().optional(),
  /** Called after each attempt with its failure, or null if it succeeded. */
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
  const message =
    'requires username and password; subscriptionId requires endpoint, username and password';
  return { path: ['endpoint'], message };
}

function pastIssue({ past }: GivenOptions) {
  if (past === undefined || pastProducts(past) <= productsMax) return null;
  return { path: ['past'], message: `has more than ${productsMax} products` };
}

/** Options of `startSandbox`. */
export type SandboxOptions = z.input<typeof sandboxOptionsSchema>;

/** Validated options with all defaults. */
export type CheckedSandboxOptions = z.output<typeof sandboxOptionsSchema>;

/** Validates options and applies defaults. Throws SandboxConfigurationError naming every problem but no values. */
export function checkSandboxOptions(options: SandboxOptions): CheckedSandboxOptions {
  const { data, error } = sandboxOptionsSchema.safeParse(options);
  if (data) return data;
  throw new SandboxConfigurationError(
    `Invalid sandbox options: ${describeIssues(error, 'options')}.`,
  );
}

function toListenAddress(text: string): ListenAddress {
  const colon = text.lastIndexOf(':');
  return {
    host: text.slice(0, colon).replace(/^\[|\]$/g, ''),
    port: Number(text.slice(colon + 1)),
  };
}
