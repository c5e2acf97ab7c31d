/** Runs a program of the user, for sinks and alerts, with a text on its standard input and with limits. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { kill } from 'node:process';
import type { Readable, Writable } from 'node:stream';
import { type Io, pause } from '../cli/io.ts';

/** Result of a program. */
export interface ProgramEnd {
  /** Null if a signal ended it. */
  exitCode: number | null;
  /** For example `SIGKILL`; null if the program exited. */
  signal: string | null;
  /** True if the timeout ended it. */
  timedOut: boolean;
  /** The last 4,096 characters of its standard output. */
  stdout: string;
  /** The last 4,096 characters of its standard error. */
  stderr: string;
}

/**
 * Runs a program, without a shell, with a text on its standard input. After the timeout, or if the signal is aborted,
 * ends it and then resolves. Child processes end with the program. Rejects with Node's error if the program cannot be started.
 */
export type RunProgram = (
  command: readonly string[],
  stdin: string,
  options: { timeoutMs: number; signal: AbortSignal },
) => Promise<ProgramEnd>;

/** Number of characters of standard output and of standard error that are kept, from the end. */
const outputCharactersMax = 4_096;
/** Time between SIGTERM and SIGKILL. */
const graceMs = 2_000;
/** Time after SIGKILL; then a program that cannot be ended, because it runs as another user, is abandoned. */
const abandonAfterMs = 1_000;
/** Maximum time to read output after the exit: a process outside of the group may keep it open. */
const outputGraceMs = 200;

/** Variables that earshot itself sets: the folder of its compiled code, and the name it was called by. */
const ownNames: readonly string[] = ['NODE_COMPILE_CACHE', 'earshot_called_as'];

/**
 * The program gets the environment without the variables of earshot, which contain secrets, and its own process group.
 * After the timeout, the group gets SIGTERM, and SIGKILL after two seconds. A second later, this resolves in any case.
 * The group also gets SIGKILL when the program ends, and when this process exits.
 */
export function createRunProgram({
  env,
  onExit,
}: {
  env: Readonly<Record<string, string | undefined>>;
  /** Registers a callback for the exit of this process. */
  onExit?: (callback: () => void) => void;
}): RunProgram {
  const running = new Set<Child>();
  onExit?.(() => {
    for (const child of running) signalGroup(child, 'SIGKILL');
  });
  const passedOn = Object.entries(env).filter(
    ([name]) => !name.startsWith('EARSHOT_') && !ownNames.includes(name),
  );
  const options = { env: Object.fromEntries(passedOn), detached: true };
  // `async` turns errors that `spawn` throws into rejections, like all others.
  return async ([program = '', ...args], stdin, limits) => {
    const child = spawn(program, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
    // The program may end without reading all input.
    child.stdin.on('error', () => undefined);
    child.stdin.end(stdin);
    running.add(child);
    return endOf(child, limits).finally(() => running.delete(child));
  };
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Sends a signal to a program and its child processes. */
function signalGroup({ pid }: Child, name: 'SIGTERM' | 'SIGKILL'): void {
  try {
    if (pid !== undefined) kill(-pid, name);
  } catch {
    // Already ended, or of another user.
  }
}

async function endOf(child: Child, limits: Parameters<RunProgram>[2]): Promise<ProgramEnd> {
  const { promise, resolve, reject } = Promise.withResolvers<ProgramEnd>();
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] = (output[name] + text).slice(-outputCharactersMax);
    });
  }
  let timedOut = false;
  const ended = new AbortController();
  const stop = async () => {
    signalGroup(child, 'SIGTERM');
    await pause(graceMs, ended.signal);
    if (ended.signal.aborted) return;
    signalGroup(child, 'SIGKILL');
    await pause(abandonAfterMs, ended.signal);
    if (ended.signal.aborted) return;
    child.unref();
    resolve({ exitCode: null, signal: null, timedOut: true, ...output });
  };
  const timeout = setTimeout(() => {
    timedOut = true;
    void stop();
  }, limits.timeoutMs);
  limits.signal.addEventListener('abort', stop, { signal: ended.signal });
  if (limits.signal.aborted) void stop();
  // A running program that cannot be signalled still emits `exit`.
  child.on('error', (error) => child.pid === undefined && reject(error));
  child.on('exit', (exitCode, signal) => {
    ended.abort();
    // Ends the remaining child processes.
    signalGroup(child, 'SIGKILL');
    const done = () => {
      clearTimeout(late);
      resolve({ exitCode, signal, timedOut, ...output });
    };
    const late = setTimeout(done, outputGraceMs);
    child.on('close', done);
  });
  return promise.finally(() => {
    clearTimeout(timeout);
    ended.abort();
    for (const part of [child.stdin, child.stdout, child.stderr]) part.destroy();
  });
}

/** Returns null if the program can be executed; otherwise the reason, to follow "… cannot be run: ". */
export type FindProgram = (program: string) => string | null;

/** Searches by path if there is a slash, otherwise in the folders of PATH. */
export function createFindProgram({
  env,
  workingDir,
}: Pick<Io, 'env' | 'workingDir'>): FindProgram {
  const isExecutable = (path: string) => {
    try {
      accessSync(path, constants.X_OK);
      return statSync(path).isFile();
    } catch {
      return false;
    }
  };
  return (program) => {
    const folders = program.includes('/') ? [''] : (env.PATH ?? '').split(delimiter);
    const paths = folders.map((folder) => resolve(workingDir, join(folder, program)));
    return paths.some(isExecutable) ? null : 'there is no executable file of this name';
  };
}
