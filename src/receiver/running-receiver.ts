/** Finds the receiver that uses a data directory: by a lock that ends with its process, and by a file that describes it. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Io } from '../core/cli/io.ts';
import type { Config, StartConfig } from '../core/config/config.ts';
import { readOwnerOnly, writeOwnerOnly } from '../core/host/files.ts';
import { hostInUrl, type ListenAddress, loopbackOf } from '../core/http/network-address.ts';
import { AppError, errorCodeOf, isAppError } from '../core/terms/app-error.ts';
import { shortDateUs } from '../core/terms/dates.ts';
import { clauseOf, faultOf } from '../core/terms/faults.ts';
import type { Logger } from '../core/terms/ports.ts';
import { createAcquireLock } from '../store/engine/locks.ts';

const noteSchema = z.object({
  pid: z.int().positive(),
  startedAtUs: z.int(),
  publicUrl: z.string().nullable(),
  /** Null without a public listener. */
  listen: z.object({ host: z.string(), port: z.int() }).nullable(),
  consoleListen: z.object({ host: z.string(), port: z.int() }).nullable(),
});

export type RunningNote = z.infer<typeof noteSchema>;

/** Longer than a command that only checks for a receiver holds the lock. */
const checkMs = 300;

/**
 * Finds the receiver that uses a data directory. Null for none; `unknown` if its file is missing or not readable. Without
 * a wait, another command that checks at the same moment may count as a receiver. Never rejects.
 */
export async function findRunning(
  dataDir: string,
  waitMs = checkMs,
): Promise<RunningNote | 'unknown' | null> {
  // Does not create the lock file: the receiver could not open a file of another user.
  if (!existsSync(join(dataDir, 'receiver.lock'))) return null;
  try {
    const release = await createAcquireLock(dataDir)('receiver', { waitMs });
    release();
    return null;
  } catch (error) {
    return isAppError(error, 'conflict') ? (readNote(dataDir) ?? 'unknown') : null;
  }
}

/** Describes a running receiver: its process, its addresses, and its start. */
export function runningText(running: RunningNote | 'unknown'): string {
  if (running === 'unknown') return 'unknown process';
  const { pid, startedAtUs, publicUrl, listen, consoleListen } = running;
  const queries = consoleListen === null ? '' : `, queries on ${addressText(consoleListen)}`;
  const url = publicUrl === null ? '' : `${publicUrl}, `;
  const where = listen === null ? 'reading queues' : `listening on ${addressText(listen)}`;
  return `process ${pid}, ${url}${where}${queries}, running since ${shortDateUs(startedAtUs)} UTC`;
}

/** Returns how to stop a running receiver from another terminal. */
function stopText(running: RunningNote | 'unknown'): string {
  return running === 'unknown' ? 'Ctrl-C in its terminal' : `kill ${running.pid}`;
}

/** True if both receivers would listen on the same port of the same address, or one has no public listener. */
export function isSameListener(
  running: RunningNote | 'unknown',
  listen: ListenAddress | null,
): boolean {
  if (running === 'unknown') return false;
  if (running.listen === null || listen === null) return true;
  if (running.listen.port !== listen.port || listen.port === 0) return false;
  const hosts = [running.listen.host, listen.host];
  return new Set(hosts).size === 1 || hosts.some((host) => host === '0.0.0.0' || host === '::');
}

/**
 * Marks the data directory as used by this process. Rejects with `conflict` if another receiver uses it on the same
 * address. A receiver on another address is logged; this process takes over the mark when that one ends. Other failures,
 * such as a full disk, do not stop the start: there is only no mark.
 */
export async function markServed(
  { dataDir, listen, publicUrl, console }: StartConfig,
  { nowUs, pid }: Pick<Io, 'nowUs' | 'pid'>,
  log: Pick<Logger, 'warn' | 'debug'>,
): Promise<{ stop(): Promise<void> }> {
  const stopping = new AbortController();
  const startedAtUs = nowUs();
  const serve = async (waitMs: number) => {
    const release = await createAcquireLock(dataDir)('receiver', {
      waitMs,
      signal: stopping.signal,
    });
    const consoleListen = console?.listen ?? null;
    const addresses = { publicUrl: publicUrl ?? null, listen, consoleListen };
    const note: RunningNote = { pid, startedAtUs, ...addresses };
    try {
      rmSync(noteFile(dataDir), { force: true });
      await writeOwnerOnly(noteFile(dataDir), `${JSON.stringify(note)}\n`);
    } catch (err) {
      log.debug({ err }, 'failed to write receiver.json');
    }
    return () => {
      rmSync(noteFile(dataDir), { force: true });
      release();
    };
  };
  const unmarked = (err: unknown) => {
    if (!stopping.signal.aborted) log.debug({ err }, 'failed to mark the data directory as in use');
    return () => undefined;
  };
  const first = await serve(checkMs).catch((error: unknown) => {
    return isAppError(error, 'conflict') ? null : unmarked(error);
  });
  if (first === null) {
    const running = readNote(dataDir) ?? 'unknown';
    if (isSameListener(running, listen)) throw alreadyServed(dataDir, running);
    log.warn({ running: runningText(running) }, 'another receiver uses this data directory');
  }
  const marked = first ?? serve(Number.POSITIVE_INFINITY).catch(unmarked);
  return {
    stop: async () => {
      stopping.abort();
      (await marked)();
    },
  };
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

const addressText = ({ host, port }: ListenAddress) => `${hostInUrl(host)}:${port}`;

/** Returns null if the file is missing or invalid. */
function readNote(dataDir: string): RunningNote | null {
  try {
    return noteSchema.parse(JSON.parse(readOwnerOnly(noteFile(dataDir)) ?? ''));
  } catch {
    return null;
  }
}

/** Longer than a commit to a slow disk. */
const timeoutMs = 5_000;

interface ReceiverHealth {
  /** `absent`: nothing listens there. `unclear`: not identified as the receiver of these settings. */
  state: 'accepting' | 'refusing' | 'absent' | 'unclear';
  origin: string;
  /** Reason and advice, to complete a sentence, without a full stop. Empty for `accepting`. */
  reason: string;
}

/** Address of a receiver: its public listener, or, without credentials, its private one. */
export interface ProbedAddress extends Pick<Config['health'], 'listen' | 'secure'> {
  credentials: Config['health']['credentials'] | null;
}

/** Checks the receiver with a GET, authenticated on the public listener. Never rejects. */
export async function probeReceiver(
  config: ProbedAddress,
  signal: AbortSignal,
): Promise<ReceiverHealth> {
  const url = urlOf(config);
  const { origin } = url;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const status = await statusOf(url, config, AbortSignal.any([signal, timeout]));
    return { origin, ...resultOf(status, config) };
  } catch (error) {
    if (timeout.aborted) {
      const reason = `the receiver did not answer within ${timeoutMs / 1000} s. Check the log of the receiver`;
      return { state: 'refusing', origin, reason };
    }
    return { origin, ...faultIn(error, config) };
  }
}

/** Resolves with the HTTP status of a GET with the credentials. */
async function statusOf(
  url: URL,
  { secure, credentials }: ProbedAddress,
  signal: AbortSignal,
): Promise<number> {
  const options = {
    headers: credentials === null ? {} : { Authorization: basicLogin(credentials) },
    agent: false,
    rejectUnauthorized: false,
    signal,
  };
  // On demand: an import of node:http also loads `fetch`, in 15 ms and 4 MB.
  const { request } = await (secure ? import('node:https') : import('node:http'));
  return new Promise((resolve, reject) => {
    const sent = request(url, options, (response) => {
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    sent.on('error', reject);
    sent.end();
  });
}

function basicLogin({ username, password }: Config['health']['credentials']): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}

/** Uses loopback for a listener on all addresses. */
function urlOf({ listen: { host, port }, secure, credentials }: ProbedAddress): URL {
  const address = `${hostInUrl(loopbackOf(host))}:${port}`;
  return new URL(
    `${secure ? 'https' : 'http'}://${address}${credentials === null ? '/readyz' : '/notifications'}`,
  );
}

/** Name of the variable with the address. */
function variableOf({ credentials }: ProbedAddress): string {
  return credentials === null ? 'EARSHOT_CONSOLE_LISTEN' : 'EARSHOT_LISTEN';
}

type HealthResult = Omit<ReceiverHealth, 'origin'>;

const otherCredentials: HealthResult = {
  state: 'unclear',
  reason:
    'the receiver has different credentials. Run this command with the settings of the receiver',
};

const results: Readonly<Record<number, HealthResult>> = {
  200: { state: 'accepting', reason: '' },
  401: otherCredentials,
  429: otherCredentials,
  503: {
    state: 'refusing',
    reason:
      'the receiver cannot store notifications. Check the log of the receiver, and run `earshot doctor`',
  },
};

function resultOf(status: number, address: ProbedAddress): HealthResult {
  const reason = `another program answers at this address (HTTP status ${status}). Check ${variableOf(address)}`;
  return results[status] ?? { state: 'unclear', reason };
}

function faultIn(error: unknown, address: ProbedAddress): HealthResult {
  const platform = errorCodeOf(error);
  const { code } = faultOf(platform);
  const state =
    code === 'connection-refused' ? 'absent' : code === 'wrong-protocol' ? 'refusing' : 'unclear';
  const step = `Start the receiver; if it runs, check its log, ${variableOf(address)} and EARSHOT_TLS`;
  return { state, reason: `${clauseOf(platform)}. ${step}` };
}
