/** What the rules ask for: noted as jobs, or, for a look without consequences, only found. */

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

/** Reads the log to its end, as a receiver would. */
export async function collectAll(
  context: SummaryContext,
  ruleOf: RuleOf,
  signal: AbortSignal,
): Promise<void> {
  let more = true;
  while (more && !signal.aborted) more = await collectJobs(context, ruleOf);
}

/** The jobs that would be due after `collectAll`; neither they nor the cursor are kept. */
export async function dueAfterCollecting(
  context: SummaryContext,
  ruleOf: RuleOf,
  signal: AbortSignal,
): Promise<(NewSummaryJob | SummaryJob)[]> {
  const { notifications, summaries } = context;
  const nowUs = context.nowUs();
  const jobs = new Map<string, NewSummaryJob>();
  const note = (more: readonly NewSummaryJob[]) => {
    for (const job of more) jobs.set(`${job.kind} ${job.subject}`, job);
  };
  note(await summaries.due({ nowUs, limit: waitingMax }));
  let position = await notifications.cursor(summaryReader);
  const forgetful: SummaryContext = {
    ...context,
    notifications: {
      find: (query) => notifications.find(query),
      lastPosition: () => notifications.lastPosition(),
      cursor: async () => position,
    },
    summaries: {
      ...summaries,
      enqueue: async ({ jobs: more, cursor }) => {
        note(more);
        position = cursor?.position ?? position;
        return { ids: [], dropped: 0 };
      },
    },
    acquireLock: async () => () => undefined,
  };
  await collectAll(forgetful, ruleOf, signal);
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
 * Reads the flags, so that what is wrong with them is told before anything is opened: throws `usage` for a
 * filter or a time that is none; warns on stderr. What it returns finds the jobs, the newest first: it rejects with
 * `usage` when there are more than may wait, with `cancelled` when the user ends it.
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
    throw new AppError('usage', 'The time of --since must lie before --until, and before now.');
  }
  if (digest !== undefined) {
    const windows = wantedWindows(digest, { sinceUs: since, untilUs }, nowUs);
    return (sources) => digestsOf(windows, tree, flags, sources);
  }
  const span = { sinceUs: since ?? untilUs - dayUs, untilUs: until };
  return (sources) => productsReceived(span, tree, flags, sources);
}

/** More windows than these are a slip of the hand. */
const windowsMax = 1_000;

const minuteUs = 60_000_000;

type WantedWindows = ReturnType<typeof wantedWindows>;

/**
 * The windows that a span touches, the earliest first: those that are `complete`, and the one that still lasts.
 * Without `sinceUs`, the last one that was over before `untilUs`. Throws `usage` for too many.
 */
function wantedWindows(
  window: DigestWindow,
  { sinceUs, untilUs }: { sinceUs: number | undefined; untilUs: number },
  nowUs: number,
) {
  const last = windowAt(window, untilUs - 1);
  const firstUs = sinceUs ?? (last.untilUs <= untilUs ? last.fromUs : last.fromUs - 1);
  const all = windowsIn(window, windowAt(window, firstUs).fromUs, last.untilUs);
  if (all.length > windowsMax) {
    throw new AppError('usage', `These are ${all.length} windows, each of which is a request.`, {
      advice: `Ask for ${windowsMax} at most: a later --since, or longer windows.`,
    });
  }
  const current = all.find((one) => one.untilUs > nowUs) ?? null;
  const complete = all.filter((one) => one.untilUs <= nowUs);
  return { window, complete, current };
}

/** The newest first. What still lasts is told of up to now only where nothing came before it. */
async function digestsOf(
  { window, complete, current }: WantedWindows,
  tree: FilterTree | null,
  flags: { subscription?: string; filter?: string; since?: number; limit?: number },
  sources: Sources,
): Promise<NewSummaryJob[]> {
  const { subscription = null, filter = '', limit = windowsMax, since } = flags;
  const { nowUs, tell } = sources;
  const spans = [...complete];
  if (current !== null) {
    const untilUs = Math.floor(nowUs / minuteUs) * minuteUs;
    const lasts = `The ${window} from ${shortDateUs(current.fromUs)} UTC on still lasts`;
    if (await holdsAny(complete, tree, flags, sources)) {
      if (since !== undefined) tell(`${lasts}, and is left out.`);
    } else if (untilUs > current.fromUs) {
      spans.push({ ...current, untilUs });
      tell(`Nothing came in a ${window} that is over. ${lasts}, and is told of up to now.`);
    }
  }
  const scope = { subscription, collection: null, area: null, filter: filter || null };
  return spans
    .toReversed()
    .slice(0, limit)
    .map((span) => ({ ...digestJob({ ...span, ...scope }), dueAtUs: nowUs }));
}

async function holdsAny(
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

/** Where jobs are looked for. */
interface Sources {
  store: Pick<StoreReader, 'find'>;
  products: Products;
  nowUs: number;
  signal: AbortSignal;
  /** Says a sentence to the user. */
  tell: (sentence: string) => void;
}

/** Notifications whose products are looked up together: records are some 5 kB each. */
const lookedUpMax = 64;

/** What was received in a span, in its newest state, the newest first; each product once. */
export async function productsReceived(
  { sinceUs, untilUs }: { sinceUs: number; untilUs?: number | undefined },
  tree: FilterTree | null,
  { subscription, limit = Infinity }: { subscription?: string | undefined; limit?: number },
  { store, products, nowUs, signal }: Sources,
): Promise<NewSummaryJob[]> {
  const matches = tree === null ? null : compileFilter(tree);
  const jobs: NewSummaryJob[] = [];
  const seen = new Set<string>();
  // What comes meanwhile is not in the index yet.
  const beforePosition = (await products.indexedPosition()) + 1;
  const span = { sinceUs, untilUs, time: 'received' } as const;
  const query = { ...span, subscription, beforePosition, order: 'newest' } as const;
  for await (const rows of batches(store.find(query), lookedUpMax)) {
    requireGoing(signal);
    const unseen = rows.filter(({ productId }) => {
      const key = productId.toLowerCase();
      return !seen.has(key) && seen.add(key);
    });
    for (const row of matches === null ? unseen : await matching(unseen, matches, products)) {
      requireRoom(jobs);
      const { subscription: told, position } = row;
      jobs.push(productJob(row, { subscription: told, position }, nowUs));
      if (jobs.length >= limit) return jobs;
    }
  }
  return jobs;
}

/** Those whose products the index has, and whose newest record matches; in their order. Ids are known in any case. */
async function matching(
  rows: readonly NotificationRow[],
  matches: ProductTest,
  products: Products,
): Promise<NotificationRow[]> {
  const ids = rows.map(({ productId }) => productId);
  const found = await productsById(products, ids);
  const matched = found.filter(({ record }) => matches(productView(record)));
  const told = new Set(matched.map(({ row }) => row.productId.toLowerCase()));
  return rows.filter(({ productId }) => told.has(productId.toLowerCase()));
}

/** What matches, whenever it was received. */
async function productsThatMatch(
  filter: FilterTree,
  { limit }: { limit?: number },
  { products, nowUs, signal }: Sources,
): Promise<NewSummaryJob[]> {
  const jobs: NewSummaryJob[] = [];
  const query = { entity: 'Products', filter, limit, records: false } as const;
  const position = await products.indexedPosition();
  for await (const { row } of products.find(query, signal)) {
    requireGoing(signal);
    requireRoom(jobs);
    jobs.push(productJob(row, { subscription: null, position }, nowUs));
  }
  return jobs;
}

function requireGoing({ aborted }: AbortSignal): void {
  if (aborted) throw new AppError('cancelled', 'Stopped before anything was asked.');
}

/** Of more than may wait, the first ones would be dropped. */
function requireRoom({ length }: readonly NewSummaryJob[]): void {
  if (length < waitingMax) return;
  throw new AppError(
    'usage',
    `These are more than ${waitingMax} products, which is more than may wait.`,
    { advice: 'Ask for fewer with --limit, --filter or a later --since, or for a --digest.' },
  );
}
