/** The feature `coverage`. */
import { defineFeature } from '../../core/feature.ts';

export const coverage = defineFeature({
  name: 'coverage',
  commands: [
    {
      name: 'coverage',
      under: 'look',
      load: async () => (await import('./command.ts')).coverageCommand,
    },
    {
      name: 'reconcile',
      under: 'repair',
      load: async () => (await import('./reconcile-command.ts')).reconcileCommand,
    },
  ],
});
