/** Reads new notifications of the log, and creates summary jobs by the rules. */
import { setImmediate } from 'node:timers/promises';
import type { NotificationRow } from '../../domain/ports.ts';
import type { FoundProduct } from '../../domain/products.ts';
import {
  type DigestWindow,
  type NewSummaryJob,
  noCollection,
  type SummaryRule,
  summaryReader,
} from '../../domain/summaries.ts';
import { requireFilter } from '../../filter/check.ts';
import { compileFilter, type ProductTest } from '../../filter/evaluate.ts';
import { collectionOf } from '../../filter/product-record.ts';
import { type ProductView, productView } from '../../filter/product-view.ts';
import { windowAt } from '../digest/digest-facts.ts';
import { productsById } from './prepare.ts';
import { digestJob, productJob, type SummaryContext } from './summary-context.ts';

/** Maximum number of rows in one round, a transaction of a few milliseconds that blocks the intake. */
const rowsMax = 50;

/** Maximum number of waiting product jobs; the oldest are dropped (decision 22). */
export const waitingMax = 10_000;

/** Maximum age of a notification for an automatic summary. */
export const summaryWithinUs = 7 * 86_400_000_000;

const lockWaitMs = 10_000;
const logDroppedEveryUs = 600_000_000;

/**
 * Runs one round. Without a cursor it begins at the end of the log: older notifications are summarised by command.
 * Resolves with true if more notifications may wait. Jobs and cursor are saved in one transaction, so that an
 * interruption neither skips nor repeats a job; a lock admits one process. `noteDropped` gets the number of
 * dropped jobs.
 */
export async function collectJobs(
  context: SummaryContext,
  ruleOf: RuleOf,
  noteDropped = createDropNotice(context),
): Promise<boolean> {
  if ((await nextStep(context)) === null) return false;
  const release = await context.acquireLock('summaries', { waitMs: lockWaitMs });
  try {
    // Another process may have done this round meanwhile.
    const step = await nextStep(context);
    if (step === null) return false;
    const { afterPosition, position } = step;
    const collected =
      afterPosition === null
        ? { jobs: [], position, isFull: false }
        : await collectUntil(afterPosition, position, context, ruleOf);
    const cursor = { reader: summaryReader, position: collected.position };
    const { jobs } = collected;
    const { summaries, nowUs } = context;
    const { dropped } = await summaries.enqueue({ jobs, cursor, waitingMax, atUs: nowUs() });
    noteDropped(dropped);
    return collected.isFull;
  } finally {
    release();
  }
}

/** Returns a function that logs dropped jobs, at most every 10 minutes. */
export function createDropNotice({
  log,
  nowUs,
}: Pick<SummaryContext, 'log' | 'nowUs'>): (dropped: number) => void {
  let unlogged = 0;
  let nextUs = 0;
  return (dropped) => {
    unlogged += dropped;
    if (unlogged === 0 || nowUs() < nextUs) return;
    log.warn({ dropped: unlogged, waitingMax }, 'dropped oldest summary jobs: queue full');
    unlogged = 0;
    nextUs = nowUs() + logDroppedEveryUs;
  };
}

/** Null when there is nothing to do; `afterPosition` is null if notifications up to `position` get no summary. */
async function nextStep({ notifications, products }: SummaryContext) {
  const seen = await notifications.cursor(summaryReader);
  const lastPosition = await notifications.lastPosition();
  if (seen === lastPosition) return null;
  // A cursor beyond the end belongs to another log.
  if (seen === null || seen > lastPosition) return { afterPosition: null, position: lastPosition };
  // Rules need the products of the index.
  const position = Math.min(lastPosition, await products.indexedPosition());
  return position <= seen ? null : { afterPosition: seen, position };
}

/** Returns the jobs, the position read up to, and whether the round reached its maximum. */
async function collectUntil(
  afterPosition: number,
  position: number,
  context: SummaryContext,
  ruleOf: RuleOf,
) {
  const bounds = { afterPosition, beforePosition: position + 1, limit: rowsMax };
  const rows: NotificationRow[] = [];
  for await (const row of context.notifications.find({ ...bounds, order: 'oldest' }))
    rows.push(row);
  const nowUs = context.nowUs();
  const ruled = rows
    .filter(({ receivedAtUs }) => receivedAtUs >= nowUs - summaryWithinUs)
    .map((row) => ({ row, rule: ruleOf(row.subscription) }));
  const ids = ruled.flatMap(({ row, rule }) => (hasFilter(rule) ? [row.productId] : []));
  const products = await productsById(context.products, [...new Set(ids)]);
  const records = new Map(
    products.map(({ row, record }) => [row.productId.toLowerCase(), record] as const),
  );
  const jobs = new Map<string, NewSummaryJob>();
  for (const { row, rule } of ruled) {
    for (const job of jobsFor(row, rule, { records, nowUs })) {
      jobs.set(`${job.kind} ${job.subject}`, job);
    }
    // A filter on a large footprint takes time: lets the intake run.
    if (hasFilter(rule)) await setImmediate();
  }
  const isFull = rows.length === rowsMax;
  const last = rows.at(-1)?.position ?? position;
  return { jobs: [...jobs.values()], position: isFull ? last : position, isFull };
}

function hasFilter(rule: CompiledRule): boolean {
  if (rule.kind === 'each') return rule.matches !== null;
  return rule.kind === 'digest' && rule.areas.some(({ matches }) => matches !== null);
}

/** Newest records by product id in lower case, of indexed products. */
type Records = ReadonlyMap<string, FoundProduct['record']>;

function jobsFor(
  row: NotificationRow,
  rule: CompiledRule,
  { records, nowUs }: { records: Records; nowUs: number },
): NewSummaryJob[] {
  if (rule.kind === 'off') return [];
  const { subscription, position } = row;
  if (rule.kind === 'each') {
    const isMatch = rule.matches === null || rule.matches(viewOf(row, records));
    return isMatch ? [productJob(row, { subscription, position }, nowUs)] : [];
  }
  const scope = {
    ...windowAt(rule.window, row.receivedAtUs),
    subscription: subscription ?? '',
    collection: null,
    filter: null,
    area: null,
  };
  if (rule.per === 'collection') {
    const collection = collectionOf({ Name: row.productName }) ?? noCollection;
    return [digestJob({ ...scope, collection })];
  }
  if (rule.areas.length === 0) return [digestJob(scope)];
  const view = viewOf(row, records);
  return rule.areas
    .filter(({ matches }) => matches === null || matches(view))
    .map(({ name: area, filter }) => digestJob({ ...scope, area, filter }));
}

/** Uses the newest record; only id and name for a product missing in the index. */
function viewOf({ productId, productName }: NotificationRow, records: Records): ProductView {
  return productView(records.get(productId.toLowerCase()) ?? { Id: productId, Name: productName });
}

type CompiledRule =
  | { kind: 'off' }
  /** Null: every product matches. */
  | { kind: 'each'; matches: ProductTest | null }
  | {
      kind: 'digest';
      window: DigestWindow;
      per: 'all' | 'collection';
      areas: readonly { name: string; filter: string; matches: ProductTest | null }[];
    };

/** Returns the rule of a subscription, by the name in its path. */
export type RuleOf = (subscription: string | null) => CompiledRule;

/** Throws `invalid` for an invalid filter. */
export function compileRules(
  bySubscription: ReadonlyMap<string, SummaryRule>,
  fallback: SummaryRule,
): RuleOf {
  const compiled = new Map([...bySubscription].map(([name, rule]) => [name, compile(rule)]));
  const compiledFallback = compile(fallback);
  return (subscription) => compiled.get(subscription ?? '') ?? compiledFallback;
}

function compile(rule: SummaryRule): CompiledRule {
  switch (rule.kind) {
    case 'off':
      return rule;
    case 'each':
      return { kind: 'each', matches: testOf(rule.filter) };
    case 'digest': {
      const areas = rule.areas.map((area) => ({ ...area, matches: testOf(area.filter) }));
      return { ...rule, areas };
    }
  }
}

function testOf(filter: string): ProductTest | null {
  const tree = requireFilter(filter, 'Products');
  return tree === null ? null : compileFilter(tree);
}
