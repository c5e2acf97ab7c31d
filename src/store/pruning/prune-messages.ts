/** What the store's threads are asked about pruning. */
import type { PruneWish, Pruning } from '../../domain/pruning.ts';

/** A question for the query thread. */
export type PruneQuestion =
  | { kind: 'horizon' }
  | { kind: 'holders' }
  | { kind: 'size' }
  | { kind: 'prunable'; wish: PruneWish };

export type PruneStepOptions = Parameters<Pruning['pruneStep']>[0];
