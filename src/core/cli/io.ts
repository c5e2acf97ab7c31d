/** Input and output of commands. The only file that reads `process`. */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { noSettings, type Settings } from '../config/load.ts';
import type { Feature } from '../feature.ts';
import { AppError, errorText } from '../terms/app-error.ts';

/** Output stream. */
export interface Output {
  write(chunk: string | Uint8Array): boolean;
  once(event: 'drain', listener: () => void): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Everything that a command uses of its process, except the files that its settings name. */
export interface Io {
  stdout: Output;
  /** Messages for people, and the log. */
  stderr: Output;
  env: Readonly<Record<string, string | undefined>>;
  /** Names of the variables set by the file `.env`; by default none. */
  envFileNames?: ReadonlySet<string>;
  readFile: (path: string) => string;
  /** Microseconds since 1970, UTC. */
  nowUs: () => number;
  newId: () => string;
  /** 256 random bits in letters, digits, `-` and `_`. */
  newSecret: () => string;
  /** A number in [0, 1), for jitter. */
  random: () => number;
  fetch: typeof fetch;
  pid: number;
  /** Folder of `earshot.config.ts`. */
  workingDir: string;
  /** The features of the program. */
  features: readonly Feature[];
  /** Variables and sections of all features; complete before a command runs. */
  settings: Settings;
  /**
   * Asks the user; resolves with null without a terminal. A hidden answer is not echoed. Rejects with `cancelled` at
   * Ctrl-C and Ctrl-D.
   */
  ask: (question: string, how?: { hidden: boolean }) => Promise<string | null>;
  /** Aborted when the user or the system asks the program to stop. */
  signal: AbortSignal;
  /** Ends the process at once, without closing anything. */
  exit: (code: number) => void;
  /** Registers a callback for the exit of the process. */
  onExit?: (callback: () => void) => void;
}

/** Two signals within this time are one request to stop. */
const sameSignalMs = 300;

/** Creates the Io of the process. Reads `.env` if it exists; variables that are already set win. */
export function createProcessIo(features: readonly Feature[]): Io {
  // Files are readable by their owner only.
  process.umask(0o077);
  const envFileNames = loadEnvironmentFile();
  const stop = new AbortController();
  let stopAskedAtMs = 0;
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      // A second signal ends the process without waiting for open requests. A signal within 300 ms is the same
      // Ctrl-C: the terminal sends it to npm and to this process, and npm forwards it.
      if (!stop.signal.aborted) stopAskedAtMs = performance.now();
      else if (performance.now() - stopAskedAtMs > sameSignalMs) process.exit(1);
      stop.abort(name);
    });
  }
  // `earshot query | head`: a closed pipe is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`earshot: The output cannot be written: ${errorText(error)}.\n`);
    process.exit(1);
  });
  // A closed log stream must not end a receiver.
  process.stderr.on('error', () => undefined);
  return {
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    envFileNames,
    readFile: (path) => readFileSync(path, 'utf8'),
    nowUs: () => Date.now() * 1000,
    newId: randomUUID,
    newSecret: () => randomBytes(32).toString('base64url'),
    random: Math.random,
    fetch: (...request) => fetch(...request),
    pid: process.pid,
    workingDir: process.cwd(),
    features,
    settings: noSettings,
    ask: (question, { hidden } = { hidden: false }) => ask(question, hidden, stop.signal),
    signal: stop.signal,
    exit: (code) => process.exit(code),
    onExit: (callback) => process.on('exit', callback),
  };
}

async function ask(question: string, hidden: boolean, signal: AbortSignal): Promise<string | null> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return null;
  const output = hidden ? new Writable({ write: (_chunk, _encoding, done) => done() }) : stderr;
  const terminal = createInterface({ input: stdin, output, terminal: true });
  // Printed only after the interface has disabled the terminal's echo.
  if (hidden) stderr.write(question);
  // Ctrl-D closes the interface without ending the question.
  const closed = new AbortController();
  terminal.on('close', () => closed.abort());
  try {
    return await terminal.question(hidden ? '' : question, {
      signal: AbortSignal.any([signal, closed.signal]),
    });
  } catch (cause) {
    throw new AppError('cancelled', 'Cancelled at the prompt. Nothing was changed.', { cause });
  } finally {
    terminal.close();
    if (hidden) stderr.write('\n');
  }
}

/** Loads `.env`, and returns the names of the variables that it set. */
function loadEnvironmentFile(): ReadonlySet<string> {
  const before = new Set(Object.keys(process.env));
  if (!existsSync('.env')) return new Set();
  try {
    process.loadEnvFile('.env');
    return new Set(Object.keys(process.env).filter((name) => !before.has(name)));
  } catch (cause) {
    const reason = errorText(cause);
    process.stderr.write(
      `earshot: the file .env cannot be read: ${reason}. Fix the file, or move it to another folder.\n`,
    );
    process.exit(2);
  }
}

/** Resolves when the signal is aborted. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Resolves after a time, or at once when the signal is aborted. Never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch {
    // Aborted: the caller checks the signal.
  }
}

const timedOut = Symbol();

/** Resolves as the work does, or after a time with the result of `onTimeout`, which may throw and is only called then. */
export async function within<Value, Late>(
  ms: number,
  work: Promise<Value>,
  onTimeout: () => Late,
): Promise<Value | Awaited<Late>> {
  const done = new AbortController();
  const timeout = pause(ms, done.signal).then(() => timedOut);
  const first = await Promise.race([work, timeout]).finally(() => done.abort());
  return first === timedOut ? await onTimeout() : (first as Value);
}

/** Creates a `fetch` that rejects open and new requests with `cancelled` once the signal is aborted. */
export function createStoppableFetch(io: Pick<Io, 'fetch' | 'signal'>): typeof fetch {
  const { fetch: send, signal } = io;
  return async (input, init) => {
    if (signal.aborted) throw stopped();
    const own = typeof input === 'object' && 'signal' in input ? input.signal : init?.signal;
    const signals = own ? [signal, own] : [signal];
    try {
      return await send(input, { ...init, signal: AbortSignal.any(signals) });
    } catch (error) {
      throw signal.aborted ? stopped() : error;
    }
  };
}

/** The error of a command that a signal has stopped. */
export function stopped(): AppError {
  return new AppError(
    'cancelled',
    'Stopped. Completed work is kept. Run the same command again to continue.',
  );
}

/** Differences below this are ignored: `Date` has whole seconds, and an answer takes time. */
const toleranceUs = 5_000_000;

/** Follows the `Date` header of a service's answers (RFC 9110, 6.6.1). */
export function createServiceClock(own: Pick<Io, 'nowUs' | 'fetch'>): typeof own {
  let offsetUs = 0;
  return {
    /** Returns the time of the service; the local time before its first answer. */
    nowUs: () => own.nowUs() + offsetUs,
    /** Reads the time from each answer. */
    fetch: async (...request) => {
      const response = await own.fetch(...request);
      const dateMs = Date.parse(response.headers.get('date') ?? '');
      if (Number.isNaN(dateMs)) return response;
      const differenceUs = dateMs * 1000 - own.nowUs();
      offsetUs = Math.abs(differenceUs) < toleranceUs ? 0 : differenceUs;
      return response;
    },
  };
}
