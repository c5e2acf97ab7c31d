/** The feature `notifications`. */
import { defineFeature } from '../../core/feature.ts';

export const notifications = defineFeature({
  name: 'notifications',
  needs: ['products', 'messages'],
  offers: ['output.ts'],
  commands: [
    {
      name: 'query',
      under: 'look',
      overview: 'search the received notifications and products',
      load: async () => (await import('./command.ts')).queryCommand,
    },
    {
      name: 'tail',
      under: 'look',
      load: async () => (await import('./tail-command.ts')).tailCommand,
    },
  ],
  listener: () => import('./listener.ts'),
});
