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
});
