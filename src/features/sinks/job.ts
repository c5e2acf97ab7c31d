/** The sinks of a receiver, as earshot.config.ts defines them at its start. */

import { type Io, pause, untilAborted } from '../../core/cli/io.ts';
import { type Job, startJob } from '../../core/host/job.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import type { MessageUrls } from '../messages/formats.ts';
import { deliveryStateOf, type LoadedSinks, loadEachSink, unknownDelivery } from './definitions.ts';
import type { SinkDefinition } from './registry.ts';
import type { DeliveryState } from './terms.ts';

export interface ServedSinks extends Job {
  /** State of the deliveries, for the watchdog. */
  state(): DeliveryState;
}

/** Delay after a failure to start sinks. */
const retryMs = 10_000;

type SinksIo = Pick<Io, 'nowUs' | 'random' | 'env' | 'workingDir' | 'settings'>;

/** Faults of sinks are logged, and all faults are reported to the watchdog; intake continues. */
export async function serveSinks(
  { store, urls }: Pick<RunningReceiver, 'store'> & { urls: MessageUrls },
  log: Logger,
  io: SinksIo,
): Promise<ServedSinks> {
  let loaded: LoadedSinks;
  try {
    loaded = await loadEachSink(io);
  } catch (error) {
    // Not logged here: the start of the jobs logs it once for all readers of the file.
    if (!(error instanceof AppError)) throw error;
    const state = { ...unknownDelivery, fault: faultOf(error) };
    return { state: () => state, stop: async () => undefined };
  }
  const { definitions, faulty } = loaded;
  for (const { name: sink, problems: details } of faulty) {
    log.error({ sink, details }, 'no delivery to this sink: fix earshot.config.ts, and restart');
  }
  const state = deliveryStateOf(loaded);
  if (definitions.length === 0) return { state: () => state, stop: async () => undefined };
  const deliveries = startDeliveries(definitions, store, { log, io, urls });
  return {
    state: () => ({ ...state, fault: deliveries.fault() }),
    stop: deliveries.stop,
  };
}

/** Describes an error. An unexpected one may hold secrets, so only the log has its text. */
function faultOf(error: unknown): string {
  if (!(error instanceof AppError)) return 'Internal error; see the log.';
  return [errorText(error), ...error.details].join(' ');
}

/** Delivers to the sinks. With a shared log, one of the receivers delivers, and another one when that ends. */
function startDeliveries(
  definitions: readonly SinkDefinition[],
  store: RunningReceiver['store'],
  { log, io, urls }: { log: Logger; io: SinksIo; urls: MessageUrls },
) {
  let fault: string | null = null;
  const deliver = async (signal: AbortSignal) => {
    const release = await store.acquireLock('sinks', { waitMs: Number.POSITIVE_INFINITY, signal });
    try {
      const { startSinks } = await import('./run-sinks.ts');
      const { createRunProgram } = await import('../../core/host/run-program.ts');
      const { nowUs, random } = io;
      const parts = { sinks: store.sinks, log: store, activity: store.activity, logger: log, urls };
      const context = { ...parts, nowUs, random, pause, run: createRunProgram(io) };
      const sinks = startSinks(definitions, context);
      try {
        fault = null;
        log.info({ sinks: definitions.map(({ name }) => name) }, 'started delivery to sinks');
        await untilAborted(AbortSignal.any([signal, ...(release.lost ? [release.lost] : [])]));
      } finally {
        await sinks.stop();
      }
    } finally {
      release();
    }
    if (!signal.aborted) log.warn({}, 'another receiver delivers to the sinks now');
  };
  const run = (signal: AbortSignal) =>
    deliver(signal).catch((error: unknown) => {
      fault = faultOf(error);
      throw error;
    });
  const every = { firstMs: 0, intervalMs: 0, retryMs, retryMsMax: retryMs };
  const failed = 'failed to deliver to sinks';
  const busy = 'sinks wait for another program';
  const { stop } = startJob({ every, run, failed, busy }, { pause, random: io.random, log });
  return { fault: () => fault, stop };
}
