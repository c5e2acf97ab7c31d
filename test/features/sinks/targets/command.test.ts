/** Commands: their input, their exit codes, and their timeouts. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createRunProgram } from '../../../../src/core/host/run-program.ts';
import { recordingLog } from '../../../helpers/recording-log.ts';
import { temporaryDirectory } from '../../../helpers/temporary-directory.ts';
import { openSinkContext, openTestTarget } from '../sink-context.ts';
import { definition } from '../sink-definition.ts';
import { sinkDocument } from '../sink-items.ts';

/**
 * Writes a Node program in which `input` is its standard input. Returns its command and its folder.
 */
function script(body: string) {
  const folder = temporaryDirectory();
  const file = join(folder, 'act.cjs');
  const text = `const fs = require('node:fs'); const input = fs.readFileSync(0, 'utf8');\n${body}\n`;
  writeFileSync(file, text);
  return { folder, file, command: [process.execPath, file, folder] };
}

/** Delivers a long document to a command. Returns the answer, and what was logged. */
async function deliver(command: string[], timeoutMs = 10_000) {
  const { log: logger, lines } = recordingLog();
  const target = openTestTarget({ kind: 'command', command }, { timeoutMs, logger });
  const item = { ...sinkDocument, value: { padding: 'x'.repeat(500_000) } };
  return { answer: await target.deliver(item, new AbortController().signal), lines };
}

/** Processes of the file `pids` that have not ended. */
function alivePids(folder: string): number[] {
  const file = join(folder, 'pids');
  const pids = existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ').map(Number) : [];
  return pids.filter((pid) => {
    // A process that ended but was not waited for is a zombie, and can still be signalled.
    const state = existsSync(`/proc/${pid}/stat`) && readFileSync(`/proc/${pid}/stat`, 'utf8');
    return state !== false && !/\) Z /.test(state);
  });
}

describe('a command', () => {
  it('receives one line of JSON per item, and no secret of earshot in its environment', async () => {
    process.env.EARSHOT_ACCOUNT_PASSWORD = 'hunter2';
    onTestFinished(() => void delete process.env.EARSHOT_ACCOUNT_PASSWORD);
    process.env.NODE_COMPILE_CACHE ??= join(temporaryDirectory(), 'compiled');
    const { folder, command } = script(
      `fs.writeFileSync(process.argv[2] + '/env', JSON.stringify(process.env));
       fs.appendFileSync(process.argv[2] + '/got', input);`,
    );
    const { accept, start, isDone } = await openSinkContext();
    for (let i = 0; i < 3; i += 1) await accept({ padding: 'x'.repeat(100_000) });
    start(definition({ kind: 'command', command }, { concurrency: 1 }));
    await expect.poll(() => isDone()).toBe(true);
    const lines = readFileSync(join(folder, 'got'), 'utf8').trimEnd().split('\n');
    const got = lines.map((line) => JSON.parse(line));
    expect(got).toMatchObject([{ position: 1 }, { position: 2 }, { position: 3 }]);
    expect(got[0]).toMatchObject({ productId: 'product-1', value: { Id: 'product-1' } });
    const environment = readFileSync(join(folder, 'env'), 'utf8');
    expect(environment).toContain('PATH');
    expect(environment).not.toContain('EARSHOT_');
    // The folder of our own compiled code.
    expect(environment).not.toContain('NODE_COMPILE_CACHE');
  });

  it.each<[string, kind: string, reason?: string]>([
    ['exit 0', 'acknowledged'],
    [
      "printf 'Traceback\\nno such \\033[31mtable' >&2; exit 1",
      'refused',
      'it ended with exit code 1: no such \\u001b[31mtable',
    ],
    ['exit 75', 'unavailable', 'it requested a retry (exit code 75)'],
    ['kill -9 $$', 'unavailable', 'it was killed by SIGKILL'],
  ])('that ends by `%s` without reading its input is %s', async (line, kind, reason) => {
    const { answer } = await deliver(['sh', '-c', line]);
    expect(answer).toMatchObject({ kind, ...(reason !== undefined && { reason }) });
  });

  it('that is missing or not executable is misconfigured', async () => {
    const { folder, file } = script('');
    for (const [program, code] of [
      [join(folder, 'gone'), 'ENOENT'],
      [file, 'EACCES'],
    ] as const) {
      const reason = expect.stringContaining(`cannot be started (${code})`);
      expect((await deliver([program])).answer).toEqual({ kind: 'misconfigured', reason });
    }
  });

  it('has its output in the log, the last 4,096 characters of each stream', async () => {
    const { command } = script(
      `process.stdout.write('x'.repeat(100_000) + 'end of output'); console.error('some words');`,
    );
    const stdout = `${'x'.repeat(4_096 - 13)}end of output`;
    const { lines } = await deliver(command);
    const fields = { sink: 'sink', id: 'n_1_a', stdout, stderr: 'some words' };
    expect(lines).toMatchObject([{ fields }]);
  });

  it('that hangs is killed at the timeout, with all its child processes', async () => {
    const { folder, command } = script(
      `process.on('SIGTERM', () => fs.writeFileSync(process.argv[2] + '/asked', ''));
       const child = require('node:child_process').spawn('sleep', ['1000'], { stdio: 'inherit' });
       fs.writeFileSync(process.argv[2] + '/pids', process.pid + ' ' + child.pid);
       setInterval(() => {}, 1000);`,
    );
    const { answer } = await deliver(command, 1_000);
    expect(answer).toMatchObject({ kind: 'unavailable', reason: 'it did not end in time' });
    expect(existsSync(join(folder, 'asked'))).toBe(true);
    await expect.poll(() => alivePids(folder)).toEqual([]);
  });

  it.each(['exit 0', 'exit 1', 'kill -9 $$'])(
    'that ends by `%s` leaves no process behind',
    async (end) => {
      const folder = temporaryDirectory();
      const grandchild = `sleep 1000 & printf "$! " >> ${folder}/pids`;
      const line = `sleep 1000 & printf "$! " >> ${folder}/pids; sh -c '${grandchild}'; ${end}`;
      await deliver(['sh', '-c', line]);
      expect(readFileSync(join(folder, 'pids'), 'utf8').trim().split(' ')).toHaveLength(2);
      await expect.poll(() => alivePids(folder)).toEqual([]);
    },
  );

  it('is killed with its child processes when the receiver exits', async () => {
    const folder = temporaryDirectory();
    const callbacks: (() => void)[] = [];
    const onExit = (callback: () => void) => callbacks.push(callback);
    const run = createRunProgram({ env: process.env, onExit });
    const command = ['sh', '-c', `sleep 1000 & echo $$ $! > ${folder}/pids; wait`];
    const signal = new AbortController().signal;
    const ended = run(command, '', { timeoutMs: 600_000, signal });
    await expect.poll(() => alivePids(folder)).toHaveLength(2);
    for (const callback of callbacks) callback();
    expect(await ended).toMatchObject({ signal: 'SIGKILL', timedOut: false });
    await expect.poll(() => alivePids(folder)).toEqual([]);
  });
});
