/** The receiver that serves a data directory: a lock that ends with its process, and a note that names it. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { ServeConfig } from '../config/read-config.ts';
import { AppError, isAppError } from '../domain/app-error.ts';
import { readOwnerOnly, writeOwnerOnly } from '../domain/owner-only-file.ts';
import type { Logger } from '../domain/ports.ts';
import { hostInUrl, type ListenAddress } from '../http/listen-address.ts';
import { createTakeLock } from '../store/engine/locks.ts';
import type { Io } from './io.ts';

const noteSchema = z.object({
  pid: z.int().positive(),
  startedAtUs: z.int(),
  publicUrl: z.string().nullable(),
  listen: z.object({ host: z.string(), port: z.int() }),
  consoleListen: z.object({ host: z.string(), port: z.int() }).nullable(),
});

export type RunningNote = z.infer<typeof noteSchema>;

/** Longer than a command holds the lock that only checks who serves. */
const checkMs = 300;

/**
 * Finds the receiver that serves a data directory; null when there is none, `unknown` when it has left no note or this
 * user may not read it. Never rejects.
 */
export async function findRunning(dataDir: string): Promise<RunningNote | 'unknown' | null> {
  // The file is the receiver's: created by another user, it would keep the receiver out.
  if (!existsSync(join(dataDir, 'receiver.lock'))) return null;
  try {
    const release = await createTakeLock(dataDir)('receiver', { waitMs: checkMs });
    release();
    return null;
  } catch (error) {
    return isAppError(error, 'conflict') ? (readNote(dataDir) ?? 'unknown') : null;
  }
}

/** Names a running receiver: its process, its addresses, and its start. */
export function runningText(running: RunningNote | 'unknown'): string {
  if (running === 'unknown') return 'its process is not known';
  const { pid, startedAtUs, publicUrl, listen, consoleListen } = running;
  const since = new Date(startedAtUs / 1000).toISOString().slice(0, 16).replace('T', ' ');
  const queries = consoleListen === null ? '' : `, queries on ${addressText(consoleListen)}`;
  const url = publicUrl === null ? '' : `${publicUrl}, `;
  return `process ${pid}, ${url}listening on ${addressText(listen)}${queries}, running since ${since} UTC`;
}

/** How a running receiver is ended from elsewhere. */
export function stopText(running: RunningNote | 'unknown'): string {
  return running === 'unknown' ? 'Ctrl-C in its terminal' : `kill ${running.pid}`;
}

/** True where two receivers would listen on the same port of the same address. */
export function isSameListener(running: RunningNote | 'unknown', listen: ListenAddress): boolean {
  if (running === 'unknown' || running.listen.port !== listen.port || listen.port === 0)
    return false;
  const hosts = [running.listen.host, listen.host];
  return new Set(hosts).size === 1 || hosts.some((host) => host === '0.0.0.0' || host === '::');
}

/**
 * Marks the data directory as served by this process. Rejects with `conflict` when the receiver that serves it already
 * has the same address; one with another address is logged, and followed when it ends. Nothing else keeps the receiver
 * from starting: on a full disk there is only no mark.
 */
export async function markServed(
  { dataDir, listen, publicUrl, console }: ServeConfig,
  { nowUs, pid }: Pick<Io, 'nowUs' | 'pid'>,
  log: Pick<Logger, 'warn' | 'debug'>,
): Promise<{ stop(): Promise<void> }> {
  const stopping = new AbortController();
  const startedAtUs = nowUs();
  const serve = async (waitMs: number) => {
    const release = await createTakeLock(dataDir)('receiver', { waitMs, signal: stopping.signal });
    const consoleListen = console?.listen ?? null;
    const note: RunningNote = {
      ...{ pid, startedAtUs, publicUrl: publicUrl ?? null, listen, consoleListen },
    };
    try {
      rmSync(noteFile(dataDir), { force: true });
      await writeOwnerOnly(noteFile(dataDir), `${JSON.stringify(note)}\n`);
    } catch (err) {
      log.debug({ err }, 'the note that names the running receiver was not written');
    }
    return () => {
      rmSync(noteFile(dataDir), { force: true });
      release();
    };
  };
  const unmarked = (err: unknown) => {
    if (!stopping.signal.aborted) log.debug({ err }, 'the data directory is not marked as served');
    return () => undefined;
  };
  const first = await serve(checkMs).catch((error: unknown) => {
    return isAppError(error, 'conflict') ? null : unmarked(error);
  });
  if (first === null) {
    const running = readNote(dataDir) ?? 'unknown';
    if (isSameListener(running, listen)) throw alreadyServed(dataDir, running);
    log.warn({ running: runningText(running) }, 'another receiver serves this data directory');
  }
  const marked = first ?? serve(Number.POSITIVE_INFINITY).catch(unmarked);
  return {
    stop: async () => {
      stopping.abort();
      (await marked)();
    },
  };
}

/** A second receiver is refused before it changes a file. */
export function alreadyServed(dataDir: string, running: RunningNote | 'unknown'): AppError {
  return new AppError(
    'conflict',
    `A receiver serves ${dataDir} already: ${runningText(running)}. Nothing was changed.`,
    {
      advice: `Use it (\`earshot status\`), or end it first: ${stopText(running)}. For a second receiver, name another EARSHOT_DATA_DIR.`,
    },
  );
}

const noteFile = (dataDir: string) => join(dataDir, 'receiver.json');

const addressText = ({ host, port }: ListenAddress) => `${hostInUrl(host)}:${port}`;

/** Null without a note that can be read. */
function readNote(dataDir: string): RunningNote | null {
  try {
    return noteSchema.parse(JSON.parse(readOwnerOnly(noteFile(dataDir)) ?? ''));
  } catch {
    return null;
  }
}
