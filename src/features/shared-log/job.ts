/** Jobs of a receiver with a shared log: its reports, its copies of shared files, and the upkeep of the log by the leader. */
import { hostname } from 'node:os';
import { pause } from '../../core/cli/io.ts';
import { type Job, type RoundTimes, startJob } from '../../core/host/job.ts';
import { errorText } from '../../core/terms/app-error.ts';
import type { JobContext } from '../../receiver/slots.ts';
import { diskSpace } from '../../store/engine/disk-limit.ts';
import type { Shared } from '../../store/store.ts';
import { credentialsDigest } from './shared-files.ts';

/** Starts the reports to the other nodes. */
export function startNodeReports(
  { receiver: { store, acceptedCredentials }, settings, version, io, log }: JobContext,
  shared: Shared,
): Job {
  const name = settings.sharedLog?.nodeName ?? hostname();
  const startedAtUs = io.nowUs();
  const run = async () => {
    const refusing = await store.checkWritable().then(() => null, errorText);
    const freeBytes = diskSpace(settings)?.freeBytes ?? null;
    const credentials = credentialsDigest(acceptedCredentials());
    const { applied, fault } = shared.state();
    const facts = { version, startedAtUs, refusing, fault, freeBytes, credentials };
    await shared.log.report({ id: shared.id, name, applied, facts });
  };
  const failed = 'failed to report to the other receivers';
  return startJob({ every: { firstMs: 0, intervalMs: 5_000 }, run, failed }, { ...io, pause, log });
}

/** Copies changed files while the receiver runs. */
export function startFileSync({ io, log }: JobContext, { syncFiles: run }: Shared): Job {
  const failed = 'failed to copy files of the shared log; retrying';
  return startJob({ every: { firstMs: 0, intervalMs: 1_000 }, run, failed }, { ...io, pause, log });
}

const upkeepTimes: RoundTimes = { firstMs: 60_000, intervalMs: 3_600_000, retryMs: 60_000 };

/**
 * Starts the upkeep: removes what is pruned. A checkpoint is saved only when entries can be
 * removed after it.
 */
export function startLogUpkeep({ receiver: { store }, io, log }: JobContext, shared: Shared): Job {
  const run = async () => {
    const position = (await store.pruning.pruneHorizon())?.position ?? 0;
    let done = await shared.log.maintain(position);
    if (done.needsCheckpoint) {
      await shared.saveCheckpoint();
      done = await shared.log.maintain(position);
    }
    log.debug(done, 'maintained the shared log');
  };
  const failed = 'failed to maintain the shared log; retrying later';
  return startJob({ every: upkeepTimes, run, failed }, { ...io, pause, log });
}
