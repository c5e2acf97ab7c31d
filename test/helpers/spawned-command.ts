/** Runs one command of the real program as a child process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
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
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const ended = new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
    child.on('close', (code) => resolve({ code, out, err }));
  });
  return {
    ...{ child, ended, out: () => out, err: () => err },
    kill: () => void child.kill('SIGKILL'),
    interrupt: () => void child.kill('SIGINT'),
  };
}
