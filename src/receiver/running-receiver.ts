/** Finds the receiver that uses a data directory: by a lock that ends with its process, and by a file that describes it. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { UnreadyReason } from '../core/api/app.ts';
import type { Io } from '../core/cli/io.ts';
import { readOwnerOnly, writeOwnerOnly } from '../core/host/files.ts';
import { createBoundedFetch, networkFault } from '../core/http/bounded-fetch.ts';
import { hostInUrl } from '../core/http/network-address.ts';
import { AppError, isAppError } from '../core/terms/app-error.ts';
import { shortDateUs } from '../core/terms/dates.ts';
import type { Logger } from '../core/terms/ports.ts';
import { createAcquireLock } from '../store/engine/locks.ts';

const noteSchema = z.object({
  pid: z.int().positive(),
  startedAtUs: z.int(),
  publicUrl: z.string().nullable(),
  /** Null without a public listener. */
  listen: z.object({ host: z.string(), port: z.int() }).nullable(),
  /** URL of the private listener on this machine; null without one. */
  consoleUrl: z.string().nullable(),
});

export type RunningNote = z.infer<typeof noteSchema>;

/** Longer than a command that only checks for a receiver holds the lock. */
const checkMs = 300;

/**
 * Finds the receiver that uses a data directory. Null for none; `unknown` if its file is missing or not readable, such as
 * during its start. Never rejects.
 */
export async function findRunning(dataDir: string): Promise<RunningNote | 'unknown' | null> {
  // Does not create the lock file: the receiver could not open a file of another user.
  if (!existsSync(join(dataDir, 'receiver.lock'))) return null;
  const note = readNote(dataDir);
  try {
    // Without a file, another command that checks at the same moment may hold the lock.
    const waitMs = note === null ? checkMs : 0;
    const release = await createAcquireLock(dataDir)('receiver', { waitMs });
    release();
    return null;
  } catch (error) {
    return isAppError(error, 'conflict') ? (note ?? 'unknown') : null;
  }
}

/** Describes a running receiver: its process, its addresses, and its start. */
function runningText(running: RunningNote | 'unknown'): string {
  if (running === 'unknown') return 'unknown process';
  const { pid, startedAtUs, publicUrl, listen, consoleUrl } = running;
  const queries = consoleUrl === null ? '' : `, queries on ${consoleUrl}`;
  const url = publicUrl === null ? '' : `${publicUrl}, `;
  const where =
    listen === null ? 'reading queues' : `listening on ${hostInUrl(listen.host)}:${listen.port}`;
  return `process ${pid}, ${url}${where}${queries}, running since ${shortDateUs(startedAtUs)} UTC`;
}

/** Returns how to stop a running receiver from another terminal. */
function stopText(running: RunningNote | 'unknown'): string {
  return running === 'unknown' ? 'Ctrl-C in its terminal' : `kill ${running.pid}`;
}

interface ServedMark {
  /** Writes the file, when the receiver has opened its listeners. Never rejects. */
  describe(note: RunningNote): Promise<void>;
  stop(): void;
}

/**
 * Marks the data directory as used by this process. Rejects with `conflict` if another receiver uses it. Other failures,
 * such as a full disk, do not stop the start: there is only no mark.
 */
export async function markServed(dataDir: string, log: Pick<Logger, 'debug'>): Promise<ServedMark> {
  const file = noteFile(dataDir);
  try {
    const release = await createAcquireLock(dataDir)('receiver', { waitMs: checkMs });
    // Of a process that was killed.
    rmSync(file, { force: true });
    return {
      describe: (note) =>
        writeOwnerOnly(file, `${JSON.stringify(note)}\n`).catch((err: unknown) =>
          log.debug({ err }, 'failed to write receiver.json'),
        ),
      stop: () => {
        rmSync(file, { force: true });
        release();
      },
    };
  } catch (err) {
    if (isAppError(err, 'conflict')) throw alreadyServed(dataDir, readNote(dataDir) ?? 'unknown');
    log.debug({ err }, 'failed to mark the data directory as in use');
    return { describe: async () => undefined, stop: () => undefined };
  }
}

/** Creates the error for a second receiver, which is refused before it changes a file. */
export function alreadyServed(dataDir: string, running: RunningNote | 'unknown'): AppError {
  return new AppError(
    'conflict',
    `Another receiver already uses ${dataDir}: ${runningText(running)}. Nothing was changed.`,
    {
      advice: `Use the running receiver (\`earshot status\`), or stop it first: ${stopText(running)}. For a second receiver, set another EARSHOT_DATA_DIR.`,
    },
  );
}

const noteFile = (dataDir: string) => join(dataDir, 'receiver.json');

/** Returns null if the file is missing or invalid. */
function readNote(dataDir: string): RunningNote | null {
  try {
    return noteSchema.parse(JSON.parse(readOwnerOnly(noteFile(dataDir)) ?? ''));
  } catch {
    return null;
  }
}

/** Texts for the reasons of `/readyz`. */
export const refusals: Readonly<Record<UnreadyReason, string>> = {
  writer: 'The database writer does not answer.',
  store: 'The receiver cannot store notifications. Check the log of the receiver.',
  certificate: 'There is no valid certificate.',
};

/** Longer than a commit to a slow disk. */
const timeoutMs = 5_000;

/**
 * Asks the private listener of a running receiver why it refuses notifications. Null if it accepts them, or has no
 * private listener. Never rejects.
 */
export async function refusalOf(
  consoleUrl: string | null,
  { fetch, signal }: Pick<Io, 'fetch' | 'signal'>,
): Promise<string | null> {
  if (consoleUrl === null) return null;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const ended = AbortSignal.any([signal, timeout]);
    const answer = await createBoundedFetch(fetch)(`${consoleUrl}/readyz`, { signal: ended });
    const [reason = ''] = (await answer.text()).split('\n');
    if (answer.ok) return null;
    const other = `Another program answers at ${consoleUrl} (HTTP status ${answer.status}).`;
    return refusals[reason as UnreadyReason] ?? other;
  } catch (error) {
    const fault = networkFault(timeout.aborted ? timeout.reason : error);
    return `The receiver does not answer at ${consoleUrl}: ${fault}. Check its log.`;
  }
}
