/** The sinks of a receiver: started as earshot.config.ts names them, changed with it, and never in the way of intake. */
import { type LoadedSinks, loadEachSink } from '../../config/sinks-config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { SinkDefinition } from '../../domain/sinks.ts';
import type { RunningSinks } from '../../sinks/start-sinks.ts';
import { createTakeLock } from '../../store/process-lock.ts';
import type { HandingOver } from '../../watch/watch-world.ts';
import type { Io } from '../io.ts';
import type { RunningReceiver } from '../serve.ts';
import { pause } from '../until-aborted.ts';
import { unknownWanted } from './wanted-subscriptions.ts';

export interface ServedSinks {
  /** State of the deliveries, for the watchdog. */
  handingOver(): HandingOver;
  /** Starts, stops and replaces sinks until they are those of the changed file. */
  change(loaded: LoadedSinks): Promise<void>;
  stop(): Promise<void>;
}

type SinksIo = Pick<Io, 'nowUs' | 'random' | 'fetch' | 'env' | 'workingDir'>;

/** Faults of the file are logged and reported to the watchdog; intake continues. */
export async function serveSinks(
  { store }: Pick<RunningReceiver, 'store'>,
  { dataDir }: { dataDir: string },
  log: Logger,
  io: SinksIo,
): Promise<ServedSinks> {
  const deliveries = createDeliveries({ store, dataDir, log, io });
  let state: HandingOver = { names: null, fault: null };
  const change = async (loaded: LoadedSinks) => {
    const { definitions, faulty } = loaded;
    for (const { name: sink, problems: details } of faulty) {
      log.error({ sink, details }, 'nothing is handed over to this sink before it is put right');
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
    if (!(error instanceof AppError)) throw error;
    const { message: reason, details } = error;
    log.error({ reason, details }, 'no delivery to sinks until earshot.config.ts is fixed');
    state = { names: null, fault: faultOf(error) };
  }
  return {
    handingOver: () => ({ ...state, fault: state.fault ?? deliveries.fault() }),
    change,
    stop: deliveries.stop,
  };
}

/** One that nobody knows may still come: it is no fault. */
async function warnOfSubscriptions(
  { store }: Pick<RunningReceiver, 'store'>,
  definitions: readonly SinkDefinition[],
  { log, io }: { log: Logger; io: Pick<Io, 'workingDir'> },
): Promise<void> {
  try {
    for (const { message, hint } of await unknownWanted(definitions, store, io)) {
      log.warn({ reason: `${message} ${hint}` }, 'a sink waits for a subscription that is none');
    }
  } catch (err) {
    log.warn({ err }, 'the subscriptions that sinks want could not be looked at');
  }
}

/** Of what should not happen, the log alone has the words. */
function faultOf(error: unknown): string {
  if (!(error instanceof AppError)) return 'It failed in a way it should not; the log has more.';
  return [error.message, ...error.details].join(' ');
}

/**
 * Deliveries of one program at a time: of two receivers on one data directory, the second begins when the first ends.
 * The lock is taken with the first sink.
 */
function createDeliveries(means: {
  store: RunningReceiver['store'];
  dataDir: string;
  log: Logger;
  io: SinksIo;
}) {
  const { log } = means;
  const stopping = new AbortController();
  const { signal } = stopping;
  let wanted: readonly SinkDefinition[] = [];
  let fault: string | null = null;
  let beginning: Promise<void> | null = null;
  let running: { sinks: RunningSinks; release: () => void } | null = null;

  const begin = async () => {
    try {
      const release = await createTakeLock(means.dataDir)('sinks', {
        waitMs: Number.POSITIVE_INFINITY,
        signal,
      });
      running = { sinks: await start(wanted, means), release };
      log.info({ sinks: wanted.map(({ name }) => name) }, 'delivering notifications to sinks');
    } catch (err) {
      if (!signal.aborted) log.error({ err }, 'delivery to sinks failed to start');
      fault = faultOf(err);
      beginning = null;
    }
  };
  return {
    fault: () => fault,
    change: async (definitions: readonly SinkDefinition[]) => {
      wanted = definitions;
      if (running !== null) return running.sinks.change(definitions);
      if (beginning !== null || definitions.length === 0 || signal.aborted) return;
      fault = null;
      // Not waited for: another receiver may hold the lock.
      beginning = begin();
    },
    stop: async () => {
      stopping.abort();
      await beginning;
      await running?.sinks.stop();
      running?.release();
    },
  };
}

async function start(
  definitions: readonly SinkDefinition[],
  { store, log, io }: Parameters<typeof createDeliveries>[0],
): Promise<RunningSinks> {
  const [{ startSinks }, { createRunProgram }] = await Promise.all([
    import('../../sinks/start-sinks.ts'),
    import('../run-program.ts'),
  ]);
  const { nowUs, random, fetch } = io;
  const world = { sinks: store.sinks, log: store, nowUs, random, pause, logger: log, fetch };
  return startSinks({ ...world, run: createRunProgram(io) }, definitions);
}
