/** The feature `pruning`. */
import { defineFeature } from '../../core/feature.ts';

export const pruning = defineFeature({
  name: 'pruning',
  commands: [
    {
      name: 'prune',
      under: 'data',
      load: async () => (await import('./command.ts')).pruneCommand,
    },
  ],
  settings: () => import('./settings.ts'),
  jobs: [
    {
      name: 'pruning',
      runsOn: 'each',
      start: async ({ receiver: { store }, settings: { keep }, log, io }) => {
        if (keep === null) return null;
        const { startPruning } = await import('./job.ts');
        return startPruning({ store, log }, { keep }, io);
      },
    },
  ],
});
