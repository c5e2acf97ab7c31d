/** The sinks of a receiver: started as earshot.config.ts names them, changed with it, and never in the way of intake. */
import { type LoadedSinks, loadEachSink } from '../../config/sinks.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { SinkDefinition } from '../../sinks/registry.ts';
import type { RunningSinks } from '../../sinks/run-sinks.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import type { HandingOver } from '../../watch/situation.ts';
import { type Io, pause } from '../io.ts';
import { unknownSinkSubscriptions } from '../sink-names.ts';
import type { RunningReceiver } from './serve.ts';

export interface ServedSinks {
  /** State of the deliveries, for the watchdog. */
  handingOver(): HandingOver;
  /** Starts, stops and replaces sinks until they are those of the changed file. */
  change(loaded: LoadedSinks): Promise<void>;
  stop(): Promise<void>;
}

type SinksIo = Pick<Io, 'nowUs' | 'random' | 'fetch' | 'env' | 'workingDir'>;

/** Faults of sinks are logged, and all faults are reported to the watchdog; intake continues. */
export async function serveSinks(
  { store }: Pick<RunningReceiver, 'store'>,
  { dataDir }: { dataDir: string },
  log: Logger,
  io: SinksIo,
): Promise<ServedSinks> {
  const deliveries = createDeliveries(store, dataDir, { log, io });
  let state: HandingOver = { names: null, fault: null };
  const change = async (loaded: LoadedSinks) => {
    const { definitions, faulty } = loaded;
    for (const { name: sink, problems: details } of faulty) {
      log.error({ sink, details }, 'no delivery to this sink until earshot.config.ts is fixed');
    }
    const faults = new Map(faulty.map(({ name, problems }) => [name, problems.join(' ')]));
    const names = [...definitions.map(({ name }) => name), ...faults.keys()];
    state = { names, faults, fault: null };
    await warnOfSubscriptions({ store }, definitions, { log, io });
    await deliveries.change(definitions);
  };
  try {
    await change(await loadEachSink(io.workingDir));
  } catch (error) {
    // The watch of the file logs it: the other readers of the file fail for the same reason.
    if (!(error instanceof AppError)) throw error;
    state = { names: null, fault: faultOf(error) };
  }
  return {
    handingOver: () => ({ ...state, fault: state.fault ?? deliveries.fault() }),
    change,
    stop: deliveries.stop,
  };
}

/** Logs unknown subscriptions as warnings: they may still be registered. */
async function warnOfSubscriptions(
  { store }: Pick<RunningReceiver, 'store'>,
  definitions: readonly SinkDefinition[],
  { log, io }: { log: Logger; io: Pick<Io, 'workingDir'> },
): Promise<void> {
  try {
    for (const { message, hint } of await unknownSinkSubscriptions(definitions, store, io)) {
      log.warn({ reason: `${message} ${hint}` }, 'a sink names an unknown subscription');
    }
  } catch (err) {
    log.warn({ err }, 'failed to check the subscriptions of sinks');
  }
}

/** An unexpected error may hold secrets: the log has it. */
function faultOf(error: unknown): string {
  if (!(error instanceof AppError)) return 'An unexpected error; the log has the reason.';
  return [errorText(error), ...error.details].join(' ');
}

/**
 * Deliveries of one program at a time: of two receivers on one data directory, the second begins when the first ends.
 * The lock is taken with the first sink.
 */
function createDeliveries(
  store: RunningReceiver['store'],
  dataDir: string,
  { log, io }: { log: Logger; io: SinksIo },
) {
  const stopping = new AbortController();
  const { signal } = stopping;
  let wanted: readonly SinkDefinition[] = [];
  let fault: string | null = null;
  let beginning: Promise<void> | null = null;
  let running: { sinks: RunningSinks; release: () => void } | null = null;

  const begin = async () => {
    let release: (() => void) | undefined;
    try {
      // A receiver without sinks does not need their code.
      const [{ startSinks }, { createRunProgram }] = await Promise.all([
        import('../../sinks/run-sinks.ts'),
        import('../../host/run-program.ts'),
      ]);
      const { nowUs, random, fetch } = io;
      const run = createRunProgram(io);
      const context = {
        sinks: store.sinks,
        log: store,
        nowUs,
        random,
        pause,
        logger: log,
        fetch,
        run,
      };
      const waitMs = Number.POSITIVE_INFINITY;
      release = await createTakeLock(dataDir)('sinks', { waitMs, signal });
      // Nothing is awaited from here on: a change before this line is in `wanted`, a later one finds `running`.
      running = { sinks: startSinks(context, wanted), release };
      log.info({ sinks: wanted.map(({ name }) => name) }, 'delivering notifications to sinks');
    } catch (err) {
      release?.();
      if (!signal.aborted) log.error({ err }, 'delivery to sinks failed to start');
      fault = faultOf(err);
    }
  };
  return {
    fault: () => fault,
    change: async (definitions: readonly SinkDefinition[]) => {
      wanted = definitions;
      if (running !== null) return running.sinks.change(definitions);
      if (beginning !== null || signal.aborted) return;
      fault = null;
      if (definitions.length === 0) return;
      // Not waited for: another receiver may hold the lock.
      beginning = begin().finally(() => {
        beginning = null;
      });
    },
    stop: async () => {
      stopping.abort();
      await beginning;
      await running?.sinks.stop();
      running?.release();
    },
  };
}
