/** The sinks of a receiver: started from earshot.config.ts, and updated when it changes. */

import { type Io, pause } from '../../core/cli/io.ts';
import type { ConfigPlace } from '../../core/config/subscriptions-file.ts';
import type { Release } from '../../core/host/job.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import { deliveryStateOf, type LoadedSinks, loadEachSink } from './definitions.ts';
import type { MessageUrls } from './formats.ts';
import { unknownSinkSubscriptions } from './names.ts';
import type { SinkDefinition } from './registry.ts';
import type { RunningSinks } from './run-sinks.ts';
import type { DeliveryState } from './terms.ts';

export interface ServedSinks {
  /** State of the deliveries, for the watchdog. */
  deliveryState(): DeliveryState;
  /** Starts, stops and replaces sinks to match the changed file. */
  reload(): Promise<void>;
  stop(): Promise<void>;
}

/** Wait before another attempt to start while the store is unavailable. */
const retryMs = 10_000;

type SinksIo = Pick<Io, 'nowUs' | 'random' | 'env' | 'workingDir' | 'settings'>;

/** Faults of sinks are logged, and all faults are reported to the watchdog; intake continues. */
export async function serveSinks(
  { store, urls }: Pick<RunningReceiver, 'store'> & { urls: MessageUrls },
  log: Logger,
  io: SinksIo,
): Promise<ServedSinks> {
  const deliveries = createDeliveries(store, { log, io, urls });
  let state: DeliveryState = { names: null, fault: null };
  const change = async (loaded: LoadedSinks) => {
    const { definitions, faulty } = loaded;
    for (const { name: sink, problems: details } of faulty) {
      log.error({ sink, details }, 'no delivery to this sink until earshot.config.ts is fixed');
    }
    state = deliveryStateOf(loaded);
    await warnOfSubscriptions({ store }, definitions, { log, io });
    await deliveries.change(definitions);
  };
  try {
    await change(await loadEachSink(io));
  } catch (error) {
    // Not logged here: the file watcher logs it once for all readers of the file.
    if (!(error instanceof AppError)) throw error;
    state = { names: null, fault: faultOf(error) };
  }
  return {
    deliveryState: () => ({ ...state, fault: state.fault ?? deliveries.fault() }),
    reload: async () => change(await loadEachSink(io)),
    stop: deliveries.stop,
  };
}

/** Logs unknown subscriptions as warnings: they may still be registered. */
async function warnOfSubscriptions(
  { store }: Pick<RunningReceiver, 'store'>,
  definitions: readonly SinkDefinition[],
  { log, io }: { log: Logger; io: ConfigPlace },
): Promise<void> {
  try {
    for (const { message, hint } of await unknownSinkSubscriptions(definitions, store, io)) {
      log.warn(
        { reason: `${message} ${hint}` },
        'unknown subscription in the definition of a sink',
      );
    }
  } catch (err) {
    log.warn({ err }, 'failed to check the subscriptions of sinks');
  }
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
  deps: { log: Logger; io: SinksIo; urls: MessageUrls },
) {
  const { log } = deps;
  const stopping = new AbortController();
  const { signal } = stopping;
  let desired: readonly SinkDefinition[] = [];
  let fault: string | null = null;
  let starting: Promise<void> | null = null;
  let running: { sinks: RunningSinks; release: Release } | null = null;

  /** Stops the delivery when another receiver has taken it over, and waits for the lock again. */
  const restart = async ({ sinks, release }: NonNullable<typeof running>) => {
    running = null;
    log.warn({}, 'another receiver delivers to the sinks now');
    try {
      await sinks.stop();
    } catch (err) {
      log.error({ err }, 'failed to stop the delivery to sinks');
    } finally {
      release();
    }
    await start();
  };
  const begin = (start: Promise<void>) => {
    // Not awaited: another receiver may hold the lock.
    starting = start.finally(() => {
      starting = null;
    });
  };
  const start = async () => {
    while (!signal.aborted && (await startOnce()) === 'unavailable') await pause(retryMs, signal);
  };
  const startOnce = async (): Promise<'done' | 'unavailable'> => {
    let opened: Awaited<ReturnType<typeof openDelivery>> | undefined;
    try {
      opened = await openDelivery(store, { ...deps, signal });
      // No await from here on: an earlier change is in `desired`, a later one finds `running`.
      const started = { sinks: opened.start(desired), release: opened.release };
      running = started;
      fault = null;
      started.release.lost?.addEventListener('abort', () => {
        if (running === started) begin(restart(started));
      });
      log.info({ sinks: desired.map(({ name }) => name) }, 'started delivery to sinks');
      return 'done';
    } catch (err) {
      opened?.release();
      if (!signal.aborted) log.error({ err }, 'failed to start delivery to sinks');
      fault = faultOf(err);
      return isAppError(err, 'unavailable') ? 'unavailable' : 'done';
    }
  };
  return {
    fault: () => fault,
    change: async (definitions: readonly SinkDefinition[]) => {
      desired = definitions;
      if (running !== null) return running.sinks.change(definitions);
      if (starting !== null || signal.aborted) return;
      fault = null;
      if (definitions.length === 0) return;
      begin(start());
    },
    stop: async () => {
      stopping.abort();
      await starting;
      await running?.sinks.stop();
      running?.release();
    },
  };
}

/** Loads the code and waits for the lock: a receiver without sinks needs neither. */
async function openDelivery(
  store: RunningReceiver['store'],
  deps: { log: Logger; io: SinksIo; urls: MessageUrls; signal: AbortSignal },
) {
  const [{ startSinks }, { createRunProgram }] = await Promise.all([
    import('./run-sinks.ts'),
    import('../../core/host/run-program.ts'),
  ]);
  const { log: logger, io, urls, signal } = deps;
  const { nowUs, random } = io;
  const parts = { sinks: store.sinks, log: store, logger, urls };
  const context = { ...parts, nowUs, random, pause, run: createRunProgram(io) };
  const waitMs = Number.POSITIVE_INFINITY;
  const release = await store.acquireLock('sinks', { waitMs, signal });
  return { release, start: (sinks: readonly SinkDefinition[]) => startSinks(context, sinks) };
}
