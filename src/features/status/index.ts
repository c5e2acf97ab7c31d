/** The feature `status`. */
import { defineFeature } from '../../core/feature.ts';
export const status = defineFeature({
  name: 'status',
  needs: ['subscriptions', 'coverage', 'products'],
  commands: [
    {
      name: 'status',
      under: 'look',
      overview: 'show the state of all parts on one screen',
      load: async () => (await import('./command.ts')).statusCommand,
    },
    {
      name: 'health',
      under: { command: 'admin' },
      load: async () => (await import('./command.ts')).healthCommand,
    },
  ],
  listener: () => import('./listener.ts'),
});
