/** Finds the summary jobs of rules and flags. With --dry-run, nothing is stored. */

import { AppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/dates.ts';
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';
import { batches } from '../../domain/streams.ts';
import {
  type DigestWindow,
  type NewSummaryJob,
  type SummaryJob,
  summaryReader,
} from '../../domain/summaries.ts';
import { compileFilter, type ProductTest } from '../../filter/evaluate.ts';
import { productView } from '../../filter/product-view.ts';
import type { StoreReader } from '../../store/store.ts';
import { type WindowSpan, windowAt, windowsIn } from '../../summary/digest/digest-facts.ts';
import { collectJobs, type RuleOf, waitingMax } from '../../summary/worker/collect-jobs.ts';
import { productsById } from '../../summary/worker/prepare.ts';
import {
  digestJob,
  productJob,
  type SummaryContext,
} from '../../summary/worker/summary-context.ts';
import { readFilter } from '../filter-text.ts';
import type { Io } from '../io.ts';

/** Creates the jobs of the rules up to the end of the log, as a receiver does. */
export async function collectAll(
  context: SummaryContext,
  ruleOf: RuleOf,
  signal: AbortSignal,
): Promise<void> {
  let more = true;
  while (more && !signal.aborted) more = await collectJobs(context, ruleOf);
}

/** Returns the jobs that would be due after `collectAll`; stores neither jobs nor the cursor. */
export async function dueAfterCollecting(
  context: SummaryContext,
  ruleOf: RuleOf,
  signal: AbortSignal,
): Promise<(NewSummaryJob | SummaryJob)[]> {
  const { notifications, summaries } = context;
  const nowUs = context.nowUs();
  const jobs = new Map<string, NewSummaryJob>();
  const addAll = (added: readonly NewSummaryJob[]) => {
    for (const job of added) jobs.set(`${job.kind} ${job.subject}`, job);
  };
  addAll(await summaries.due({ nowUs, limit: waitingMax }));
  let position = await notifications.cursor(summaryReader);
  const dryRun: SummaryContext = {
    ...context,
    notifications: {
      find: (query) => notifications.find(query),
      lastPosition: () => notifications.lastPosition(),
      cursor: async () => position,
    },
    summaries: {
      ...summaries,
      enqueue: async ({ jobs: added, cursor }) => {
        addAll(added);
        position = cursor?.position ?? position;
        return { ids: [], dropped: 0 };
      },
    },
    acquireLock: async () => () => undefined,
  };
  await collectAll(dryRun, ruleOf, signal);
  return [...jobs.values()].filter(({ dueAtUs }) => dueAtUs <= nowUs);
}

export interface JobFlags {
  each?: true;
  digest?: DigestWindow;
  since?: number;
  until?: number;
  filter?: string;
  subscription?: string;
  limit?: number;
}

const dayUs = 86_400_000_000;

/**
 * Checks the flags before anything is opened: throws `usage` for an invalid filter or time, prints warnings. The
 * returned function finds the jobs, newest first. It rejects with `usage` if they exceed the queue limit, with
 * `cancelled` if the user stops it.
 */
export function requestedJobs(
  flags: JobFlags,
  io: Pick<Io, 'stderr' | 'env' | 'nowUs'>,
): (sources: Sources) => Promise<NewSummaryJob[]> {
  const { filter, since, until, subscription, digest } = flags;
  const tree = filter === undefined ? null : readFilter(filter, 'Products', io);
  const byReceipt = [since, until, subscription].some((flag) => flag !== undefined);
  if (digest === undefined && tree !== null && !byReceipt) {
    return (sources) => productsThatMatch(tree, flags, sources);
  }
  const nowUs = io.nowUs();
  const untilUs = Math.min(until ?? nowUs, nowUs);
  if (since !== undefined && since >= untilUs) {
    throw new AppError('usage', '--since must be earlier than --until and earlier than now.');
  }
  if (digest !== undefined) {
    const windows = digestWindows(digest, { sinceUs: since, untilUs }, nowUs);
    return (sources) => digestsOf(windows, tree, flags, sources);
  }
  const span = { sinceUs: since ?? untilUs - dayUs, untilUs: until };
  return (sources) => productsReceived(span, tree, flags, sources);
}

/** Maximum number of windows; more are probably a mistake. */
const windowsMax = 1_000;

const minuteUs = 60_000_000;

type DigestWindows = ReturnType<typeof digestWindows>;

/**
 * Returns the windows that overlap a span, earliest first: the `complete` ones, and the `current` one. Without
 * `sinceUs`, the last one that ended before `untilUs`. Throws `usage` for too many.
 */
function digestWindows(
  window: DigestWindow,
  { sinceUs, untilUs }: { sinceUs: number | undefined; untilUs: number },
  nowUs: number,
) {
  const last = windowAt(window, untilUs - 1);
  const firstUs = sinceUs ?? (last.untilUs <= untilUs ? last.fromUs : last.fromUs - 1);
  const all = windowsIn(window, windowAt(window, firstUs).fromUs, last.untilUs);
  if (all.length > windowsMax) {
    throw new AppError(
      'usage',
      `The time range needs ${all.length} digests, and each digest needs a request.`,
      {
        advice: `The maximum is ${windowsMax} digests: use a later --since, or a longer time span in --digest.`,
      },
    );
  }
  const current = all.find((one) => one.untilUs > nowUs) ?? null;
  const complete = all.filter((one) => one.untilUs <= nowUs);
  return { window, complete, current };
}

/** Returns the digest jobs, newest first. Includes the current window, up to now, if the complete ones are empty. */
async function digestsOf(
  { window, complete, current }: DigestWindows,
  tree: FilterTree | null,
  flags: { subscription?: string; filter?: string; since?: number; limit?: number },
  sources: Sources,
): Promise<NewSummaryJob[]> {
  const { subscription = null, filter = '', limit = windowsMax, since } = flags;
  const { nowUs, print } = sources;
  const spans = [...complete];
  if (current !== null) {
    const untilUs = Math.floor(nowUs / minuteUs) * minuteUs;
    const start = `${shortDateUs(current.fromUs)} UTC`;
    if (await hasProducts(complete, tree, flags, sources)) {
      if (since !== undefined)
        print(`The ${window} from ${start} is not complete yet and was skipped.`);
    } else if (untilUs > current.fromUs) {
      spans.push({ ...current, untilUs });
      print(`No complete ${window} has products. The digest covers ${start} until now.`);
    }
  }
  const scope = { subscription, collection: null, area: null, filter: filter || null };
  return spans
    .toReversed()
    .slice(0, limit)
    .map((span) => ({ ...digestJob({ ...span, ...scope }), dueAtUs: nowUs }));
}

async function hasProducts(
  windows: readonly WindowSpan[],
  tree: FilterTree | null,
  { subscription }: { subscription?: string },
  sources: Sources,
): Promise<boolean> {
  const [first, last] = [windows[0], windows.at(-1)];
  if (first === undefined || last === undefined) return false;
  const span = { sinceUs: first.fromUs, untilUs: last.untilUs };
  return (await productsReceived(span, tree, { subscription, limit: 1 }, sources)).length > 0;
}

/** Sources in which jobs are found. */
interface Sources {
  store: Pick<StoreReader, 'find'>;
  products: Products;
  nowUs: number;
  signal: AbortSignal;
  /** Prints a message for the user. */
  print: (message: string) => void;
}

/** Number of notifications whose products are looked up together: a record has some 5 kB. */
const batchSize = 64;

/** Returns jobs for the products received in a span, newest first, each product once in its newest state. */
export async function productsReceived(
  { sinceUs, untilUs }: { sinceUs: number; untilUs?: number | undefined },
  tree: FilterTree | null,
  { subscription, limit = Infinity }: { subscription?: string | undefined; limit?: number },
  { store, products, nowUs, signal }: Sources,
): Promise<NewSummaryJob[]> {
  const matches = tree === null ? null : compileFilter(tree);
  const jobs: NewSummaryJob[] = [];
  const seen = new Set<string>();
  // Later notifications are not in the index yet.
  const beforePosition = (await products.indexedPosition()) + 1;
  const span = { sinceUs, untilUs, time: 'received' } as const;
  const query = { ...span, subscription, beforePosition, order: 'newest' } as const;
  for await (const rows of batches(store.find(query), batchSize)) {
    requireNotStopped(signal);
    const unseen = rows.filter(({ productId }) => {
      const key = productId.toLowerCase();
      return !seen.has(key) && seen.add(key);
    });
    for (const row of matches === null ? unseen : await matching(unseen, matches, products)) {
      requireBelowLimit(jobs);
      const { subscription: name, position } = row;
      jobs.push(productJob(row, { subscription: name, position }, nowUs));
      if (jobs.length >= limit) return jobs;
    }
  }
  return jobs;
}

/** Returns the rows whose product is in the index with a matching newest record, in their order. */
async function matching(
  rows: readonly NotificationRow[],
  matches: ProductTest,
  products: Products,
): Promise<NotificationRow[]> {
  const ids = rows.map(({ productId }) => productId);
  const found = await productsById(products, ids);
  const matched = found.filter(({ record }) => matches(productView(record)));
  const matchedIds = new Set(matched.map(({ row }) => row.productId.toLowerCase()));
  return rows.filter(({ productId }) => matchedIds.has(productId.toLowerCase()));
}

/** Returns jobs for all products that match, regardless of their time of receipt. */
async function productsThatMatch(
  filter: FilterTree,
  { limit }: { limit?: number },
  { products, nowUs, signal }: Sources,
): Promise<NewSummaryJob[]> {
  const jobs: NewSummaryJob[] = [];
  const query = { entity: 'Products', filter, limit, records: false } as const;
  const position = await products.indexedPosition();
  for await (const { row } of products.find(query, signal)) {
    requireNotStopped(signal);
    requireBelowLimit(jobs);
    jobs.push(productJob(row, { subscription: null, position }, nowUs));
  }
  return jobs;
}

function requireNotStopped({ aborted }: AbortSignal): void {
  if (aborted) throw new AppError('cancelled', 'Stopped. No request was sent.');
}

/** Refuses more jobs than the queue limit, above which the first ones would be dropped. */
function requireBelowLimit({ length }: readonly NewSummaryJob[]): void {
  if (length < waitingMax) return;
  throw new AppError(
    'usage',
    `Too many products: the maximum number of waiting summaries is ${waitingMax}.`,
    { advice: 'Select fewer products with --limit, --filter or a later --since, or use --digest.' },
  );
}
