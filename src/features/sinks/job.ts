/** The sinks of a receiver: started from earshot.config.ts, and updated when it changes. */

import { type Io, pause } from '../../core/cli/io.ts';
import type { Release } from '../../core/host/job.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import { deliveryStateOf, type LoadedSinks, loadEachSink, unknownDelivery } from './definitions.ts';
import type { MessageUrls } from './formats.ts';
import type { SinkDefinition } from './registry.ts';
import type { DeliveryState } from './terms.ts';

export interface ServedSinks {
  /** State of the deliveries, for the watchdog. */
  state(): DeliveryState;
  /** Starts, stops and replaces sinks to match the changed file. */
  reload(): Promise<void>;
  stop(): Promise<void>;
}

/** Delay after a failure to start or to replace sinks. */
const retryMs = 10_000;

/** Maximum time of one wait for a change. */
const idleMs = 3_600_000;

type SinksIo = Pick<Io, 'nowUs' | 'random' | 'env' | 'workingDir' | 'settings'>;

/** Faults of sinks are logged, and all faults are reported to the watchdog; intake continues. */
export async function serveSinks(
  { store, urls }: Pick<RunningReceiver, 'store'> & { urls: MessageUrls },
  log: Logger,
  io: SinksIo,
): Promise<ServedSinks> {
  const deliveries = createDeliveries(store, { log, io, urls });
  let state = unknownDelivery;
  const change = (loaded: LoadedSinks) => {
    const { definitions, faulty } = loaded;
    for (const { name: sink, problems: details } of faulty) {
      log.error({ sink, details }, 'no delivery to this sink until earshot.config.ts is fixed');
    }
    state = deliveryStateOf(loaded);
    deliveries.change(definitions);
  };
  try {
    change(await loadEachSink(io));
  } catch (error) {
    // Not logged here: the file watcher logs it once for all readers of the file.
    if (!(error instanceof AppError)) throw error;
    state = { ...unknownDelivery, fault: faultOf(error) };
  }
  return {
    state: () => ({ ...state, fault: state.fault ?? deliveries.fault() }),
    reload: async () => change(await loadEachSink(io)),
    stop: deliveries.stop,
  };
}

/** Describes an error. An unexpected one may hold secrets, so only the log has its text. */
function faultOf(error: unknown): string {
  if (!(error instanceof AppError)) return 'Internal error; see the log.';
  return [errorText(error), ...error.details].join(' ');
}

/**
 * Delivers from one process at a time: a second receiver on the data directory starts when the first ends.
 * The lock is acquired with the first sink.
 */
function createDeliveries(
  store: RunningReceiver['store'],
  { log, io, urls }: { log: Logger; io: SinksIo; urls: MessageUrls },
) {
  const stopping = new AbortController();
  const { signal } = stopping;
  let desired: readonly SinkDefinition[] = [];
  let fault: string | null = null;
  let changed = new AbortController();

  /** Resolves after a change, or soon after the signal is aborted. */
  const change = async (ms: number, ending: AbortSignal) => {
    await pause(ms, AbortSignal.any([changed.signal, ending]));
    changed = new AbortController();
  };
  const deliver = async (ending: AbortSignal) => {
    // Loaded with the first sink.
    const { startSinks } = await import('./run-sinks.ts');
    const { createRunProgram } = await import('../../core/host/run-program.ts');
    const { nowUs, random } = io;
    const parts = { sinks: store.sinks, log: store, logger: log, urls };
    const sinks = startSinks({ ...parts, nowUs, random, pause, run: createRunProgram(io) });
    try {
      log.info({ sinks: desired.map(({ name }) => name) }, 'started delivery to sinks');
      while (!ending.aborted) {
        await sinks.change(desired);
        fault = null;
        await change(idleMs, ending);
      }
    } finally {
      await sinks.stop();
    }
  };
  const run = async () => {
    while (!signal.aborted) {
      let release: Release | undefined;
      try {
        if (desired.length > 0) {
          release = await store.acquireLock('sinks', { waitMs: Number.POSITIVE_INFINITY, signal });
          await deliver(AbortSignal.any([signal, ...(release.lost ? [release.lost] : [])]));
          if (!signal.aborted) log.warn({}, 'another receiver delivers to the sinks now');
        } else await change(idleMs, signal);
      } catch (err) {
        if (signal.aborted) return;
        log.error({ err }, 'failed to deliver to sinks');
        fault = faultOf(err);
        await change(retryMs, signal);
      } finally {
        release?.();
      }
    }
  };
  const running = run();
  return {
    fault: () => fault,
    change: (definitions: readonly SinkDefinition[]) => {
      desired = definitions;
      fault = null;
      changed.abort();
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
