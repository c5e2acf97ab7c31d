/** The feature `alerts`. */
import { defineFeature } from '../../core/feature.ts';

export const alerts = defineFeature({
  name: 'alerts',
  commands: [
    {
      name: 'alerts',
      under: 'look',
      load: async () => (await import('./command.ts')).alertsCommand,
    },
  ],
});
