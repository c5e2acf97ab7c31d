/** The products that flags ask to be told of, each as a job. */
import { AppError } from '../../domain/app-error.ts';
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { Products } from '../../domain/products.ts';
import type { NewSummaryJob } from '../../domain/summaries.ts';
import { compileFilter } from '../../filter/evaluate.ts';
import { productView } from '../../filter/product-view.ts';
import type { StoreReader } from '../../store/store.ts';
import { waitingMax } from '../../summary/worker/collect-jobs.ts';
import { productById } from '../../summary/worker/known-products.ts';
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
  for await (const row of store.find(query)) {
    if (jobs.length >= limit) break;
    requireRoom(jobs, signal);
    const { productId, position } = row;
    if (seen.has(productId)) continue;
    seen.add(productId);
    if (matches !== null) {
      const found = await productById(products, productId);
      if (found === null || !matches(productView(found.record))) continue;
    }
    jobs.push(productJob(row, { subscription: row.subscription, position }, nowUs));
  }
  return jobs;
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
    requireRoom(jobs, signal);
    jobs.push(productJob(row, { subscription: null, position }, nowUs));
  }
  return jobs;
}

/** Of more than may wait, the first ones would be dropped. */
function requireRoom({ length }: readonly NewSummaryJob[], signal: AbortSignal): void {
  if (signal.aborted) throw new AppError('cancelled', 'Stopped before anything was asked.');
  if (length < waitingMax) return;
  throw new AppError(
    'usage',
    `These are more than ${waitingMax} products, which is more than may wait. Ask for fewer with --limit, --filter or a later --since, or for a --digest.`,
  );
}
