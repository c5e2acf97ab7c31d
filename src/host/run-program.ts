/** Runs a program of the user's, as sinks and alerts ask for it: a text on its standard input, within bounds. */
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { kill } from 'node:process';
import type { Readable, Writable } from 'node:stream';

/** How a program ended. */
export interface ProgramEnd {
  /** Null when a signal ended it. */
  exitCode: number | null;
  /** Such as `SIGKILL`; null when it ended by itself. */
  signal: string | null;
  /** Whether its time was up. */
  timedOut: boolean;
  /** The last 4,096 characters of its standard output. */
  stdout: string;
  /** The last 4,096 characters of its standard error. */
  stderr: string;
}

/**
 * Runs a program, without a shell, and gives it a text on its standard input. When the time is up or the signal
 * is aborted, it and the programs that it started are ended; resolves after that. Rejects when it cannot be
 * started, with Node's error.
 */
export type RunProgram = (
  command: readonly string[],
  stdin: string,
  options: { timeoutMs: number; signal: AbortSignal },
) => Promise<ProgramEnd>;

/** Characters of its standard output, and of its standard error, that are kept: the last ones. */
const outputCharactersMax = 4_096;
/** Between asking a program to end and ending it. */
const graceMs = 2_000;
/** From SIGKILL on: one that may not be ended, as it runs as another user, is left to itself then. */
const leaveAfterMs = 1_000;
/** What it started may hold its output open permanently. */
const lastWordsMs = 200;

/** Set by the program itself: the folder of its compiled code, and the form in which the user called it. */
const ownNames: readonly string[] = ['NODE_COMPILE_CACHE', 'earshot_called_as'];

/**
 * The program gets the environment without the variables of earshot, which hold secrets, and leads a process
 * group of its own: when its time is up, all of the group get SIGTERM, and SIGKILL after two seconds. A second
 * later this resolves whatever became of it.
 */
export function createRunProgram(
  { env }: { env: Readonly<Record<string, string | undefined>> },
  sendSignal: SendSignal = kill,
): RunProgram {
  const passedOn = Object.entries(env).filter(
    ([name]) => !name.startsWith('EARSHOT_') && !ownNames.includes(name),
  );
  const ownEnv = Object.fromEntries(passedOn);
  // Some failures to start are thrown at once: whoever calls sees them as rejections, like the others.
  return async ([program = '', ...args], stdin, limits) => {
    const child = spawn(program, args, {
      env: ownEnv,
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    // It may end without reading all that it is given.
    child.stdin.on('error', () => undefined);
    child.stdin.end(stdin);
    return endOf(child, limits, sendSignal);
  };
}

/** Throws where the process is gone, or belongs to somebody else. */
type SendSignal = (pid: number, signal: 'SIGTERM' | 'SIGKILL') => unknown;

function endOf(
  child: ChildProcessByStdio<Writable, Readable, Readable>,
  limits: Parameters<RunProgram>[2],
  sendSignal: SendSignal,
): Promise<ProgramEnd> {
  return new Promise((resolve, reject) => {
    const output = { stdout: '', stderr: '' };
    const leave = () => {
      for (const part of [child.stdin, child.stdout, child.stderr]) part.destroy();
      child.unref();
      resolve({ exitCode: null, signal: null, timedOut: true, ...output });
    };
    const ending = endInTime(child, limits, { sendSignal, leave });
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] = (output[name] + text).slice(-outputCharactersMax);
      });
    }
    child.on('error', (error) => {
      // One that runs and cannot be told to end still says how it ended.
      if (child.pid !== undefined) return;
      ending.clear();
      reject(error);
    });
    child.on('exit', (exitCode, signal) => {
      ending.clear();
      const done = () => {
        clearTimeout(timer);
        child.stdout.destroy();
        child.stderr.destroy();
        resolve({ exitCode, signal, timedOut: ending.timedOut(), ...output });
      };
      const timer = setTimeout(done, lastWordsMs);
      child.on('close', done);
    });
  });
}

function endInTime(
  child: ChildProcess,
  { timeoutMs, signal }: Parameters<RunProgram>[2],
  { sendSignal, leave }: { sendSignal: SendSignal; leave: () => void },
) {
  let timedOut = false;
  let last: NodeJS.Timeout | undefined;
  const killGroup = (name: 'SIGTERM' | 'SIGKILL') => {
    if (child.pid === undefined) return;
    try {
      sendSignal(-child.pid, name);
    } catch {
      // Gone already, or not ours to end.
    }
  };
  const killAll = () => {
    killGroup('SIGKILL');
    last = setTimeout(leave, leaveAfterMs);
  };
  const end = () => {
    if (last !== undefined) return;
    killGroup('SIGTERM');
    last = setTimeout(killAll, graceMs);
  };
  const timer = setTimeout(() => {
    timedOut = true;
    end();
  }, timeoutMs);
  signal.addEventListener('abort', end);
  if (signal.aborted) end();
  return {
    timedOut: () => timedOut,
    clear: () => {
      clearTimeout(timer);
      clearTimeout(last);
      signal.removeEventListener('abort', end);
      // What it started and left behind ends with it, where its time was up.
      if (last !== undefined) killGroup('SIGKILL');
    },
  };
}
