/** The receiver: the public listener, and everything that runs with it. */
import { defineFeature } from '../core/feature.ts';

export const receiver = defineFeature({
  name: 'receiver',
  commands: [
    {
      name: 'start',
      under: 'run',
      overview: 'run the receiver',
      load: async () => (await import('./start-command.ts')).startCommand,
    },
  ],
});
