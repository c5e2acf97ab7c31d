/**
 * Records of pulled notifications without one: after three days, the catalogue removes the record and the name of the
 * product from an entry of a queue. The record is fetched by id and written to the log as a recovered event, which the
 * product index, the sinks and the summaries read as any other.
 */
import type { Registration } from '../domain/account.ts';
import type { Cursors, NotificationLog, NotificationRow } from '../domain/ports.ts';
import { recordReader } from '../domain/pull-queue.ts';
import { type SubscriptionEvent, subscriptionEvents } from '../domain/subscription.ts';
import { type CompareContext, comparePage, isRecordable } from './compare-page.ts';
import type { ListedEvent, ProductListing, ReconcileTask } from './tasks.ts';

/** Maximum time from a modification to its notification; 48 s where it is known (facts, catalogue 1.1). */
const notificationDelayMaxUs = 600_000_000;

/** Number of entries between two stored positions of the cursor. */
const batchMax = 100;

export interface RecordContext extends Omit<CompareContext, 'log'> {
  log: Pick<NotificationLog, 'find' | 'lastPosition'>;
  cursors: Cursors;
  listing: Pick<ProductListing, 'product'>;
}

/** Result of a run. */
export interface FetchedRecords {
  /** Number of records that were fetched and written. */
  fetched: number;
  /** Products that no longer exist in the catalogue, so that their records cannot be fetched. */
  gone: { subscription: string; event: SubscriptionEvent; productId: string }[];
}

type Missing = Pick<NotificationRow, 'productId' | 'notificationDateUs'> & {
  subscription: string;
  event: SubscriptionEvent;
};

/**
 * Fetches the missing records since the last run, oldest first. The position reached is stored after each batch, so a
 * run may be interrupted at any time. Rejects as `ProductListing.product` and `comparePage` do.
 */
export async function fetchRecords(
  context: RecordContext,
  registrations: readonly Pick<Registration, 'name' | 'subscriptionId'>[],
  signal: AbortSignal,
): Promise<FetchedRecords> {
  const { log, cursors, nowUs, ownNowUs = nowUs } = context;
  const total: FetchedRecords = { fetched: 0, gone: [] };
  const endPosition = await log.lastPosition();
  const afterPosition = (await cursors.cursor(recordReader)) ?? 0;
  let batch: Missing[] = [];
  const finish = async (position: number) => {
    await fetchBatch(batch, total, { context, registrations, signal });
    batch = [];
    await cursors.moveCursor(recordReader, position, ownNowUs());
  };
  for await (const row of log.find({ source: 'pull', afterPosition, order: 'oldest' })) {
    if (row.position > endPosition) break;
    const missing = missingRecord(row);
    if (missing !== null) batch.push(missing);
    if (batch.length >= batchMax) await finish(row.position);
  }
  if (endPosition > afterPosition) await finish(endPosition);
  return total;
}

/** Returns null for an entry with a record, which always has a name. */
function missingRecord({
  productId,
  productName,
  subscription,
  notificationDateUs,
  event: name,
}: NotificationRow): Missing | null {
  const event = subscriptionEvents.find((known) => known === name);
  if (productName !== null || subscription === null || event === undefined) return null;
  return { productId, notificationDateUs, subscription, event };
}

interface Run {
  context: RecordContext;
  registrations: readonly Pick<Registration, 'name' | 'subscriptionId'>[];
  signal: AbortSignal;
}

async function fetchBatch(batch: readonly Missing[], total: FetchedRecords, run: Run) {
  const { context, signal } = run;
  const kinds = Map.groupBy(batch, ({ subscription, event }) => `${subscription} ${event}`);
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
      const found = await context.listing.product({ event, productId }, signal);
      if (found === null) total.gone.push({ subscription, event, productId });
      else if (isRecordable(found)) listed.push(found);
      asked.add(productId.toLowerCase());
    }
    const task = taskOf(first, run.registrations);
    const compared = await comparePage(task, listed, context, {
      mode: 'write',
      settlingUs: 0,
      signal,
    });
    total.fetched += compared.filter(({ wasMissing }) => wasMissing).length;
  }
}

/**
 * Returns the function that is true for an entry whose event was already recovered. A product is created and deleted
 * once; a modification is known when the recovered state is not older than its notification.
 */
async function knownEvents({ completeness }: RecordContext, batch: readonly Missing[]) {
  const [{ subscription, event } = { subscription: '', event: '' }] = batch;
  const productIds = batch.map(({ productId }) => productId);
  const recovered = await completeness.recoveredEvents({ subscription, productIds });
  const same = recovered.filter((one) => one.event === event);
  const byId = Map.groupBy(same, ({ productId }) => productId.toLowerCase());
  return ({ productId, notificationDateUs }: Missing): boolean =>
    (byId.get(productId.toLowerCase()) ?? []).some(
      ({ eventUs }) =>
        event !== 'modified' || eventUs >= (notificationDateUs ?? 0) - notificationDelayMaxUs,
    );
}

function taskOf(
  { subscription, event }: Missing,
  registrations: Run['registrations'],
): ReconcileTask {
  const known = registrations.find(({ name }) => name === subscription);
  const always = { fromUs: Number.NEGATIVE_INFINITY, toUs: Number.POSITIVE_INFINITY };
  const subscriptionId = known?.subscriptionId ?? null;
  return {
    subscription,
    subscriptionId,
    event,
    filter: '',
    isEarlier: false,
    ...always,
    hours: always,
  };
}
