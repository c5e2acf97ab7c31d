/** Runs one command of the real program as a child process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { onTestFinished } from 'vitest';
import { bareEnvironment } from './bare-environment.ts';

export interface SpawnedCommand {
  child: ChildProcess;
  /** Returns everything written to stdout, or to stderr, so far. */
  out(): string;
  err(): string;
  kill(): void;
  /** Interrupts it, as Ctrl-C does. */
  interrupt(): void;
  /** Code null when it was killed. */
  ended: Promise<{ code: number | null; out: string; err: string }>;
}

/** Returns a function that returns everything that was printed to these streams so far. */
export function printedBy(...streams: readonly (Readable | null)[]): () => string {
  let text = '';
  for (const stream of streams)
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  return () => text;
}

/** Starts a command in a folder, with only the given environment. */
export function spawnCommand(
  argv: readonly string[],
  options: { env: Record<string, string>; cwd: string },
): SpawnedCommand {
  const program = join(import.meta.dirname, '../../scripts/earshot.js');
  const child = spawn(process.execPath, [program, ...argv], {
    cwd: options.cwd,
    env: bareEnvironment(options.env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [out, err] = [printedBy(child.stdout), printedBy(child.stderr)];
  const ended = new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    child.on('close', (code) => resolve({ code, out: out(), err: err() }));
  });
  return {
    ...{ child, ended, out, err },
    kill: () => void child.kill('SIGKILL'),
    interrupt: () => void child.kill('SIGINT'),
  };
}
