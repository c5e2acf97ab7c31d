/** Short versions of all attacks on a running receiver. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { bareEnvironment } from '../helpers/bare-environment.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';
import { scanner } from './scan.ts';

const script = join(import.meta.dirname, '../../scripts/bench.js');
// Only Linux answers on every address of 127.0.0.0/8 by default.
const isLinux = process.platform === 'linux';

/** Runs an attack, which must do no harm. Returns its report. */
async function reportOf(...words: string[]): Promise<ReturnType<typeof JSON.parse>> {
  const folder = temporaryDirectory();
  const argv = [script, 'attack', ...words, '--dir', folder, '--json'];
  const child = spawn(process.execPath, argv, { env: bareEnvironment({}) });
  onTestFinished(() => void child.kill('SIGTERM'));
  const [stdout, stderr, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  expect(stderr).toBe('');
  const report = JSON.parse(stdout);
  expect(report.faults).toEqual([]);
  expect(exitCode).toBe(0);
  return report;
}

it.runIf(isLinux)(
  'fuzzed requests: every valid push among them is stored once',
  async () => {
    const requests = times(500, 2_000);
    const { rows, pushes } = await reportOf('fuzz', '--requests', `${requests}`, '--seed', '1');
    const [https, plain] = rows;
    expect([https.requests, plain.requests]).toEqual([requests * 0.8, requests * 0.2]);
    expect(https.pushes + plain.pushes).toBeGreaterThan(requests / 10);
    const [first, second] = pushes;
    expect(first.stored + second.stored).toBeGreaterThan(https.pushes + plain.pushes + 5);
  },
  240_000,
);

it.runIf(isLinux)(
  'slow connections delay no pushes and are all closed',
  async () => {
    const { rows } = await reportOf('slow', '--connections', '500', '--seconds', '3');
    expect(rows).toHaveLength(4);
    for (const { opened, openMax, answered } of rows) {
      expect(opened).toBeGreaterThanOrEqual(500);
      expect(openMax).toBeGreaterThan(300);
      expect(answered).toBeGreaterThan(5);
    }
  },
  240_000,
);

const why = scanner === undefined ? ' (skipped: testssl.sh is not installed)' : '';
it.skipIf(scanner === undefined)(
  `testssl.sh finds no problem${why}`,
  async () => {
    const { counts } = await reportOf('scan', '--quick');
    expect(counts.OK).toBeGreaterThan(10);
  },
  400_000,
);
