/** What a command may touch of the world; the one file in which the process itself is read. */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { createInterface } from 'node:readline/promises';

/** A stream for people or programs. */
export interface Output {
  write(chunk: string | Uint8Array): boolean;
  once(event: 'drain', listener: () => void): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Everything a command reads or does outside its own memory and the files it is told of. */
export interface Io {
  stdout: Output;
  stderr: Output;
  env: Readonly<Record<string, string | undefined>>;
  readFile: (path: string) => string;
  /** Microseconds since 1970, UTC. */
  nowUs: () => number;
  newId: () => string;
  /** 256 random bits in letters, digits, `-` and `_`. */
  newSecret: () => string;
  /** A number in [0, 1), for jitter. */
  random: () => number;
  fetch: typeof fetch;
  /** The addresses of this machine's network interfaces, those of its loopback too. */
  localAddresses: () => string[];
  /** Where `earshot.config.ts` is looked for. */
  workingDir: string;
  /** Asks the user on the terminal; null when there is none to ask on. */
  ask: (question: string) => Promise<string | null>;
  /** Aborted when the user, or the system, asks the program to end. */
  signal: AbortSignal;
  /** Ends the process at once, whatever is still open. */
  exit: (code: number) => void;
}

/** The real world. Reads `.env` when there is one; what is set already wins. */
export function createProcessIo(): Io {
  // Whatever is written is for the one who runs earshot.
  process.umask(0o077);
  loadEnvironmentFile();
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      // Asked a second time: somebody does not want to wait for the end of the drain.
      if (stop.signal.aborted) process.exit(1);
      stop.abort(name);
    });
  }
  // `earshot query | head`: the reader has gone, which is no failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : 1);
  });
  // A log that nobody reads any more must not end a receiver.
  process.stderr.on('error', () => undefined);
  return {
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    readFile: (path) => readFileSync(path, 'utf8'),
    nowUs: () => Date.now() * 1000,
    newId: randomUUID,
    newSecret: () => randomBytes(32).toString('base64url'),
    random: Math.random,
    fetch: (...request) => fetch(...request),
    localAddresses: () =>
      Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address)),
    workingDir: process.cwd(),
    ask: (question) => ask(question, stop.signal),
    signal: stop.signal,
    exit: (code) => process.exit(code),
  };
}

async function ask(question: string, signal: AbortSignal): Promise<string | null> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return null;
  const terminal = createInterface({ input: stdin, output: stderr });
  try {
    return await terminal.question(question, { signal });
  } catch {
    // Ctrl-C, or Ctrl-D: nothing was answered.
    return '';
  } finally {
    terminal.close();
  }
}

function loadEnvironmentFile(): void {
  if (!existsSync('.env')) return;
  try {
    process.loadEnvFile('.env');
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    process.stderr.write(
      `earshot: the file .env cannot be read: ${reason}. Put it right or move it away.\n`,
    );
    process.exit(2);
  }
}
