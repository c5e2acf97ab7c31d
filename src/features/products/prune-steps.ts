/** Pruning of the product index. */
import { counted } from '../../core/terms/text.ts';
import type { PruneSteps } from '../../store/pruning/terms.ts';
import { pruneIndex } from './index-file/index-maintenance.ts';
import { removeLeftovers } from './index-file/leftovers.ts';

export const pruneSteps: PruneSteps = {
  before: removeLeftovers,
  after: async ({ onProgress, ...place }) => {
    const onPruned = (events: number) =>
      onProgress(`Product index: deleted the entries of ${counted(events, 'notification')}`);
    await pruneIndex({ ...place, onPruned });
  },
};
