/** The feature `subscriptions`. */
import { defineFeature } from '../../core/feature.ts';

export const subscriptions = defineFeature({
  name: 'subscriptions',
  commands: [
    {
      name: 'register',
      under: 'subscribe',
      load: async () => (await import('./register-command.ts')).registerCommand,
    },
    {
      name: 'subscriptions',
      under: 'subscribe',
      load: async () => (await import('./command.ts')).subscriptionsCommand,
    },
    {
      name: 'maintain',
      under: 'subscribe',
      load: async () => (await import('./maintain-command.ts')).maintainCommand,
    },
    {
      name: 'filter',
      under: 'subscribe',
      load: async () => (await import('./filter-command.ts')).filterCommand,
    },
  ],
  listener: () => import('./listener.ts'),
});
