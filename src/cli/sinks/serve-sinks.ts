/** Sinks inside a receiver that serves: started where earshot.config.ts has some, and never in its way. */
import { loadEachSink } from '../../config/sinks-config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { SinkDefinition } from '../../domain/sinks.ts';
import { createTakeLock } from '../../store/process-lock.ts';
import type { HandingOver } from '../../watch/watch-world.ts';
import type { Io } from '../io.ts';
import type { RunningReceiver } from '../serve.ts';
import { pause } from '../until-aborted.ts';
import { unknownWanted } from './wanted-subscriptions.ts';

/** Why faulty sinks are not started, by name. */
type Faults = ReadonlyMap<string, string>;

export interface ServedSinks {
  /** How it stands with them, for the watchdog. */
  handingOver(): HandingOver;
  stop(): Promise<void>;
}

/** What is wrong with them is told to the log, and to the watchdog: intake goes on. */
export async function serveSinks(
  receiver: Pick<RunningReceiver, 'store'>,
  { dataDir }: { dataDir: string },
  log: Logger,
  io: Pick<Io, 'nowUs' | 'random' | 'fetch' | 'env' | 'workingDir'>,
): Promise<ServedSinks> {
  try {
    const { definitions, faulty } = await loadEachSink(io.workingDir);
    for (const { name: sink, problems: details } of faulty) {
      log.error({ sink, details }, 'nothing is handed over to this sink before it is put right');
    }
    const faults = new Map(faulty.map(({ name, problems }) => [name, problems.join(' ')]));
    if (definitions.length === 0)
      return noSinks({ names: [...faults.keys()], faults, fault: null });
    await warnOfSubscriptions(receiver, definitions, { log, io });
    return handOver(receiver, { definitions, faults }, { dataDir, log, io });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { message: reason, details } = error;
    log.error({ reason, details }, 'nothing is handed over to sinks before this is put right');
    return noSinks({ names: null, fault: faultOf(error) });
  }
}

function noSinks(handingOver: HandingOver): ServedSinks {
  return { handingOver: () => handingOver, stop: async () => undefined };
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

/** One program at a time: of two receivers on one data directory, the second takes over when the first ends. */
function handOver(
  { store }: Pick<RunningReceiver, 'store'>,
  { definitions, faults }: { definitions: readonly SinkDefinition[]; faults: Faults },
  means: {
    dataDir: string;
    log: Logger;
    io: Pick<Io, 'nowUs' | 'random' | 'fetch' | 'env'>;
  },
): ServedSinks {
  const { dataDir, log, io } = means;
  const stopping = new AbortController();
  const { signal } = stopping;
  const names = definitions.map(({ name }) => name);
  const named = [...names, ...faults.keys()];
  let fault: string | null = null;
  const running = (async () => {
    const [{ startSinks }, { createRunProgram }] = await Promise.all([
      import('../../sinks/start-sinks.ts'),
      import('../run-program.ts'),
    ]);
    const release = await createTakeLock(dataDir)('sinks', {
      waitMs: Number.POSITIVE_INFINITY,
      signal,
    });
    const { nowUs, random, fetch } = io;
    const world = { sinks: store.sinks, log: store, nowUs, random, pause, logger: log, fetch };
    const sinks = startSinks({ ...world, run: createRunProgram(io) }, definitions);
    log.info({ sinks: names }, 'notifications are handed over to sinks');
    return async () => {
      await sinks.stop();
      release();
    };
  })().catch((err: unknown) => {
    if (!signal.aborted) log.error({ err }, 'nothing is handed over to sinks');
    fault = faultOf(err);
    return async () => undefined;
  });
  return {
    handingOver: () => ({ names: named, faults, fault }),
    stop: async () => {
      stopping.abort();
      await (await running)();
    },
  };
}
