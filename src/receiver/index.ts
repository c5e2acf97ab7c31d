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
  jobs: [
    {
      name: 'uptime marks',
      runsOn: 'each',
      start: async ({ receiver: { store }, log, io: { nowUs } }) => {
        const { startUptimeMarks } = await import('./marks.ts');
        return startUptimeMarks({ completeness: store.completeness, nowUs, log });
      },
    },
    {
      name: 'compacting',
      runsOn: 'each',
      start: async ({ receiver: { store }, settings, log, io }) => {
        const { startCompacting } = await import('./compact-job.ts');
        return startCompacting({ store, log }, settings, io);
      },
    },
  ],
});
