/** The receiver that serves a data directory: a lock that ends with its process, and a note that names it. */
import { existsSync, rmSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { join } from 'node:path';
import { z } from 'zod';
import type { Config, ServeConfig } from '../config/config.ts';
import { AppError, errorCodeOf, isAppError } from '../domain/app-error.ts';
import { shortDateUs } from '../domain/dates.ts';
import type { Logger } from '../domain/ports.ts';
import { readOwnerOnly, writeOwnerOnly } from '../host/files.ts';
import { hostInUrl, type ListenAddress, loopbackOf } from '../http/network-address.ts';
import { createAcquireLock } from '../store/engine/locks.ts';
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
    const release = await createAcquireLock(dataDir)('receiver', { waitMs: checkMs });
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
  const queries = consoleListen === null ? '' : `, queries on ${addressText(consoleListen)}`;
  const url = publicUrl === null ? '' : `${publicUrl}, `;
  return `process ${pid}, ${url}listening on ${addressText(listen)}${queries}, running since ${shortDateUs(startedAtUs)} UTC`;
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

/** More than a commit to a slow disk takes. */
const timeoutMs = 5_000;

interface AskedReceiver {
  /** `absent`: nothing listens there. `unclear`: something does that is not the receiver we know. */
  state: 'takes' | 'refuses' | 'absent' | 'unclear';
  origin: string;
  /** Why it takes none, and what to do: the rest of a sentence, without its full stop. Blank when it takes them. */
  reason: string;
}

/** Resolves in any case. */
export async function askReceiver(
  config: Config['health'],
  signal: AbortSignal,
): Promise<AskedReceiver> {
  const url = urlOf(config);
  const { origin } = url;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const status = await statusOf(url, config, AbortSignal.any([signal, timeout]));
    return { origin, ...meaningOf(status) };
  } catch (error) {
    if (timeout.aborted) {
      const reason = `it did not answer within ${timeoutMs / 1000} s. Look into its log`;
      return { state: 'refuses', origin, reason };
    }
    return { origin, ...faultIn(error) };
  }
}

/** Resolves with the status of a GET with the credentials. */
function statusOf(
  url: URL,
  { secure, credentials }: Config['health'],
  signal: AbortSignal,
): Promise<number> {
  const { username, password } = credentials;
  const login = Buffer.from(`${username}:${password}`, 'utf8').toString('base64');
  const options = {
    headers: { Authorization: `Basic ${login}` },
    agent: false,
    rejectUnauthorized: false,
    signal,
  };
  return new Promise((resolve, reject) => {
    const sent = (secure ? requestHttps : requestHttp)(url, options, (response) => {
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** A listener on all addresses is asked on loopback. */
function urlOf({ listen: { host, port }, secure }: Config['health']): URL {
  const address = `${hostInUrl(loopbackOf(host))}:${port}`;
  return new URL(`${secure ? 'https' : 'http'}://${address}/notifications`);
}

type Answer = Omit<AskedReceiver, 'origin'>;

const otherCredentials: Answer = {
  state: 'unclear',
  reason: 'it accepts other credentials. Run this with the settings of the receiver',
};

const meanings: Readonly<Record<number, Answer>> = {
  200: { state: 'takes', reason: '' },
  401: otherCredentials,
  429: otherCredentials,
  503: {
    state: 'refuses',
    reason: 'it cannot store anything. Its log tells why; `earshot doctor` looks at the disk',
  },
};

function meaningOf(status: number): Answer {
  const reason = `what answers there (HTTP status ${status}) is not the receiver. Check EARSHOT_LISTEN`;
  return meanings[status] ?? { state: 'unclear', reason };
}

function faultIn(error: unknown): Answer {
  const code = errorCodeOf(error);
  if (code === 'ECONNREFUSED') {
    const reason = 'nothing listens there. Start it, or check EARSHOT_LISTEN';
    return { state: 'absent', reason };
  }
  if (/^(EPROTO|ERR_SSL_|ERR_TLS_)/.test(code)) {
    const reason = `no HTTPS there (${code}): it has no certificate yet, or EARSHOT_TLS is another one here. Look into its log`;
    return { state: 'refuses', reason };
  }
  const reason = `the connection failed (${code}). Check EARSHOT_LISTEN and EARSHOT_TLS, and look into its log`;
  return { state: 'unclear', reason };
}
