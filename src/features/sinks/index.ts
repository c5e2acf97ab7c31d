/** The feature `sinks`. */
import { defineFeature } from '../../core/feature.ts';

export const sinks = defineFeature({
  name: 'sinks',
  commands: [
    {
      name: 'sinks',
      under: 'repair',
      load: async () => (await import('./command.ts')).sinksCommand,
    },
  ],
  listener: () => import('./listener.ts'),
});
