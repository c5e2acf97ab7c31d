/** Creates summary jobs: by the rules, from new notifications of the log. */

import type { Io } from '../../core/cli/io.ts';
import type { Config } from '../../core/config/config.ts';
import type { AcquireLock } from '../../core/host/job.ts';
import { dayUs } from '../../core/terms/dates.ts';
import type { Cursors, Logger, NotificationLog, NotificationRow } from '../../core/terms/ports.ts';
import { requireFilter } from '../../filter/check.ts';
import { type FilterTree, joined } from '../../filter/filter-tree.ts';
import { isTooOld } from '../../filter/product-age.ts';
import { productView } from '../../filter/product-view.ts';
import type { FoundProduct, Products } from '../../filter/products.ts';
import type { IntakeActivity } from '../../store/log/intake-queue.ts';
import type { Store } from '../../store/store.ts';
import { type Places, sharedPlaces } from '../products/places/places.ts';
import { type ChatClient, createChatClient } from './chat-client.ts';
import {
  type DigestScope,
  type DigestWindow,
  type NewSummaryJob,
  type Summaries,
  type SummaryBudget,
  type SummaryRule,
  summaryReader,
} from './terms.ts';

export interface SummaryModel {
  /** `<vendor>/<model_name>`. */
  name: string;
  client: ChatClient;
}

export interface SummaryContext {
  notifications: Pick<NotificationLog, 'find' | 'lastPosition'> & Pick<Cursors, 'cursor'>;
  products: Pick<Products, 'find' | 'indexedPosition'>;
  summaries: Summaries;
  activity: Pick<IntakeActivity, 'changes' | 'next'>;
  places: () => Places;
  /** Null if none is configured: the texts come from the template. */
  model: SummaryModel | null;
  budget: SummaryBudget;
  acquireLock: AcquireLock;
  nowUs: () => number;
  random: () => number;
  log: Logger;
}

/** Maximum number of rows in one round, a transaction of a few milliseconds. */
const rowsMax = 50;

/** Maximum number of waiting product jobs; the longest waiting ones are dropped. */
export const waitingMax = 10_000;

/** Maximum age of a notification for an automatic summary, and maximum wait of a summary for the model. */
export const summaryWithinUs = 7 * dayUs;

/** Returns the rule of a subscription, by the name in its path. Its filter is valid. */
export type RuleOf = (subscription: string | null) => SummaryRule;

/** Result of a round: the log is read up to this time of receipt. */
interface Collected {
  hasMore: boolean;
  readUntilUs: number;
}

/**
 * Reads the next notifications. The first time it begins at the end of the log: earlier notifications are summarized by
 * command. Jobs and cursor are saved in one transaction. The caller holds the lock.
 */
export async function collectJobs(context: SummaryContext, ruleOf: RuleOf): Promise<Collected> {
  const { notifications, products, summaries, nowUs } = context;
  const seen = await notifications.cursor(summaryReader);
  const lastPosition = await notifications.lastPosition();
  const atUs = nowUs();
  if (seen === lastPosition) return { hasMore: false, readUntilUs: atUs };
  const save = async (jobs: readonly NewSummaryJob[], position: number) => {
    const cursor = { reader: summaryReader, position };
    const { dropped } = await summaries.enqueue({ jobs, cursor, waitingMax, atUs });
    if (dropped > 0)
      context.log.warn({ dropped, waitingMax }, 'dropped oldest summaries: queue full');
  };
  // A cursor beyond the end belongs to another log.
  if (seen === null || seen > lastPosition) {
    await save([], lastPosition);
    return { hasMore: false, readUntilUs: atUs };
  }
  const beforePosition = Math.min(lastPosition, await products.indexedPosition()) + 1;
  const query = { afterPosition: seen, beforePosition, order: 'oldest', limit: rowsMax } as const;
  const rows = await Array.fromAsync(notifications.find(query));
  const isFull = rows.length === rowsMax;
  const position = isFull ? (rows.at(-1)?.position ?? seen) : Math.max(seen, beforePosition - 1);
  if (position === seen) return { hasMore: false, readUntilUs: 0 };
  const jobs = await jobsOf(rows, ruleOf, { products, atUs });
  // The index was replaced meanwhile: products may have been missing.
  if ((await products.indexedPosition()) < position) return { hasMore: false, readUntilUs: 0 };
  await save(jobs, position);
  const isAtEnd = position >= lastPosition;
  return { hasMore: isFull, readUntilUs: isAtEnd ? atUs : (rows.at(-1)?.receivedAtUs ?? 0) };
}

/**
 * Returns false while the index lacks notifications that summaries have read, because it is rebuilt: products are then
 * missing, not removed.
 */
export async function isIndexed({ notifications, products }: SummaryContext): Promise<boolean> {
  const seen = (await notifications.cursor(summaryReader)) ?? 0;
  // A cursor beyond the end belongs to another log.
  const position = Math.min(seen, await notifications.lastPosition());
  return (await products.indexedPosition()) >= position;
}

async function jobsOf(
  rows: readonly NotificationRow[],
  ruleOf: RuleOf,
  { products, atUs }: { products: Pick<Products, 'find'>; atUs: number },
): Promise<NewSummaryJob[]> {
  const recent = rows.filter(({ receivedAtUs }) => receivedAtUs >= atUs - summaryWithinUs);
  const jobs = new Map<string, NewSummaryJob>();
  for (const row of recent) {
    const rule = ruleOf(row.subscription);
    const { kind, filter, maxAgeUs, window } = rule;
    if (kind === 'off') continue;
    const { subscription, receivedAtUs, position } = row;
    const scope = {
      ...windowAt(window, receivedAtUs),
      subscription,
      filter: filter || null,
      maxAgeUs,
    };
    const job = kind === 'digest' ? digestJob(scope, position) : productJob(row, atUs);
    if (kind === 'digest' || (await isMatch(row, rule, products))) jobs.set(job.subject, job);
  }
  return [...jobs.values()];
}

async function isMatch(
  { productId }: NotificationRow,
  { filter, maxAgeUs }: SummaryRule,
  products: Pick<Products, 'find'>,
): Promise<boolean> {
  const tree = requireFilter(filter, 'Products');
  if (tree === null && maxAgeUs === undefined) return true;
  if (tree === null) {
    const found = await findProduct(products, ['Products', 'DeletedProducts'], productId);
    return found === null || !isTooOld(productView(found.record), maxAgeUs ?? null);
  }
  return (await findProduct(products, ['Products'], productId, tree, maxAgeUs)) !== null;
}

/** Returns the indexed product with this id if it matches a filter, and is not too old; otherwise null. */
export async function findProduct(
  products: Pick<Products, 'find'>,
  entities: readonly ('Products' | 'DeletedProducts')[],
  productId: string,
  condition: FilterTree | null = null,
  maxAgeUs?: number,
): Promise<FoundProduct | null> {
  const literals = [{ type: 'text', value: productId }] as const;
  const filter = joined('and', [{ node: 'in', field: 'Id', literals }, condition]);
  for (const entity of entities) {
    for await (const found of products.find({ entity, filter, maxAgeUs, limit: 1 })) return found;
  }
  return null;
}

export function productJob(
  row: Pick<NotificationRow, 'productId' | 'productName' | 'subscription' | 'position'>,
  dueAtUs: number,
): NewSummaryJob {
  const { productId, productName, subscription, position } = row;
  const subject = productId.toLowerCase();
  const product = { productId, productName };
  return { kind: 'product', subject, ...product, subscription, scope: null, position, dueAtUs };
}

/** Due at the end of its period. */
export function digestJob(scope: DigestScope, position: number): NewSummaryJob {
  const { fromUs, untilUs, subscription, filter, maxAgeUs } = scope;
  const parts = [
    subscription,
    filter,
    fromUs,
    untilUs,
    ...(maxAgeUs === undefined ? [] : [maxAgeUs]),
  ];
  const subject = JSON.stringify(parts);
  const product = { productId: null, productName: null };
  return { kind: 'digest', subject, ...product, subscription, scope, position, dueAtUs: untilUs };
}

const lengthsUs: Readonly<Record<DigestWindow, number>> = {
  hour: dayUs / 24,
  day: dayUs,
  week: 7 * dayUs,
};

/** A Monday: 1 January 1970 was a Thursday. */
const firstWindowUs = -3 * dayUs;

/** Returns the window that contains a time. */
export function windowAt(window: DigestWindow, atUs: number) {
  const lengthUs = lengthsUs[window];
  const fromUs = Math.floor((atUs - firstWindowUs) / lengthUs) * lengthUs + firstWindowUs;
  return { fromUs, untilUs: fromUs + lengthUs };
}

/** Composes what summaries need. */
export function openSummaryContext(
  { inference, budget }: Pick<Config['summary'], 'inference' | 'budget'>,
  { store, products, log }: { store: Store; products: Products; log: Logger },
  { fetch, nowUs, random }: Pick<Io, 'fetch' | 'nowUs' | 'random'>,
): SummaryContext {
  const model = inference && {
    name: inference.model,
    client: createChatClient({ baseUrl: inference.url, apiKey: inference.apiKey, fetch }),
  };
  const { summaries, activity, acquireLock } = store;
  const ports = { notifications: store, products, summaries, activity, model, budget };
  return { ...ports, places: sharedPlaces, acquireLock, nowUs, random, log };
}
