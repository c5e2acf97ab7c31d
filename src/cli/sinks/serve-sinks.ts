/** Sinks inside a receiver that serves: started where earshot.config.ts has some, and never in its way. */
import { loadSinks } from '../../config/sinks-config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { SinkDefinition } from '../../domain/sinks.ts';
import { createTakeLock } from '../../store/process-lock.ts';
import type { HandingOver } from '../../watch/watch-world.ts';
import type { Io } from '../io.ts';
import type { RunningReceiver } from '../serve.ts';
import { pause } from '../until-aborted.ts';

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
    const definitions = await loadSinks(io.workingDir);
    if (definitions.length === 0) return noSinks({ names: [], fault: null });
    return handOver(receiver, definitions, { dataDir, log, io });
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

/** Of what should not happen, the log alone has the words. */
function faultOf(error: unknown): string {
  if (!(error instanceof AppError)) return 'It failed in a way it should not; the log has more.';
  return [error.message, ...error.details].join(' ');
}

/** One program at a time: of two receivers on one data directory, the second takes over when the first ends. */
function handOver(
  { store }: Pick<RunningReceiver, 'store'>,
  definitions: readonly SinkDefinition[],
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
    handingOver: () => ({ names, fault }),
    stop: async () => {
      stopping.abort();
      await (await running)();
    },
  };
}
