/** The products that flags ask to be told of, each as a job. */
import { AppError } from '../../domain/app-error.ts';
import { batches } from '../../domain/batches.ts';
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';
import type { NewSummaryJob } from '../../domain/summaries.ts';
import { compileFilter, type ProductTest } from '../../filter/evaluate.ts';
import { productView } from '../../filter/product-view.ts';
import type { StoreReader } from '../../store/store.ts';
import { waitingMax } from '../../summary/worker/collect-jobs.ts';
import { productsById } from '../../summary/worker/known-products.ts';
import { productJob } from '../../summary/worker/summary-jobs.ts';

/** Where jobs are looked for. */
export interface Sources {
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
    const unseen = firstOfEach(rows, seen);
    for (const row of matches === null ? unseen : await matching(unseen, matches, products)) {
      requireRoom(jobs);
      const { subscription: told, position } = row;
      jobs.push(productJob(row, { subscription: told, position }, nowUs));
      if (jobs.length >= limit) return jobs;
    }
  }
  return jobs;
}

/** Those of products that were not seen before, the first of each; they are now. */
function firstOfEach(rows: readonly NotificationRow[], seen: Set<string>): NotificationRow[] {
  const first: NotificationRow[] = [];
  for (const row of rows) {
    const key = row.productId.toLowerCase();
    if (seen.has(key)) continue;
    seen.add(key);
    first.push(row);
  }
  return first;
}

/** Those whose products the index has, and whose newest record matches; in their order. Ids are known in any case. */
async function matching(
  rows: readonly NotificationRow[],
  matches: ProductTest,
  products: Products,
): Promise<NotificationRow[]> {
  const ids = rows.map(({ productId }) => productId);
  const found = await productsById(products, ids);
  const told = new Set(
    found
      .filter(({ record }) => matches(productView(record)))
      .map(({ row }) => row.productId.toLowerCase()),
  );
  return rows.filter(({ productId }) => told.has(productId.toLowerCase()));
}

/** What matches, whenever it was received. */
export async function productsThatMatch(
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
