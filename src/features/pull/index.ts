/** The feature `pull`. */
import { defineFeature } from '../../core/feature.ts';

export const pull = defineFeature({
  name: 'pull',
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
});
