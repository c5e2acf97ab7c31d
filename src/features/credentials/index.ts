/** The feature `credentials`. */
import { defineFeature } from '../../core/feature.ts';

export const credentials = defineFeature({
  name: 'credentials',
  needs: ['subscriptions'],
  commands: [
    {
      name: 'credentials',
      under: 'subscribe',
      load: async () => (await import('./command.ts')).credentialsCommand,
    },
  ],
});
