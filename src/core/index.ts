/** The command line without any feature. */
import { defineFeature } from './feature.ts';

export const core = defineFeature({
  name: 'core',
  commands: [
    {
      name: 'admin',
      under: 'data',
      load: async () => (await import('./cli/admin.ts')).adminCommand,
    },
    {
      name: 'config',
      under: { command: 'admin' },
      load: async () => (await import('./cli/admin.ts')).configCommand,
    },
  ],
});
