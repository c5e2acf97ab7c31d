/** Upkeep of the shared log by the leader: space for entries, removal of what all nodes have pruned. */
import { type Job, type RoundTimes, startJob } from '../../domain/job.ts';
import type { Logger } from '../../domain/ports.ts';
import type { NodeState, Store } from '../../store/store.ts';
import { type Io, pause } from '../io.ts';

const times: RoundTimes = { firstMs: 60_000, intervalMs: 3_600_000, retryMs: 60_000 };

/** Starts the job. A checkpoint is saved only when entries can be removed after it. */
export function startLogUpkeep(
  { store, node, log }: { store: Pick<Store, 'pruning'>; node: NodeState; log: Logger },
  { random }: Pick<Io, 'random'>,
  every: Partial<RoundTimes> = {},
): Job {
  const run = async () => {
    const position = (await store.pruning.pruneHorizon())?.position ?? 0;
    let done = await node.log.maintain(position);
    if (done.needsCheckpoint) {
      await node.saveCheckpoint();
      done = await node.log.maintain(position);
    }
    log.debug(done, 'maintained the shared log');
  };
  const failed = 'failed to maintain the shared log; retrying later';
  return startJob({ every: { ...times, ...every }, run, failed }, { pause, random, log });
}
