/** Options of a sandbox, and their validation. */
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import type { DispatcherOptions } from './delivery/dispatcher.ts';
import { faultsSchema } from './delivery/faults.ts';
import { accountDefault, inferenceSettingsSchema, serviceSettingsSchema } from './live-settings.ts';
import { eventsMaxDefault } from './publishing/ledger.ts';
import { pastProducts } from './publishing/publisher.ts';

const dayMs = 86_400_000;

const share = z.number().min(0).max(1).default(0);
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
    .refine((past) => pastProducts(past) <= 1_000_000, 'has more than 1,000,000 products')
    .optional(),
  /** Maximum number of stored events, with their products; those of `past` are added. */
  eventsMax: z.int().min(1).default(eventsMaxDefault),
  /** Initial fault rates (default: 0). */
  faults: faultsSchema.prefault({}),
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
  onAttempt: callback<NonNullable<DispatcherOptions['onAttempt']>>().optional(),
});

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca;
  } catch {
    return false;
  }
}
