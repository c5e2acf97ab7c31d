/** The reader of the log: looks at what came since its cursor, and makes the jobs that the rules ask for. */
import { setImmediate } from 'node:timers/promises';
import type { NotificationRow } from '../../domain/ports.ts';
import type { FoundProduct } from '../../domain/products.ts';
import {
  type DigestWindow,
  type NewSummaryJob,
  type SummaryRule,
  summaryReader,
} from '../../domain/summaries.ts';
import { requireFilter } from '../../filter/check.ts';
import { compileFilter, type ProductTest } from '../../filter/evaluate.ts';
import { collectionOf } from '../../filter/product-record.ts';
import { type ProductView, productView } from '../../filter/product-view.ts';
import { windowAt } from '../digest/digest-facts.ts';
import { productsById } from './prepare.ts';
import { digestJob, noCollection, productJob, type SummaryContext } from './summary-context.ts';

/** Rows of one round, which is one transaction: a few milliseconds, for intake waits for it. */
const rowsMax = 50;

/** More products than these do not wait for a text: the oldest give way (decision 22). */
export const waitingMax = 10_000;

/** What came longer ago gets no summary automatically. */
export const summaryWithinUs = 7 * 86_400_000_000;

const lockWaitMs = 10_000;
const logDroppedEveryUs = 600_000_000;

/**
 * One round. Begins at the end of the log where there is no cursor yet: what came before the rules is summarised
 * by command. Resolves with whether more may be there. Jobs and cursor move together, so that nothing is left
 * out or made twice, whenever the program ends; one program at a time does it. `noteDropped` gets the number of
 * jobs that gave way.
 */
export async function collectJobs(
  context: SummaryContext,
  ruleOf: RuleOf,
  noteDropped = createDropNotice(context),
): Promise<boolean> {
  if ((await nextStep(context)) === null) return false;
  const release = await context.acquireLock('summaries', { waitMs: lockWaitMs });
  try {
    // Another program may have done it meanwhile.
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

/** Logs how many were dropped, now and then: where too many come, that is every second. */
export function createDropNotice({
  log,
  nowUs,
}: Pick<SummaryContext, 'log' | 'nowUs'>): (dropped: number) => void {
  let unlogged = 0;
  let nextUs = 0;
  return (dropped) => {
    unlogged += dropped;
    if (unlogged === 0 || nowUs() < nextUs) return;
    const message = 'more products wait for a summary than may; the oldest are dropped';
    log.warn({ dropped: unlogged, waitingMax }, message);
    unlogged = 0;
    nextUs = nowUs() + logDroppedEveryUs;
  };
}

/** Null when there is nothing to do; `afterPosition` is where what lies before `position` gets no summary. */
async function nextStep({ notifications, products }: SummaryContext) {
  const seen = await notifications.cursor(summaryReader);
  const lastPosition = await notifications.lastPosition();
  if (seen === lastPosition) return null;
  // Beyond the end: the log is another one.
  if (seen === null || seen > lastPosition) return { afterPosition: null, position: lastPosition };
  // The index has the products, so it goes ahead.
  const position = Math.min(lastPosition, await products.indexedPosition());
  return position <= seen ? null : { afterPosition: seen, position };
}

/** The jobs, up to where the log was read, and whether that was as far as one round goes. */
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
    // A filter may look at a large footprint: intake comes between.
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

/** Newest records by product id in small letters, of the products that the index knows. */
type Records = ReadonlyMap<string, FoundProduct['record']>;

function jobsFor(
  row: NotificationRow,
  rule: CompiledRule,
  { records, nowUs }: { records: Records; nowUs: number },
): NewSummaryJob[] {
  if (rule.kind === 'off') return [];
  const { subscription, position } = row;
  if (rule.kind === 'each') {
    const isTold = rule.matches === null || rule.matches(viewOf(row, records));
    return isTold ? [productJob(row, { subscription, position }, nowUs)] : [];
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

/** By its newest record; by its name alone where the index could not read it. */
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

/** The rule of a subscription, by the name in its path. */
export type RuleOf = (subscription: string | null) => CompiledRule;

/** Throws `invalid` for a filter that is none. */
export function compileRules(
  bySubscription: ReadonlyMap<string, SummaryRule>,
  otherwise: SummaryRule,
): RuleOf {
  const compiled = new Map([...bySubscription].map(([name, rule]) => [name, compile(rule)]));
  const usual = compile(otherwise);
  return (subscription) => compiled.get(subscription ?? '') ?? usual;
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
