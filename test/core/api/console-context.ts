/** The private listener on a real socket, over products and notifications in memory. */

import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { onTestFinished } from 'vitest';
import { type ConsoleOptions, createConsoleApp } from '../../../src/core/api/app.ts';
import { startListener } from '../../../src/core/http/listener.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { parseDate } from '../../../src/core/terms/dates.ts';
import type { NotificationLog, NotificationRow } from '../../../src/core/terms/ports.ts';
import { jsonOf } from '../../../src/core/terms/text.ts';
import type {
  CompletenessReader,
  Definition,
  HourCoverage,
} from '../../../src/features/coverage/completeness.ts';
import { createMetrics } from '../../../src/features/metrics/metrics.ts';
import { keyOf } from '../../../src/features/products/index-file/search/conditions.ts';
import { collectionId, collectionOfView } from '../../../src/features/stac/collections.ts';
import type { SummaryReader, SummaryRow } from '../../../src/features/summary/terms.ts';
import { compileFilter } from '../../../src/filter/evaluate.ts';
import type { Entity } from '../../../src/filter/filter-tree.ts';
import { isTooOld } from '../../../src/filter/product-age.ts';
import { factsOfRecord } from '../../../src/filter/product-facts.ts';
import { type ProductView, productView } from '../../../src/filter/product-view.ts';
import type {
  CollectionSummary,
  Facets,
  FoundProduct,
  IndexProgress,
  ProductQuery,
  ProductRow,
  Products,
  Timeliness,
} from '../../../src/filter/products.ts';
import { createCredentialCheck, createGate } from '../../../src/receiver/basic-auth.ts';
import { createProductGenerator } from '../../../src/sandbox/products/product-generator.ts';
import { sampleStatus } from '../../features/status/status-sample.ts';
import { listenerSlots } from '../../helpers/pages.ts';
import { keyComparison } from '../../helpers/product-order.ts';
import { sendRequest } from '../../helpers/send-request.ts';
import { statusParts } from '../../helpers/status.ts';
import { settingWith } from '../../receiver/serve-config.ts';

export interface Answer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  text: string;
  /** Null for a body that is not JSON. */
  json: ReturnType<typeof JSON.parse>;
}

export interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

const silent = () => undefined;
export const log = { debug: silent, info: silent, warn: silent, error: silent };

/** Starts the listener; closed when the test has finished. */
export async function openConsole(options: Partial<ConsoleOptions> & { host?: string } = {}) {
  const products = createMemoryProducts();
  const summaries = createMemorySummaries();
  const host = options.host ?? '127.0.0.1';
  const closing = new AbortController();
  const app = createConsoleApp({
    slots: listenerSlots,
    products,
    notifications: createMemoryLog([]),
    summaries,
    completeness: createMemoryCompleteness(),
    ...createMemoryOperations(),
    backups: { lastBackups: async () => ({ made: null, failed: null }) },
    catalogueUrl: 'https://catalogue.test',
    status: async () => sampleStatus(),
    statusParts,
    setting: settingWith(),
    metrics: createMetrics(statusParts, log),
    readiness: async () => [],
    nowUs: () => Date.UTC(2026, 4, 2, 12) * 1000,
    log,
    authorize: null,
    listenHost: host,
    newRequestId: randomUUID,
    closing: closing.signal,
    ...options,
  });
  const listener = await startListener({
    fetch: app.fetch,
    listen: { host, port: 0 },
    listenVariable: 'EARSHOT_CONSOLE_LISTEN',
  });
  const agent = new Agent({ keepAlive: true });
  onTestFinished(async () => {
    agent.destroy();
    closing.abort();
    await listener.close(0);
  });
  const { port } = listener.address;
  const origin = `http://127.0.0.1:${port}`;
  /** Requests a path, or a whole URL from a response. */
  const get = async (target: string, { body, ...sent }: Sent = {}): Promise<Answer> => {
    const answer = await sendRequest({ url: new URL(target, origin), agent, ...sent }, body);
    const { status, headers, body: text } = answer;
    return { status, headers, text, json: jsonOf(text) ?? null };
  };
  return { products, summaries, origin, port, get, routes: app.routes };
}

/** Some products, published and deleted, in the listener's index. */
export async function openFilled(count = 45, deletedCount = count) {
  const context = await openConsole();
  const { products: published, deleted } = generatedProducts(count);
  context.products.add('Products', ...published);
  context.products.add('DeletedProducts', ...deleted.slice(0, deletedCount));
  return { ...context, published };
}

/** Accepts the user `earshot` with the password `a: word`. */
export function openWithPassword({ nowUs = () => 0, ...options }: Partial<ConsoleOptions> = {}) {
  const checkCredentials = createCredentialCheck([{ username: 'earshot', password: 'a: word' }]);
  const gate = { checkCredentials, log, nowUs, newRequestId: () => 'an-id', blocksAddresses: true };
  return openConsole({ ...options, authorize: createGate(gate, silent) });
}

/** A notification of `alps` without dates or names. */
export function notificationRow(
  position: number,
  changes: Partial<NotificationRow> = {},
): NotificationRow {
  return {
    ...{ position, ackId: null, productId: `product-${position - 1}`, productName: null },
    ...{ event: 'created', subscription: 'alps', subscriptionId: null, source: 'push' },
    ...{ notificationDateUs: 1_777_777_777_777_777, receivedAtUs: 1_777_777_777_000_001 },
    ...{ timesSeen: 1, lastSeenAtUs: 1_777_777_777_000_001, bodyIndex: 0, ...changes },
  };
}

export type Console = Awaited<ReturnType<typeof openConsole>>;

/** A log that applies positions, limits and order, and passes each query to `noted`. */
export function createMemoryLog(
  rows: readonly NotificationRow[],
  noted: Parameters<NotificationLog['find']>[0][] = [],
): NotificationLog {
  const unused = () => Promise.reject(new Error('not called'));
  return {
    async *find(query) {
      noted.push(query);
      const { afterPosition = -1, beforePosition = Number.POSITIVE_INFINITY, limit } = query;
      const within = rows.filter(
        ({ position }) =>
          position > afterPosition &&
          position < beforePosition &&
          (query.positions?.includes(position) ?? true),
      );
      if (query.order !== 'oldest') within.reverse();
      yield* within.slice(0, limit);
    },
    body: async () => new TextEncoder().encode('{}'),
    original: unused,
    nodeId: async () => null,
    lastPosition: async () => rows.at(-1)?.position ?? 0,
    drift: unused,
    counts: unused,
  };
}

const publishedMs = Date.UTC(2026, 4, 1);

/** Products as the sandbox generates them, one published each second. */
export function generatedProducts(count: number) {
  const generator = createProductGenerator({ seed: 5 });
  const products = Array.from({ length: count }, (_, i) => generator.next(publishedMs + i * 1000));
  return { products, deleted: products.map((one) => generator.deleted(one, publishedMs * 1.01)) };
}

/** Follows the links of a list; returns its pages. */
export async function follow(
  { get }: Pick<Console, 'get'>,
  first: string,
  linkOf = (json: Answer['json']) => json['@odata.nextLink'] ?? null,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let next: string | null = first; next !== null; ) {
    const answer: Answer = await get(next);
    answers.push(answer);
    if (answer.status !== 200 || answers.length > 100) throw new Error(answer.text.slice(0, 500));
    next = linkOf(answer.json);
  }
  return answers;
}

export function createMemoryCompleteness(
  known: { definitions?: Definition[]; hours?: HourCoverage[]; unprunedSinceUs?: number } = {},
): CompletenessReader {
  const { definitions = [], hours = [], unprunedSinceUs = 0 } = known;
  return {
    recoveredEvents: async () => [],
    definitions: async () => definitions,
    uptimes: async () => [],
    coverage: async ({ sinceUs, untilUs, subscription }) =>
      hours.filter(
        (one) =>
          one.hourUs >= sinceUs &&
          one.hourUs < untilUs &&
          (subscription === undefined || one.subscription === subscription),
      ),
    stored: async () => [],
    withoutRecord: async () => 0,
    unprunedSinceUs: async () => unprunedSinceUs,
  };
}

/** Readers of a receiver without alerts, sinks, registrations and quarantined bodies. */
export function createMemoryOperations(): Pick<
  ConsoleOptions,
  'quarantine' | 'alerts' | 'sinks' | 'administration'
> {
  const none = async () => [];
  return {
    quarantine: {
      async *quarantined() {},
      quarantinedCount: async () => 0,
      quarantineEntry: () => Promise.reject(new AppError('not_found', 'There is no such body.')),
    },
    alerts: { alerts: none, unsent: none },
    sinks: {
      ...{ due: none, deliveries: none, counts: none, replay: async () => null },
      ...{ nextDueAtUs: async () => null },
      async *items() {},
    },
    administration: {
      ...{ registrations: none, history: none, gaps: none, deliveryMarks: none, queues: none },
    },
  };
}

type ProductRecord = FoundProduct['record'];

export interface MemoryProducts extends Products {
  add(entity: Entity, ...records: ProductRecord[]): void;
  state: IndexProgress;
  timelinessOf(query: Parameters<Products['timeliness']>[0]): Timeliness;
  /** When set, every call fails with it. */
  failure: Error | null;
  /** True if quick counts are estimates. */
  countsPartly: boolean;
}

const noDelays = {
  ...{ sensingToPublication: null, publicationToNotification: null, notificationToReceipt: null },
};

export function createMemoryProducts(): MemoryProducts {
  const found: Record<Entity, FoundProduct[]> = { Products: [], DeletedProducts: [] };
  const intact = () => {
    if (memory.failure) throw memory.failure;
  };
  const matching = ({ entity, filter, maxAgeUs }: ProductQuery) => {
    intact();
    const matches = filter === null ? () => true : compileFilter(filter);
    return found[entity].filter(({ record }) => {
      const view = productView(record);
      return matches(view) && !isTooOld(view, maxAgeUs ?? null);
    });
  };
  const memory: MemoryProducts = {
    state: { indexedPosition: 0, lastPosition: 0 },
    timelinessOf: () => ({
      total: { ...noDelays, sensingToReceipt: null, publicationToReceipt: null },
      ...{ hours: [], collections: [] },
    }),
    failure: null,
    countsPartly: false,
    add: (entity, ...records) => {
      for (const record of records) {
        memory.state.indexedPosition += 1;
        memory.state.lastPosition = memory.state.indexedPosition;
        found[entity].push({ row: rowOf(record, memory.state.lastPosition), record });
      }
    },
    async *find(query) {
      const { skip = 0, limit = Number.POSITIVE_INFINITY, after } = query;
      const compare = keyComparison(query);
      const keyed = matching(query).map((one) => ({ one, key: keyOf(one.row, query) }));
      const rest = keyed.filter(({ key }) => after === undefined || compare(key, after) > 0);
      rest.sort((a, b) => compare(a.key, b.key));
      for (const { one } of rest.slice(skip, skip + limit)) {
        yield query.footprints ? { ...one, footprint: productView(one.record).geometry() } : one;
      }
    },
    count: async (query) => matching(query).length,
    quickCount: async (query) => ({
      count: await memory.count(query),
      isMinimum: memory.countsPartly,
    }),
    keyOf,
    indexProgress: async () => {
      intact();
      return { ...memory.state };
    },
    indexedPosition: async () => memory.state.indexedPosition,
    pushedEvents: async () => [],
    events: async () => ({ events: [], next: null }),
    collections: async () => {
      intact();
      return summariesOf(found.Products.map(({ record }) => productView(record)));
    },
    facets: async () => ({ counted: 0, complete: true, values: {} as Facets['values'] }),
    timeliness: async (query) => {
      intact();
      return memory.timelinessOf(query);
    },
  };
  return memory;
}

/** Summaries without extents. */
function summariesOf(views: readonly ProductView[]): CollectionSummary[] {
  const byId = Object.groupBy(
    views.map((view) => collectionOfView(view)),
    collectionId,
  );
  return Object.keys(byId)
    .toSorted()
    .map((id) => ({
      ...(byId[id]?.[0] ?? { mission: null, productType: null }),
      products: byId[id]?.length ?? 0,
      ...{ sensingStartUs: null, sensingEndUs: null, cloudCoverMin: null, cloudCoverMax: null },
      ...{ box: null, constellations: [], platforms: [], orbitDirections: [], levels: [] },
    }));
}

function rowOf(record: ProductRecord, position: number): ProductRow {
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  const dateUs = (value: unknown) => parseDate(text(value) ?? '')?.us ?? null;
  const { Start, End } = Object(record.ContentDate);
  return {
    ...{ position, productId: String(record.Id), productName: text(record.Name) },
    ...{ collection: null, platform: null, productType: null, processingLevel: null, tile: null },
    ...{ sensingStartUs: dateUs(Start), sensingEndUs: dateUs(End), online: record.Online === true },
    publicationDateUs: dateUs(record.PublicationDate),
    modificationDateUs: dateUs(record.ModificationDate),
    sizeBytes: Number(record.ContentLength ?? 0),
    cloudCoverPercent: factsOfRecord(record, null).cloudCoverPercent,
    ...{ orbitNumber: null, relativeOrbitNumber: null, orbitDirection: null },
    ...{ processingBaseline: null, receivedAtUs: 1_700_000_000_000_000 + position },
    ...{ deletionDateUs: dateUs(record.DeletionDate), deletionCause: text(record.DeletionCause) },
    s3Path: text(record.S3Path),
  };
}

/** Returns a product with a text of a model, requested on 1 May 2026. */
export function summaryRow(id: number, changes: Partial<SummaryRow> = {}): SummaryRow {
  const atUs = Date.UTC(2026, 4, 1) * 1000;
  return {
    ...{ id, kind: 'product', subject: `product-${id}`, productId: `product-${id}` },
    ...{ productName: null, subscription: 'alps', scope: null, state: 'done' },
    text: { text: 'A text.', model: 'a/b', facts: {}, createdAtUs: atUs },
    ...{ requestedAtUs: atUs, dueAtUs: null, reason: null, ...changes },
  };
}

/** Summaries that apply the limit and the end of the previous page, and note each query. */
function createMemorySummaries() {
  const neverCalled = () => Promise.reject(new Error('not called'));
  type Query = Parameters<SummaryReader['find']>[0];
  const memory = {
    rows: [] as SummaryRow[],
    noted: [] as Query[],
    async *find(query: Query) {
      memory.noted.push(query);
      const { beforeId = Number.POSITIVE_INFINITY, limit } = query;
      const matches = memory.rows.filter(({ id }) => id < beforeId);
      yield* matches.toSorted((a, b) => b.id - a.id).slice(0, limit);
    },
    textsOf: async (ids: readonly string[]) =>
      new Map(
        memory.rows.flatMap(({ productId, text }) =>
          productId !== null && text !== null && ids.includes(productId) ? [[productId, text]] : [],
        ),
      ),
    due: neverCalled,
    waiting: neverCalled,
    spending: neverCalled,
    refusedAnswer: neverCalled,
  };
  return memory satisfies SummaryReader;
}
