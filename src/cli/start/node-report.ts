/** Reports this receiver to the other nodes of a shared log. */
import { hostname } from 'node:os';
import type { ServeConfig } from '../../config/config.ts';
import { errorText } from '../../domain/app-error.ts';
import { type Job, startJob } from '../../domain/job.ts';
import type { Logger } from '../../domain/ports.ts';
import { diskSpace } from '../../store/engine/disk-limit.ts';
import type { Store } from '../../store/store.ts';
import { type Io, pause } from '../io.ts';

const intervalMs = 5_000;

/** Starts the reports; returns null without a shared log. */
export function startNodeReports(
  {
    store,
    credentialsDigest,
  }: { store: Pick<Store, 'node' | 'checkWritable'>; credentialsDigest: () => string },
  log: Logger,
  config: ServeConfig & { version: string },
  { nowUs, random }: Pick<Io, 'nowUs' | 'random'>,
): Job | null {
  const { node } = store;
  if (node === null) return null;
  const { version } = config;
  const name = config.sharedLog?.nodeName ?? hostname();
  const startedAtUs = nowUs();
  const run = async () => {
    const refusing = await store.checkWritable().then(() => null, errorText);
    const freeBytes = diskSpace(config)?.freeBytes ?? null;
    const credentials = credentialsDigest();
    const facts = { version, startedAtUs, refusing, freeBytes, credentials };
    await node.log.report({ id: node.id, name, applied: node.state().applied, facts });
  };
  return startJob(
    { every: { firstMs: 0, intervalMs }, run, failed: 'failed to report to the other receivers' },
    { pause, random, log },
  );
}
