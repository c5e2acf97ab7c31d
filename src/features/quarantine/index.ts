/** The feature `quarantine`. */
import { defineFeature } from '../../core/feature.ts';

export const quarantine = defineFeature({
  name: 'quarantine',
  needs: ['subscriptions'],
  commands: [
    {
      name: 'quarantine',
      under: 'repair',
      load: async () => (await import('./command.ts')).quarantineCommand,
    },
  ],
  listener: () => import('./listener.ts'),
});
