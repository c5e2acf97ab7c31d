/** The feature `shared-log`. */
import { defineFeature } from '../../core/feature.ts';
import type { Job } from '../../core/host/job.ts';
import type { JobContext } from '../../receiver/slots.ts';
import type { FollowerState } from './follower.ts';
import type { SharedLog } from './postgres-log.ts';

declare module '../../store/store.ts' {
  /** Place of a node in the shared log. */
  interface Shared {
    log: SharedLog;
    id: string;
    state(): FollowerState;
    /** Resolves when this node has applied everything that is in the shared log now. Rejects with `unavailable`. */
    caughtUp(): Promise<void>;
    /** Saves a checkpoint of this node in the shared log; returns the number of its entry. */
    saveCheckpoint(): Promise<number>;
  }
}

export const sharedLog = defineFeature({
  name: 'shared-log',
  status: () => import('./status.ts'),
  doctor: () => import('./doctor.ts'),
  commands: [
    {
      name: 'log',
      under: { command: 'admin' },
      load: async () => (await import('./command.ts')).logCommand,
    },
  ],
  sharedStore: async () => (await import('./open.ts')).sharedStore,
  beforeStart: async (io) => (await import('./open.ts')).copySharedFiles(io),
  settings: () => import('./settings.ts'),
  jobs: [
    { name: 'reports to other receivers', runsOn: 'each', start: startOf('startNodeReports') },
    { name: 'shared files', runsOn: 'each', start: startOf('startFileSync') },
    { name: 'upkeep of the shared log', runsOn: 'leader', start: startOf('startLogUpkeep') },
  ],
});

/** Returns the start of a job that needs a shared log. */
function startOf(name: 'startNodeReports' | 'startFileSync' | 'startLogUpkeep') {
  return async (context: JobContext): Promise<Job | null> => {
    const { shared } = context.receiver.store;
    return shared && (await import('./job.ts'))[name](context, shared);
  };
}
