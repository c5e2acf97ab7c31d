/** A catalogue with past products on loopback, and a data directory that received pushes of some of them. */

import { onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/core/config/config.ts';
import { createReconcileRounds } from '../../../src/features/coverage/job.ts';
import { reconcileSections } from '../../../src/features/coverage/settings.ts';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../../src/features/products/index-file/products.ts';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../../src/sandbox/settings.ts';
import type { Store } from '../../../src/store/store.ts';
import { registrationOf } from '../../admin/samples.ts';
import { delivery } from '../../helpers/deliveries.ts';
import { type FakeIoOptions, startCommand, type Words } from '../../helpers/fake-io.ts';
import { withStore as withOpenStore } from '../../helpers/filled-store.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { settings } from '../../helpers/settings.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

export const hourUs = 3_600_000_000;
/** Time at which every command of these tests runs: 2026-05-02T12:20:00Z. */
export const nowUs = Date.UTC(2026, 4, 2, 12, 20) * 1000;

/** A product as the catalogue returns it. */
export interface CatalogueProduct {
  Id: string;
  Name: string;
  PublicationDate: string;
  ModificationDate: string;
}

export type ReconcileContext = Awaited<ReturnType<typeof openReconcileContext>>;

/** Opens a catalogue with the past two days: 48 products each, some modified, some deleted. */
export async function openReconcileContext(options: Partial<SandboxOptions> = {}) {
  const sandbox = await startSandbox({
    now: () => nowUs / 1_000,
    count: 0,
    modifiedShare: 0.25,
    deletedShare: 0.1,
    past: { durationMs: 2 * 86_400_000, productsPerDay: 48 },
    ...options,
  });
  onTestFinished(() => sandbox.close());
  const dataDir = temporaryDirectory();
  const env = environmentOf(dataDir, sandbox);
  const start = (argv: Words, more: FakeIoOptions = {}) =>
    startCommand(argv, { nowUs: () => nowUs, ...more, env: { ...env, ...more.env } });
  const withStore = <Result>(use: (store: Store) => Promise<Result>) => withOpenStore(dataDir, use);
  return {
    sandbox,
    dataDir,
    start,
    run: (argv: Words, more?: FakeIoOptions) => start(argv, more).ended,
    /** Returns the products of the catalogue, oldest first. */
    catalogueProducts: () => productsIn(sandbox),
    withStore,
    /** Registers a subscription in the data directory, by default two weeks ago for all products. */
    register: (name: string, { filter = '', atUs = nowUs - 14 * 24 * hourUs } = {}) =>
      withStore((store) => store.administration.commit({ save: registration(name, filter, atUs) })),
    /** Stores pushes of these products' publication, received a minute after it. */
    push: (name: string, products: readonly CatalogueProduct[]) =>
      withStore(async (store) => {
        for (const product of products) await store.accept(pushOf(name, product));
      }),
    /** Returns the number of catalogue queries. */
    asked: () => sandbox.requests().filter(({ path }) => path.endsWith('Products')).length,
  };
}

function environmentOf(dataDir: string, { catalogueUrl, tokenUrl }: Sandbox) {
  return {
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_CATALOGUE_URL: catalogueUrl,
    EARSHOT_TOKEN_URL: tokenUrl,
    EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: '60000',
  };
}

/** Runs one round of the comparison that a receiver makes automatically. */
export function compareAutomatically(
  { dataDir, sandbox, withStore }: ReconcileContext,
  atUs = nowUs,
) {
  const env = environmentOf(dataDir, sandbox);
  const config = loadConfig({ settings, env, readFile: () => '' }, reconcileSections);
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const { signal } = stopping;
  return withStore(async (store) => {
    const products = openProducts(dataDir);
    const io = { nowUs: () => atUs, random: () => 0, fetch, signal };
    const parts = { store, products, log: silentLog };
    const outcome = await createReconcileRounds(parts, config, io, signal)();
    await products.close();
    await catchUpIndex({ dataDir });
    return outcome;
  });
}

function registration(name: string, filter: string, atUs: number) {
  return registrationOf({
    ...{ name, filter, events: ['created', 'modified', 'deleted'] },
    ...{ subscriptionId: '6f1f7f9a-1a0c-4a52-8c0a-5d6f0c1b2a3d', credentialsDigest: null },
    ...{ activityAtUs: atUs, notifiedAtUs: atUs, runningSeenAtUs: atUs },
  });
}

/** The push of a product's publication, by default received a minute after it. */
export function pushOf(subscription: string, product: CatalogueProduct, receivedAtUs?: number) {
  const publishedMs = Date.parse(product.PublicationDate);
  const body = {
    SubscriptionEvent: 'created',
    ProductId: product.Id,
    ProductName: product.Name,
    NotificationDate: new Date(publishedMs + 50_000).toISOString(),
    AckId: `ack-${product.Id}`,
    // The record at publication time, before any modification.
    value: { ...product, ModificationDate: product.PublicationDate },
  };
  const usualUs = (publishedMs + 60_000) * 1_000;
  return delivery(body, { subscription, receivedAtUs: receivedAtUs ?? usualUs });
}

/** Returns products of a catalogue, oldest first. */
export async function productsIn(
  { catalogueUrl }: Pick<Sandbox, 'catalogueUrl'>,
  options: { $filter?: string } = {},
): Promise<CatalogueProduct[]> {
  const sorted = { $orderby: 'PublicationDate asc', $top: '1000', $expand: 'Attributes' };
  const query = new URLSearchParams({ ...sorted, ...options });
  const answer = await fetch(`${catalogueUrl}/odata/v1/Products?${query}`);
  const { value } = (await answer.json()) as { value: CatalogueProduct[] };
  return value;
}
