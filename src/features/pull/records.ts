/**
 * Records of pulled notifications without one: after three days, the catalogue removes the record and the name of the
 * product from an entry of a queue. The record is fetched by id and written to the log as a recovered event, which the
 * product index, the sinks and the summaries read as any other.
 */
import type { HistoryEntry, Registration } from '../../admin/account.ts';
import type { ListedEvent, ProductListing } from '../../admin/listing.ts';
import { recordReader } from '../../admin/pull-queue.ts';
import { pause } from '../../core/cli/io.ts';
import { errorFields } from '../../core/host/job.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import type { Cursors, NotificationLog, NotificationRow } from '../../core/terms/ports.ts';
import { type SubscriptionEvent, subscriptionEvents } from '../../core/terms/subscription.ts';
import { type CompareContext, comparePage, isRecordable } from '../coverage/compare-page.ts';
import type { ComparisonStep } from '../coverage/job.ts';
import type { ReconcileTask } from '../coverage/tasks.ts';

/** Maximum time from a modification to its notification; 48 s where it is known (facts, catalogue 1.1). */
const notificationDelayMaxUs = 600_000_000;

/** Number of entries between two stored positions of the cursor. */
const batchMax = 100;

/** A run ends after this number of requests: a comparison, which waits for it, gets 400 records with one request. */
const requestsMax = 300;

export interface RecordContext extends Omit<CompareContext, 'log'> {
  log: Pick<NotificationLog, 'find' | 'lastPosition'>;
  cursors: Cursors;
  listing: Pick<ProductListing, 'product'>;
  /** True if the catalogue answers: the failure of one product is then its own. */
  isAnswering: boolean;
  /** Called before the position after these products is stored. When it rejects, they are requested again. */
  report(products: readonly MissingRecord[]): Promise<void>;
}

/** A product whose record could not be fetched. */
export interface MissingRecord {
  subscription: string;
  event: SubscriptionEvent;
  productId: string;
  /** Null for a product that no longer exists in the catalogue. */
  error: AppError | null;
}

/** Result of a run. */
interface FetchedRecords {
  /** Number of records that were fetched and written. */
  fetched: number;
  /** False when the limit of requests was reached first. */
  isEnd: boolean;
}

type Pulled = Pick<NotificationRow, 'productId' | 'notificationDateUs'> & {
  subscription: string;
  event: SubscriptionEvent;
};

/**
 * Fetches the missing records since the last run, oldest first. The position reached is stored after each batch, so a
 * run may be interrupted at any time. Rejects as `comparePage` and `report` do, and with `unavailable` when two products
 * in sequence fail, or the first one while the catalogue does not answer.
 */
export async function fetchRecords(
  context: RecordContext,
  registrations: readonly Pick<Registration, 'name' | 'subscriptionId'>[],
  signal: AbortSignal,
): Promise<FetchedRecords> {
  const { log, cursors, ownNowUs, report } = context;
  const run: Run = { context, registrations, signal, requests: createRecordRequests(context) };
  let fetched = 0;
  const endPosition = await log.lastPosition();
  const afterPosition = (await cursors.cursor(recordReader)) ?? 0;
  let batch: Pulled[] = [];
  const finish = async (position: number) => {
    const missing: MissingRecord[] = [];
    fetched += await fetchBatch(batch, missing, run);
    batch = [];
    if (missing.length > 0) await report(missing);
    await cursors.moveCursor(recordReader, position, ownNowUs());
  };
  for await (const row of log.find({ source: 'pull', afterPosition, order: 'oldest' })) {
    if (row.position > endPosition) break;
    const pulled = withoutRecord(row);
    if (pulled !== null) batch.push(pulled);
    if (batch.length >= batchMax) await finish(row.position);
    if (run.requests.count() >= requestsMax) return { fetched, isEnd: false };
  }
  if (endPosition > afterPosition) await finish(endPosition);
  return { fetched, isEnd: true };
}

/** Creates the function that requests a product. It returns the error of a product that alone fails. */
function createRecordRequests({ listing, isAnswering }: RecordContext) {
  let count = 0;
  let isLastAnswered = isAnswering;
  return {
    count: () => count,
    product: async (
      product: { event: SubscriptionEvent; productId: string },
      signal: AbortSignal,
    ): Promise<ListedEvent | AppError | null> => {
      count += 1;
      try {
        const found = await listing.product(product, signal);
        isLastAnswered = true;
        return found === null || isRecordable(found) ? found : unusable();
      } catch (error) {
        signal.throwIfAborted();
        // A refusal is an answer.
        const isRefused = isAppError(error, 'invalid');
        const isOwn = isRefused || (isAppError(error, 'unavailable') && isLastAnswered);
        if (!isOwn) throw error;
        isLastAnswered = isRefused;
        return error;
      }
    },
  };
}

const unusable = () =>
  new AppError(
    'invalid',
    'The catalogue returned an unusable Id, or a record over the limits of a push.',
  );

/** Returns null for an entry with a record, which always has a name. */
function withoutRecord({
  productId,
  productName,
  subscription,
  notificationDateUs,
  event: name,
}: NotificationRow): Pulled | null {
  const event = subscriptionEvents.find((known) => known === name);
  if (productName !== null || subscription === null || event === undefined) return null;
  return { productId, notificationDateUs, subscription, event };
}

interface Run {
  context: RecordContext;
  registrations: readonly Pick<Registration, 'name' | 'subscriptionId'>[];
  signal: AbortSignal;
  requests: ReturnType<typeof createRecordRequests>;
}

/** Returns the number of written records; adds the products without one to `missing`. */
async function fetchBatch(
  batch: readonly Pulled[],
  missing: MissingRecord[],
  { context, registrations, signal, requests }: Run,
): Promise<number> {
  const kinds = Map.groupBy(batch, ({ subscription, event }) => `${subscription} ${event}`);
  let written = 0;
  for (const [first, ...others] of kinds.values()) {
    if (first === undefined) continue;
    const { subscription, event } = first;
    const isKnown = await knownEvents(context, [first, ...others]);
    const asked = new Set<string>();
    const listed: ListedEvent[] = [];
    for (const one of [first, ...others]) {
      const { productId } = one;
      if (isKnown(one) || asked.has(productId.toLowerCase())) continue;
      signal.throwIfAborted();
      const found = await requests.product({ event, productId }, signal);
      if (found === null || isAppError(found)) {
        missing.push({ subscription, event, productId, error: found });
      } else listed.push(found);
      asked.add(productId.toLowerCase());
    }
    const task = taskOf(first, registrations);
    const compared = await comparePage(task, listed, context, {
      mode: 'write',
      settlingUs: 0,
      signal,
    });
    written += compared.filter(({ wasMissing }) => wasMissing).length;
  }
  return written;
}

/**
 * Returns the function that is true for an entry whose event was already recovered. A product is created and deleted
 * once; a modification is known when the recovered state is not older than its notification.
 */
async function knownEvents({ completeness }: RecordContext, batch: readonly Pulled[]) {
  const [{ subscription, event } = { subscription: '', event: '' }] = batch;
  const productIds = batch.map(({ productId }) => productId);
  const recovered = await completeness.recoveredEvents({ subscription, productIds });
  const same = recovered.filter((one) => one.event === event);
  const byId = Map.groupBy(same, ({ productId }) => productId.toLowerCase());
  return ({ productId, notificationDateUs }: Pulled): boolean =>
    (byId.get(productId.toLowerCase()) ?? []).some(
      ({ eventUs }) =>
        event !== 'modified' || eventUs >= (notificationDateUs ?? 0) - notificationDelayMaxUs,
    );
}

function taskOf(
  { subscription, event }: Pulled,
  registrations: Run['registrations'],
): ReconcileTask {
  const known = registrations.find(({ name }) => name === subscription);
  const always = { fromUs: Number.NEGATIVE_INFINITY, toUs: Number.POSITIVE_INFINITY };
  const subscriptionId = known?.subscriptionId ?? null;
  return { subscription, subscriptionId, event, filter: '', isEarlier: false, ...always };
}

const lockWaitMs = 10_000;

/**
 * Fetches the records that entries of queues no longer have. A failure does not affect the comparison. After the last
 * pull subscription was removed, what is left is fetched; then the cursor is removed, so that it does not prevent pruning.
 */
export const fetchPulledRecords: ComparisonStep = async (step) => {
  const { store, products, log, listing, nowUs, ownNowUs, signal, isAnswering } = step;
  const { administration, completeness, pruning } = store;
  const registrations = await administration.registrations();
  const hasEnded = registrations.every(({ type }) => type !== 'pull');
  if (hasEnded && (await store.cursor(recordReader)) === null) return;
  try {
    const context = { listing, completeness, products, log: store, cursors: store, pause };
    const report = (missing: readonly MissingRecord[]) =>
      reportMissing(missing, { store, log }, ownNowUs());
    const { fetched, isEnd } = await fetchRecords(
      { ...context, nowUs, ownNowUs, isAnswering, report },
      registrations,
      signal,
    );
    if (fetched > 0) log.info({ fetched }, 'fetched the records of pulled notifications');
    if (hasEnded && isEnd) await pruning.removeReader(recordReader);
  } catch (error) {
    if (signal.aborted || !isAppError(error)) throw error;
    log.warn(errorFields(error), 'failed to fetch the records of pulled notifications');
  }
};

/** Maximum number of ids in an entry of the history. */
const idsMax = 20;

/** Records the products in the history of their subscription: no record was fetched for their notifications. */
async function reportMissing(
  missing: readonly MissingRecord[],
  { store, log }: Pick<Parameters<ComparisonStep>[0], 'store' | 'log'>,
  atUs: number,
): Promise<void> {
  const release = await store.acquireLock('subscriptions', { waitMs: lockWaitMs });
  try {
    for (const { error, ...product } of missing) {
      if (error === null) log.warn(product, 'a pulled product no longer exists');
      else log.warn({ ...product, ...errorFields(error) }, 'failed to fetch a pulled product');
    }
    const kind = ({ subscription, error }: MissingRecord) => `${subscription} ${error === null}`;
    const history = [...Map.groupBy(missing, kind).values()].flatMap((products): HistoryEntry[] => {
      const [{ subscription, error } = { subscription: '', error: null }] = products;
      const text = error === null ? goneText : failedProductsText;
      const ids = products.map(({ productId }) => productId);
      const more = ids.length > idsMax ? ` and ${ids.length - idsMax} more` : '';
      const reason = `${text}: ${ids.slice(0, idsMax).join(', ')}${more}`;
      return [
        { atUs, subscription, subscriptionId: null, action: 'noted', actor: 'maintain', reason },
      ];
    });
    await store.administration.commit({ history });
  } finally {
    release();
  }
}

const goneText = 'products of entries without a record that no longer exist in the catalogue';
const failedProductsText = 'products of entries without a record that could not be fetched';
