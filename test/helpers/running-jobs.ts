/** Background jobs as a receiver gets them, from what its status shows. */
import type { StartConfig } from '../../src/core/config/config.ts';
import type { BackgroundJobs } from '../../src/features/status/read-status.ts';
import type { JobContext, RunningJob } from '../../src/receiver/job-slot.ts';

export function runningJobs(
  shown: BackgroundJobs,
): Pick<JobContext, 'version' | 'settings' | 'jobs'> {
  const { version, deliveryState, summaryMode, backupEveryHours, comparisonOff } = shown;
  const settings = {
    backup: {
      folder: backupEveryHours === null ? null : '/backups',
      everyHours: backupEveryHours ?? 24,
    },
    ...{ reconcile: comparisonOff === null, index: true, alertCommand: null },
    alertUrl: shown.hasAlertChannel ? 'https://chat.test' : null,
  } as StartConfig;
  const job = (state: unknown): RunningJob => ({ state, stop: async () => undefined });
  const jobs = new Map([
    ['sinks', job(deliveryState)],
    ['summary mode', job(summaryMode)],
  ]);
  return { version, settings, jobs };
}
