/** The feature `pull`. */
import { defineFeature } from '../../core/feature.ts';
import { moduleFile } from '../../core/host/rpc.ts';
import { defineTables } from '../../store/tables.ts';

export const pull = defineFeature({
  name: 'pull',
  needs: ['coverage'],
  tables: [
    defineTables({
      group: 'queues',
      operations: moduleFile('./sql', import.meta.url),
      reader: () => ({}),
      store: () => ({}),
    }),
  ],
  jobs: [
    {
      name: 'pull intake',
      runsOn: 'leader',
      start: async ({ receiver, settings, log, io }) => {
        const { startPullIntake, warnOfUnreadQueues } = await import('./job.ts');
        const { account } = settings;
        if (account !== null)
          return startPullIntake({ ...receiver, log }, { ...settings, account }, io);
        await warnOfUnreadQueues(receiver.store, log);
        return null;
      },
    },
  ],
  afterComparison: async () => (await import('./records.ts')).fetchPulledRecords,
});
