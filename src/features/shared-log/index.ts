/** The feature `shared-log`. */
import { defineFeature } from '../../core/feature.ts';

export const sharedLog = defineFeature({
  name: 'shared-log',
  commands: [
    {
      name: 'log',
      under: { command: 'admin' },
      load: async () => (await import('./command.ts')).logCommand,
    },
  ],
});
