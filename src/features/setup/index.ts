/** The feature `setup`. */
import { defineFeature } from '../../core/feature.ts';

export const setup = defineFeature({
  name: 'setup',
  needs: ['subscriptions', 'products', 'doctor', 'status'],
  offers: ['env-file.ts'],
  commands: [
    {
      name: 'setup',
      under: 'run',
      overview: 'ask for the settings, start the receiver, register a subscription',
      load: async () => (await import('./command.ts')).setupCommand,
    },
  ],
});
