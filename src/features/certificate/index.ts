/** The feature `certificate`. */
import { defineFeature } from '../../core/feature.ts';

export const certificate = defineFeature({
  name: 'certificate',
  commands: [
    {
      name: 'certificate',
      under: 'subscribe',
      load: async () => (await import('./command.ts')).certificateCommand,
    },
  ],
  settings: () => import('./settings.ts'),
});
