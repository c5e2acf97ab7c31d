/** The feature `demo`. */
import { defineFeature } from '../../core/feature.ts';

export const demo = defineFeature({
  name: 'demo',
  needs: ['coverage', 'subscriptions', 'products', 'notifications', 'setup'],
  commands: [
    {
      name: 'demo',
      under: 'try',
      overview: 'run a simulated catalogue and a receiver; no account is needed',
      load: async () => (await import('./command.ts')).demoCommand,
    },
    {
      name: 'sandbox',
      under: 'try',
      load: async () => (await import('./sandbox-command.ts')).sandboxCommand,
    },
  ],
});
