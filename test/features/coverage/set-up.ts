/** A catalogue in memory, and a real store and index for the comparison. */
import { onTestFinished } from 'vitest';
import type { ListedEvent, ProductListing } from '../../../src/admin/listing.ts';
import { formatDateUs } from '../../../src/core/terms/dates.ts';
import type { SubscriptionEvent } from '../../../src/core/terms/subscription.ts';
import {
  type ReconcileContext,
  type ReconcileOptions,
  reconcile,
} from '../../../src/features/coverage/reconcile.ts';
import type { ReconcileTask } from '../../../src/features/coverage/tasks.ts';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../../src/features/products/index-file/products.ts';
import { collect, delivery } from '../../helpers/deliveries.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';

export const minute = 60_000_000;
export const hour = 60 * minute;
/** Start of an hour. */
export const t0 = Date.UTC(2026, 9, 1, 10) * 1000;

/** A product in the catalogue; times are minutes after `t0`. */
export interface CatalogueProduct {
  id: string;
  published?: number;
  modified?: number;
  deleted?: number;
}

const at = (minutes: number) => t0 + Math.round(minutes * minute);
const date = (minutes: number | undefined) =>
  minutes === undefined ? undefined : formatDateUs(at(minutes));

/** The catalogue's record of a product. */
export function recordOf({ id: Id, published, modified, deleted }: CatalogueProduct) {
  const Name = `N_${Id}`;
  if (deleted !== undefined) return { Id, Name, DeletionDate: date(deleted) };
  return {
    Id,
    Name,
    PublicationDate: date(published),
    ModificationDate: date(modified ?? published),
  };
}

/** A push of an event with the product's state; `received` is in minutes after `t0`. */
export interface TestPush {
  event: SubscriptionEvent;
  product: CatalogueProduct;
  received: number;
  subscription?: string;
  withoutRecord?: true;
  ackId?: string;
}

export type ReconcileSetUp = Awaited<ReturnType<typeof openSetUp>>;

/** Opens a setup with small pages, so that there are several. The index is updated only by a wait for it. */
export async function openSetUp(pageMax = 3) {
  const { store, dataDir } = await openSqliteStore();
  const products = openProducts(dataDir);
  onTestFinished(() => products.close());
  let pushed = 0;
  const { completeness } = store;
  const state = {
    /** Products in the catalogue; tests change them. */
    catalogue: [] as CatalogueProduct[],
    /** Minutes after `t0`. */
    now: 100_000,
    /** Called before each page, and before and after each write; tests throw or act there. */
    onStep: (_step: string): void | Promise<void> => undefined,
    pauses: 0,
  };
  const wrapped = async <Result>(step: string, act: () => Promise<Result>) => {
    await state.onStep(`before ${step}`);
    const result = await act();
    await state.onStep(`after ${step}`);
    return result;
  };
  /** Indexes the log. Without this call, the index lags. */
  const index = async () => {
    await catchUpIndex({ dataDir });
  };
  const context: ReconcileContext = {
    listing: {
      list: (query, signal) => list(state, pageMax, query, signal),
      spent: () => ({ requests: 0, unreadableRecords: 0, undecided: 0 }),
    },
    completeness: {
      recoveredEvents: completeness.recoveredEvents,
      unprunedSinceUs: completeness.unprunedSinceUs,
      recover: (options) => wrapped('recover', () => completeness.recover(options)),
      saveCoverage: (hours) => wrapped('save', () => completeness.saveCoverage(hours)),
    },
    products,
    log: store,
    nowUs: () => at(state.now),
    ownNowUs: () => at(state.now),
    pause: async () => {
      state.pauses += 1;
      await index();
    },
  };
  // Tests change its state and its ports.
  const changeable = Object.assign(state, context);
  await index();
  return Object.assign(changeable, {
    ...{ store, dataDir, index },
    push: async (...pushes: TestPush[]) => {
      for (const one of pushes) {
        pushed += 1;
        await store.accept(deliveryOf(one, pushed));
      }
    },
    /** Returns rows of a subscription in the log, oldest first. */
    rows: async (subscription = 'alps') => collect(store.find({ subscription, order: 'oldest' })),
    coverage: async (subscription = 'alps') =>
      completeness.coverage({ sinceUs: 0, untilUs: Number.MAX_SAFE_INTEGER, subscription }),
    run: (tasks: readonly ReconcileTask[], options: Partial<ReconcileOptions> = {}) =>
      reconcile(changeable, { ...usual, tasks, signal: new AbortController().signal, ...options }),
  });
}

const usual = { mode: 'write', coverage: true } as const;

/** From and to in minutes after `t0`. */
export function task(
  event: SubscriptionEvent,
  [from, to]: readonly [number, number],
  fields: Partial<ReconcileTask> = {},
): ReconcileTask {
  const window = { fromUs: at(from), toUs: at(to) };
  const subscription = { subscription: 'alps', subscriptionId: null, filter: '', isEarlier: false };
  return { ...subscription, event, ...window, ...fields };
}

function deliveryOf(
  { event, product, received, subscription = 'alps', withoutRecord, ackId }: TestPush,
  number: number,
) {
  const body = {
    SubscriptionEvent: event,
    ProductId: product.id,
    NotificationDate: formatDateUs(at(received)),
    AckId: ackId ?? `ack-${number}`,
    ...(withoutRecord ? {} : { value: recordOf(product) }),
  };
  return delivery(body, { subscription, receivedAtUs: at(received) });
}

/** Lists the catalogue. */
async function* list(
  state: Pick<ReconcileSetUp, 'catalogue' | 'onStep'>,
  pageMax: number,
  { event, fromUs, toUs }: Parameters<ProductListing['list']>[0],
  signal: AbortSignal,
): ReturnType<ProductListing['list']> {
  const listed = state.catalogue
    .flatMap((product) => listedAs(event, product))
    .filter(({ eventUs }) => eventUs >= fromUs && eventUs < toUs)
    .toSorted((a, b) => a.eventUs - b.eventUs);
  for (let i = 0; i === 0 || i < listed.length; i += pageMax) {
    await state.onStep('page');
    signal.throwIfAborted();
    const events = listed.slice(i, i + pageMax);
    const isLast = i + pageMax >= listed.length;
    const completeUpToUs = isLast ? toUs : (events.at(-1)?.eventUs ?? fromUs);
    yield { events, completeUpToUs, total: listed.length };
  }
}

function listedAs(event: SubscriptionEvent, product: CatalogueProduct): ListedEvent[] {
  const { id, published, modified = published, deleted } = product;
  const us = (minutes: number | undefined) => (minutes === undefined ? null : at(minutes));
  const isGone = deleted !== undefined;
  const [publicationDateUs, modificationDateUs] = isGone
    ? [null, null]
    : [us(published), us(modified)];
  const dates = { created: publicationDateUs, modified: modificationDateUs, deleted: us(deleted) };
  const eventUs = dates[event];
  if (eventUs === null) return [];
  const record = Buffer.from(JSON.stringify(recordOf(product)));
  return [{ productId: id, productName: `N_${id}`, eventUs, publicationDateUs, record }];
}

export const none = { pushed: 0, late: 0, recovered: 0, missing: 0 };
