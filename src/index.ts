/** Public interface of the library: mount the receiver in your own Hono app, and read the store. */

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Hono } from 'hono';
import { z } from 'zod';
import { app } from './app.ts';
import { addressRanges, endpointPassword } from './core/config/variables.ts';
import type { Feature } from './core/feature.ts';
import { AppError } from './core/terms/app-error.ts';
import {
  type CredentialPair,
  type Cursors,
  followLog,
  type Intake,
  type Logger,
  type NotificationLog,
  type NotificationQuery,
  type NotificationRow,
  type Quarantine,
  type Receipt,
} from './core/terms/ports.ts';
import type { Entity } from './filter/filter-tree.ts';
import type { FoundProduct, ProductKey, ProductRow } from './filter/products.ts';
import type { Outcome } from './receiver/app.ts';
import { createCredentialCheck } from './receiver/basic-auth.ts';
import { createMountableReceiver, guardLog, guardObserve } from './receiver/mountable-receiver.ts';
import { openStore as openStoreAt } from './store/store.ts';
import { tablesOf } from './store/tables.ts';

export { defineConfig, type EarshotConfig } from './core/config/subscriptions-file.ts';
export { AppError, type ErrorCode, isAppError } from './core/terms/app-error.ts';
export type { Fault } from './core/terms/notification.ts';
export type {
  Delivery,
  DriftCount,
  LogCounts,
  QuarantineEntry,
  QuarantineRow,
} from './core/terms/ports.ts';
export {
  and,
  attribute,
  cloudCover,
  collection,
  deleted,
  deletionCause,
  type Expression,
  geojsonFile,
  id,
  intersects,
  modified,
  name,
  not,
  online,
  or,
  productType,
  published,
  sensed,
} from './filter/builder.ts';
export type { AnyGeometry, Geometry } from './filter/filter-tree.ts';
export type {
  CredentialPair,
  Cursors,
  Entity,
  FoundProduct,
  Intake,
  Logger,
  NotificationLog,
  NotificationQuery,
  NotificationRow,
  Outcome,
  ProductKey,
  ProductRow,
  Quarantine,
  Receipt,
};

/** Interval at which `follow` checks for new rows. */
const pollMs = 500;

const nowUs = () => Date.now() * 1000;

export interface FollowOptions {
  /** Only rows after this position, such as a cursor; 0 for the whole log. */
  afterPosition: number;
  query?: Omit<NotificationQuery, 'order' | 'limit' | 'afterPosition' | 'beforePosition'>;
  /** Ends the stream. */
  signal: AbortSignal;
}

/** The store of one data directory. All times are microseconds since 1970, UTC. */
export interface Store
  extends Intake,
    NotificationLog,
    Omit<Cursors, 'moveCursor'>,
    Omit<Quarantine, 'retry'> {
  /** Moves a reader's cursor forward or back. It is on disk when the promise resolves. Rejects with `unavailable`. */
  moveCursor(reader: string, position: number): Promise<void>;
  /** Parses a quarantined body again, and stores its notifications if that succeeds. Rejects with `not_found`. */
  retry(quarantineId: number): Promise<Receipt>;
  /** Streams rows, oldest first, and then new ones as they arrive, until the signal is aborted. */
  follow(options: FollowOptions): AsyncIterable<NotificationRow>;
  products: import('./filter/builder.ts').StoredProducts;
  /** Summaries of products and digests, written by `earshot start` or `earshot summarize`. */
  summaries: Pick<import('./features/summary/terms.ts').SummaryReader, 'find' | 'textsOf'>;
  /** Completes accepted deliveries, and ends the threads of the store. */
  close(): Promise<void>;
}

/**
 * Opens the store in a folder; creates both if they do not exist. Close it before the program ends.
 * Rejects with `configuration` if the folder is unusable, `unavailable` if the disk cannot be written.
 */
export async function openStore(options: { dataDir: string }): Promise<Store> {
  const { dataDir } = parse(storeOptions, options, 'openStore');
  const store = await openStoreAt({ dataDir, tables: tablesOf(app) });
  const features: readonly Feature[] = app;
  const opened = await Promise.all(
    features.flatMap(({ library = null }) => library?.().then((open) => open(dataDir)) ?? []),
  );
  const ports = Object.assign({}, ...opened.map((one) => one.ports)) as Pick<Store, 'products'>;
  return {
    ...store,
    ...ports,
    close: async () => {
      for (const one of opened) await one.close();
      await store.close();
    },
    moveCursor: (reader, position) => store.moveCursor(reader, position, nowUs()),
    retry: (quarantineId) => store.retry(quarantineId),
    follow: (follow) => followLog({ log: store, wait, ...follow }),
  };
}

export interface CreateReceiverOptions {
  /** Store for the notifications: the result of `openStore`. */
  store: Intake;
  /** Accepted credentials, at least one pair. */
  credentials: readonly CredentialPair[];
  /** Addresses and ranges (CIDR) of proxies whose `X-Forwarded-For` is trusted; none by default. */
  trustedProxies?: readonly string[] | undefined;
  /** Logger for refusals and failures, such as pino or `console`; nothing is logged by default. */
  log?: Logger | undefined;
  /** Called for each request to `/notifications`, with the subscription's name from the path. */
  onOutcome?: ((outcome: Outcome, subscription: string | null) => void) | undefined;
}

/**
 * Builds the receiver as a Hono app with the routes `/notifications` and `/notifications/<name>`. Mount it with
 * `app.route`. It opens nothing. If `log` or `onOutcome` throws or rejects, the answers stay the same.
 * Throws `configuration` with all problems of the options.
 */
export function createReceiver(options: CreateReceiverOptions): Hono {
  const {
    store,
    credentials,
    trustedProxies,
    log: foreignLog,
  } = parse(receiverOptions, options, 'createReceiver');
  const { onOutcome } = options;
  const log = guardLog(foreignLog);
  return createMountableReceiver({
    intake: store,
    checkCredentials: createCredentialCheck(credentials),
    trustedProxies,
    log,
    nowUs,
    newRequestId: randomUUID,
    ...(onOutcome === undefined ? {} : { observe: guardObserve(onOutcome, log) }),
  });
}

/** Resolves after the polling interval, or when the signal is aborted; never rejects. */
function wait(signal: AbortSignal): Promise<void> {
  return delay(pollMs, undefined, { signal }).catch(() => undefined);
}

const nothing = () => undefined;
const silentLog: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

const receiverOptions = z.strictObject({
  store: withMethods<Intake>(['accept', 'checkWritable'], 'must be the result of openStore'),
  credentials: z
    .array(
      z.strictObject({
        username: z.string().regex(/^[^:]+$/, 'must not be empty or contain a colon (RFC 7617)'),
        password: endpointPassword,
      }),
    )
    .min(1, 'must have at least one user name and password; otherwise, every request is refused'),
  trustedProxies: z
    .array(addressRanges)
    .default([])
    .transform((ranges) => ranges.flat()),
  log: withMethods<Logger>(
    ['debug', 'info', 'warn', 'error'],
    'must have the methods debug, info, warn and error, as pino and console have',
  ).default(silentLog),
  onOutcome: z
    .custom((value) => value === undefined || typeof value === 'function', 'must be a function')
    .optional(),
});

const storeOptions = z.strictObject({ dataDir: z.string().min(1, 'must be the path of a folder') });

/** Throws `configuration` with all problems at once, and never with the value of a secret. */
function parse<Schema extends z.ZodType>(schema: Schema, options: unknown, name: string) {
  const result = schema.safeParse(options);
  if (result.success) return result.data;
  const details = result.error.issues.map(
    ({ path, message }) => `${path.length === 0 ? 'options' : path.join('.')}: ${message}`,
  );
  throw new AppError(
    'configuration',
    `Invalid options of ${name}: ${details.join('; ')}. See docs/library.md.`,
    { details },
  );
}

function withMethods<Port extends object>(methods: readonly (keyof Port)[], message: string) {
  const has = (value: unknown) =>
    typeof value === 'object' &&
    value !== null &&
    methods.every((name) => typeof Reflect.get(value, name) === 'function');
  return z.custom<Port>(has, message);
}
