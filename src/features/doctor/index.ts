/** The feature `doctor`. */
import { defineFeature } from '../../core/feature.ts';

export const doctor = defineFeature({
  name: 'doctor',
  needs: ['subscriptions', 'status'],
  offers: ['command.ts'],
  commands: [
    {
      name: 'doctor',
      under: 'repair',
      overview: 'check settings, network, certificate, account and delivery',
      load: async () => (await import('./command.ts')).doctorCommand,
    },
  ],
});
