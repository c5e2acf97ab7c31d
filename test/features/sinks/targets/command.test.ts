/** Commands: their input, their exit codes, and their timeouts. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createRunProgram } from '../../../../src/core/host/run-program.ts';
import { temporaryDirectory } from '../../../helpers/temporary-directory.ts';
import { openSinkContext } from '../sink-context.ts';
import { definition } from '../sink-definition.ts';
import { createVirtualTime } from '../virtual-time.ts';

/**
 * Writes a Node program in which `input` is its standard input. Returns its command and its folder.
 */
function script(body: string) {
  const folder = temporaryDirectory();
  const file = join(folder, 'act.cjs');
  const text = `const fs = require('node:fs'); const input = fs.readFileSync(0, 'utf8');\n${body}\n`;
  writeFileSync(file, text);
  const command = [process.execPath, file, folder];
  return { folder, target: { kind: 'command', command } as const };
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

const keepInput = `fs.appendFileSync(process.argv[2] + '/got', input);`;

describe('a command', () => {
  it('receives one line of JSON per item, and no secret of earshot in its environment', async () => {
    process.env.EARSHOT_ACCOUNT_PASSWORD = 'hunter2';
    onTestFinished(() => void delete process.env.EARSHOT_ACCOUNT_PASSWORD);
    process.env.NODE_COMPILE_CACHE ??= join(temporaryDirectory(), 'compiled');
    const keepEnvironment = `fs.writeFileSync(process.argv[2] + '/env', JSON.stringify(process.env));`;
    const { folder, target } = script(`${keepEnvironment} ${keepInput}`);
    const { accept, start, isDone } = await openSinkContext();
    for (let i = 0; i < 3; i += 1) await accept({ padding: 'x'.repeat(100_000) });
    start(definition(target, { concurrency: 1 }));
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

  it('that fails refuses the item, with the last line of its standard error as the reason', async () => {
    const { target } = script(
      `console.error('Traceback\\nno such \\x1b[31mtable'); process.exit(1);`,
    );
    const { accept, start, items } = await openSinkContext();
    await accept();
    start(definition(target, { attemptsMax: 1 }));
    await expect
      .poll(() => items('dead'))
      .toMatchObject([{ error: 'it ended with exit code 1: no such \\u001b[31mtable' }]);
  });

  it('has its output in the log, the last 4,096 characters of each stream', async () => {
    const { target } = script(
      `process.stdout.write('x'.repeat(100_000) + 'end of output'); console.error('some words');`,
    );
    const { accept, start, isDone, lines } = await openSinkContext();
    await accept();
    start(definition(target));
    await expect.poll(() => isDone()).toBe(true);
    const [line] = lines.filter(({ message }) => message === 'output of a command sink');
    expect(line?.fields).toMatchObject({
      sink: 'sink',
      id: expect.stringMatching(/^n_1_/),
      stdout: `${'x'.repeat(4_096 - 13)}end of output`,
      stderr: 'some words',
    });
  });

  it('that exits with 75 is retried without counting an attempt', async () => {
    const time = createVirtualTime();
    const { folder, target } = script(
      `${keepInput} const n = fs.readFileSync(process.argv[2] + '/got', 'utf8').split('\\n').length - 1;
       process.exit(n < 3 ? 75 : 0);`,
    );
    const { accept, start, items } = await openSinkContext(time);
    await accept();
    start(definition(target, { attemptsMax: 1, timeoutMs: 3_600_000 }));
    const got = () =>
      existsSync(join(folder, 'got')) ? readFileSync(join(folder, 'got'), 'utf8') : '';
    await time.runUntil(() => got().split('\n').length === 4);
    await time.runUntil(async () => (await items('waiting')).length === 0);
    expect(await items('dead')).toEqual([]);
  });

  it('that is missing or not executable leaves its items waiting, without counting attempts', async () => {
    const { folder } = script('');
    const { accept, start, items } = await openSinkContext();
    await accept();
    const missing = { kind: 'command', command: [join(folder, 'gone')] } as const;
    const forbidden = { kind: 'command', command: [join(folder, 'act.cjs')] } as const;
    start(
      definition(missing, { name: 'missing', attemptsMax: 1 }),
      definition(forbidden, { name: 'forbidden', attemptsMax: 1 }),
    );
    const waiting = async (sink: string) =>
      (await items('waiting', sink)).map(({ error }) => error);
    const why = (code: string) => [expect.stringContaining(`cannot be started (${code})`)];
    await expect.poll(() => waiting('missing')).toEqual(why('ENOENT'));
    await expect.poll(() => waiting('forbidden')).toEqual(why('EACCES'));
  });

  it('may acknowledge an item without reading its input', async () => {
    const { accept, start, items, isDone } = await openSinkContext();
    await accept({ padding: 'x'.repeat(500_000) });
    start(definition({ kind: 'command', command: ['true'] }));
    await expect.poll(() => isDone()).toBe(true);
    expect(await items('dead')).toEqual([]);
  });

  it('that hangs is killed at the timeout, with all its child processes', async () => {
    const { folder, target } = script(
      `process.on('SIGTERM', () => fs.writeFileSync(process.argv[2] + '/asked', ''));
       const child = require('node:child_process').spawn('sleep', ['1000'], { stdio: 'inherit' });
       fs.writeFileSync(process.argv[2] + '/pids', process.pid + ' ' + child.pid);
       setInterval(() => {}, 1000);`,
    );
    const { accept, start, items } = await openSinkContext();
    await accept();
    start(definition(target, { timeoutMs: 1_000 }));
    await expect
      .poll(() => items('waiting'))
      .toMatchObject([{ error: 'it did not end in time', attempts: 0 }]);
    expect(existsSync(join(folder, 'asked'))).toBe(true);
    await expect.poll(() => alivePids(folder)).toEqual([]);
  });

  it.each([
    ['acknowledges the item', 'process.exit(0)'],
    ['refuses it', 'process.exit(1)'],
    ['is killed', "process.kill(process.pid, 'SIGKILL')"],
  ])('that %s leaves no process behind', async (_what, end) => {
    const grandchild = `const child = require('node:child_process').spawn('sleep', ['1000']);
      require('node:fs').appendFileSync(process.argv[1], process.pid + ' ' + child.pid + ' ');`;
    const { folder, target } = script(
      `const pids = process.argv[2] + '/pids';
       const { spawn } = require('node:child_process');
       const args = ['-e', ${JSON.stringify(grandchild)}, pids];
       spawn(process.execPath, args, { stdio: 'ignore' });
       setInterval(() => fs.existsSync(pids) && ${end}, 10);`,
    );
    const { accept, start, items, isDone } = await openSinkContext();
    await accept();
    start(definition(target, { attemptsMax: 1 }));
    await expect
      .poll(async () => (await isDone()) || (await items('waiting'))[0]?.error)
      .toBeTruthy();
    expect(readFileSync(join(folder, 'pids'), 'utf8').trim().split(' ')).toHaveLength(2);
    await expect.poll(() => alivePids(folder)).toEqual([]);
  });

  it('is killed with its child processes when the receiver exits', async () => {
    const folder = temporaryDirectory();
    const callbacks: (() => void)[] = [];
    const run = createRunProgram({
      env: process.env,
      onExit: (callback) => callbacks.push(callback),
    });
    const command = ['sh', '-c', `sleep 1000 & echo $$ $! > ${folder}/pids; wait`];
    const limits = { timeoutMs: 600_000, signal: new AbortController().signal };
    const ended = run(command, '', limits);
    await expect.poll(() => alivePids(folder)).toHaveLength(2);
    for (const callback of callbacks) callback();
    expect(await ended).toMatchObject({ signal: 'SIGKILL', timedOut: false });
    await expect.poll(() => alivePids(folder)).toEqual([]);
  });

  it('is killed some time after the program stops, and its item is delivered again', async () => {
    const time = createVirtualTime();
    const { folder, target } = script(`${keepInput} setInterval(() => {}, 1000);`);
    const { accept, start, items } = await openSinkContext(time);
    await accept();
    const sinks = start(definition(target, { timeoutMs: 3_600_000 }));
    await time.runUntil(() => existsSync(join(folder, 'got')));
    let hasStopped = false;
    const atUs = time.nowUs();
    const stopping = sinks.stop().then(() => {
      hasStopped = true;
    });
    await time.runUntil(() => hasStopped);
    await stopping;
    expect(time.nowUs() - atUs).toBeGreaterThanOrEqual(2_000_000);
    expect(time.nowUs() - atUs).toBeLessThan(9_000_000);
    expect(await items('waiting')).toMatchObject([{ attempts: 0, error: null }]);
  });

  it('that cannot be killed is abandoned three seconds after its timeout', async () => {
    const { folder } = script('');
    const file = join(folder, 'pid');
    const asked: string[] = [];
    // As if it ran as another user: the system refuses the signal.
    const run = createRunProgram({ env: process.env }, (_pid, name) => {
      asked.push(name);
      throw Object.assign(new Error('not permitted'), { code: 'EPERM' });
    });
    const command = ['sh', '-c', `echo $$ > ${file}; echo some words >&2; exec sleep 1000`];
    onTestFinished(() => void process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL'));
    const limits = { timeoutMs: 300, signal: new AbortController().signal };
    const begun = performance.now();
    expect(await run(command, 'x', limits)).toEqual({
      exitCode: null,
      signal: null,
      timedOut: true,
      stdout: '',
      stderr: 'some words\n',
    });
    expect(performance.now() - begun).toBeLessThan(10_000);
    expect(asked).toEqual(['SIGTERM', 'SIGKILL']);
  });
});
