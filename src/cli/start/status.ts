/** The status of a receiver that serves. */
import type { ServeConfig } from '../../config/config.ts';
import type { Readiness, UnreadyReason } from '../../console/app.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Status } from '../../domain/status.ts';
import type { Store } from '../../store/store.ts';
import type { Io } from '../io.ts';
import { type Beside, createStatus } from '../status/gather-status.ts';
import { watchProbes } from './watch-probes.ts';

export interface ServedStatus {
  /** Never rejects. What it resolves with may be some seconds old. */
  status(): Promise<Status>;
  /** Why hours are not compared automatically; null when they are. */
  comparisonOff(): string | null;
  /** Sets the background jobs, once they have started. */
  tellBeside(beside: Beside): void;
}

/** Of a receiver by itself, as the demo has it. */
const nothingBeside: Beside = {
  version: 'unknown',
  handingOver: () => ({ names: [], fault: null }),
  summaryMode: async () => 'off',
  backupEveryHours: null,
  comparisonOff: 'This receiver does not compare.',
};

/** What `/readyz` says in a word; of the store, its own words say more. */
const refusals = {
  writer: 'The thread that writes does not answer.',
  certificate: 'There is no certificate that is valid now.',
} as const satisfies Partial<Record<UnreadyReason, string>>;

export function serveStatus(
  config: ServeConfig,
  { store, readiness, log }: { store: Store; readiness: Readiness; log: Logger },
  { nowUs, pid }: Pick<Io, 'nowUs'> & Partial<Pick<Io, 'pid'>>,
): ServedStatus {
  const { dataDir, index, tls } = config;
  const startedAtUs = nowUs();
  const probes = watchProbes(config, store, { nowUs });
  let beside = nothingBeside;
  const refusing = async (): Promise<string | null> => {
    const [reason] = await readiness();
    if (reason === undefined) return null;
    return reason === 'store' ? probes.intake() : refusals[reason];
  };
  const status = createStatus({
    ...{ store, dataDir, index, probes, nowUs, log },
    behindProxy: tls.kind === 'off',
    receiver: async () => ({
      ...{ startedAtUs, pid: pid ?? null, refusing: await refusing(), queue: store.queue() },
    }),
    beside: () => beside,
  });
  return {
    status,
    comparisonOff: () => beside.comparisonOff,
    tellBeside: (now) => {
      beside = now;
    },
  };
}
