/** Jobs of a receiver with a shared log: its reports, and the upkeep of the log by the leader. */
import { hostname } from 'node:os';
import { type Io, pause } from '../../core/cli/io.ts';
import type { ServeConfig } from '../../core/config/config.ts';
import type { CredentialPairs } from '../../core/config/endpoint-credentials.ts';
import { type Job, type RoundTimes, startJob } from '../../core/host/job.ts';
import { errorText } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { diskSpace } from '../../store/engine/disk-limit.ts';
import type { Shared, Store } from '../../store/store.ts';
import { credentialsDigest } from './shared-files.ts';

const reportIntervalMs = 5_000;

/** Starts the reports to the other nodes; returns null without a shared log. */
export function startNodeReports(
  {
    store,
    acceptedCredentials,
  }: { store: Pick<Store, 'shared' | 'checkWritable'>; acceptedCredentials: () => CredentialPairs },
  log: Logger,
  config: ServeConfig & { version: string },
  { nowUs, random }: Pick<Io, 'nowUs' | 'random'>,
): Job | null {
  const { shared } = store;
  if (shared === null) return null;
  const { version } = config;
  const name = config.sharedLog?.nodeName ?? hostname();
  const startedAtUs = nowUs();
  const run = async () => {
    const refusing = await store.checkWritable().then(() => null, errorText);
    const freeBytes = diskSpace(config)?.freeBytes ?? null;
    const credentials = credentialsDigest(acceptedCredentials());
    const { applied, fault } = shared.state();
    const facts = { version, startedAtUs, refusing, fault, freeBytes, credentials };
    await shared.log.report({ id: shared.id, name, applied, facts });
  };
  return startJob(
    {
      every: { firstMs: 0, intervalMs: reportIntervalMs },
      run,
      failed: 'failed to report to the other receivers',
    },
    { pause, random, log },
  );
}

const upkeepTimes: RoundTimes = { firstMs: 60_000, intervalMs: 3_600_000, retryMs: 60_000 };

/**
 * Starts the upkeep: space for entries, removal of what is pruned. A checkpoint is saved only when entries can be
 * removed after it.
 */
export function startLogUpkeep(
  { store, shared, log }: { store: Pick<Store, 'pruning'>; shared: Shared; log: Logger },
  { random }: Pick<Io, 'random'>,
  every: Partial<RoundTimes> = {},
): Job {
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
  return startJob({ every: { ...upkeepTimes, ...every }, run, failed }, { pause, random, log });
}
