/** The feature `backup`. */
import { defineFeature } from '../../core/feature.ts';

export const backup = defineFeature({
  name: 'backup',
  commands: [
    {
      name: 'backup',
      under: 'data',
      load: async () => (await import('./command.ts')).backupCommand,
    },
    {
      name: 'restore',
      under: 'data',
      load: async () => (await import('./restore-command.ts')).restoreCommand,
    },
  ],
});
