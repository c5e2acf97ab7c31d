/** Prunes a store as a command does, without its pauses. */

import { type Pruned, pruneLog } from '../../../src/features/pruning/job.ts';
import type { PruneRequest, Retention } from '../../../src/store/pruning/terms.ts';
import type { Store } from '../../../src/store/store.ts';

/** A request that keeps only what `keep` allows. */
export function pruneRequest(
  keep: Partial<Retention>,
  fields: Partial<PruneRequest> = {},
): PruneRequest {
  const { ageUs = null, bytes = null } = keep;
  return { keep: { ageUs, bytes }, withQuarantined: false, freeShare: 0, nowUs: 0, ...fields };
}

export function prune({ pruning }: Pick<Store, 'pruning'>, request: PruneRequest): Promise<Pruned> {
  const { signal } = new AbortController();
  return pruneLog(request, { pruning, pause: () => Promise.resolve(), signal });
}

/** Removes everything received before a time. */
export function pruneBefore(store: Pick<Store, 'pruning'>, nowUs: number): Promise<Pruned> {
  return prune(store, pruneRequest({ ageUs: 0 }, { nowUs }));
}
