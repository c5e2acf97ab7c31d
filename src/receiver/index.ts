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
  service: async ({ log }) => {
    const { observe, stop } = (await import('./own-jobs.ts')).startOutcomeSummary(log);
    return { observe, close: stop };
  },
  status: () => import('./status.ts'),
  jobs: [
    {
      name: 'compacting',
      runsOn: 'each',
      start: async ({ receiver: { store }, settings, log, io }) => {
        const { startCompacting } = await import('./own-jobs.ts');
        return startCompacting({ store, log }, settings, io);
      },
    },
  ],
});
