/** The npm scripts of a checkout. */
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { bareEnvironment } from '../helpers/bare-environment.ts';
import { printedBy } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const root = join(import.meta.dirname, '../..');

const receiver = {
  EARSHOT_TLS: 'off',
  EARSHOT_LISTEN: '127.0.0.1:0',
  EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
  EARSHOT_ENDPOINT_USERNAME: 'catalogue',
  EARSHOT_ENDPOINT_PASSWORD: 'a:long-secret',
};

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

const stopped = /"msg":"stopped"/;
/** Signals npm only, by its process id. */
const end = (pid: number) => process.kill(pid, 'SIGTERM');
/** Signals npm and the program, as a terminal does; npm forwards the signal once more. */
const pressCtrlC = (pid: number) => process.kill(-pid, 'SIGINT');

it.each([
  { script: 'start', args: [], send: end, last: stopped },
  { script: 'start', args: [], send: pressCtrlC, last: stopped },
  {
    script: 'sandbox',
    args: ['--control', 'localhost:0', '--service', 'localhost:0', '--inference', 'localhost:0'],
    ...{ send: end, last: /control/ },
  },
  { script: 'demo', args: [], send: end, last: /0 in quarantine\./ },
])('npm run $script ends with npm, in order, and frees its ports ($send.name)', async (row) => {
  const { script, args, send, last } = row;
  const settings = script === 'start' ? receiver : {};
  const env = bareEnvironment({
    ...settings,
    EARSHOT_DATA_DIR: join(temporaryDirectory(), 'data'),
  });
  const npm = spawn('npm', ['run', script, '--', ...args], {
    ...{ cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] },
    // A separate process group, so that a failed test leaves no process.
    detached: true,
  });
  onTestFinished(() => {
    try {
      process.kill(-(npm.pid ?? 0), 'SIGKILL');
    } catch {}
  });
  const output = printedBy(npm.stdout, npm.stderr);
  let isClosed = false;
  npm.on('close', () => {
    isClosed = true;
  });
  const listening = async () => {
    const found = output().matchAll(/(?:127\.0\.0\.1|localhost):([1-9]\d+)/g);
    const ports = [...new Set([...found].map(([, port]) => Number(port)))];
    const states = await Promise.all(ports.map(isListening));
    return ports.filter((_, i) => states[i]);
  };
  await expect.poll(listening).not.toEqual([]);
  send(npm.pid ?? 0);
  // The output closes when its last process has ended, including the program.
  await expect.poll(() => isClosed, { timeout: 15_000 }).toBe(true);
  expect(output()).toMatch(last);
  expect(npm.exitCode).toBe(0);
  expect(await listening()).toEqual([]);
});
