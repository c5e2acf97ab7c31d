/** Runs an attack like a user, and reads its report. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { bareEnvironment } from '../helpers/bare-environment.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const script = join(import.meta.dirname, '../../scripts/bench.js');

export interface AttackRun {
  exitCode: number;
  /** Output of `--json`; an empty object when there is none. */
  report: ReturnType<typeof JSON.parse>;
  stdout: string;
  stderr: string;
}

/** Runs an attack. The attack and its child processes are stopped at the end of the test. */
export async function runAttack(...words: string[]): Promise<AttackRun> {
  const folder = temporaryDirectory();
  const child = spawn(process.execPath, [script, 'attack', ...words, '--dir', folder, '--json'], {
    env: bareEnvironment({}),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGTERM'));
  const [stdout, stderr, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  const report = stdout.startsWith('{') ? JSON.parse(stdout) : {};
  return { exitCode, report, stdout, stderr };
}
