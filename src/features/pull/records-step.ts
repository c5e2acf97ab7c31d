/** Fetches records of pulled notifications after each round of comparisons. */
import type { HistoryEntry } from '../../admin/account.ts';
import { recordReader } from '../../admin/pull-queue.ts';
import { pause } from '../../core/cli/io.ts';
import { errorFields } from '../../core/host/job.ts';
import { isAppError } from '../../core/terms/app-error.ts';
import type { ComparisonStep } from '../coverage/job.ts';
import { fetchRecords, type MissingRecord } from './records.ts';

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
