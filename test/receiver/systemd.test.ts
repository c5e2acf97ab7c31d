/** Notifications to systemd, sent by its own tool to a socket like systemd's. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startSystemdNotices } from '../../src/receiver/start-command.ts';
import { recordingLog } from '../helpers/recording-log.ts';
import { createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** Node cannot listen on unix datagram sockets; Perl, part of every Debian, can. */
const listener = `
  use IO::Socket::UNIX; use Socket; $| = 1;
  my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $ARGV[0]) or die $!;
  print "listening\\n";
  while (defined $socket->recv(my $message, 65536)) { print "$message\\n" }
`;

async function startServiceManager(): Promise<{ socket: string; received(): string[] }> {
  const socket = join(temporaryDirectory(), 'notify');
  const child = spawn('perl', ['-e', listener, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await once(child.stdout, 'data');
  // The tool waits until its message has been read (sd_notify_barrier(3)).
  const received = () => text.trim().split('\n').slice(1);
  return { socket, received: () => received().filter((line) => line !== 'BARRIER=1') };
}

/** Starts the notices; they stop at the end of the test, also when it fails. */
function startNotices(env: Record<string, string>, checkWritable = async () => {}) {
  const { log, at } = recordingLog();
  const errors = () => at('error').map(({ message }) => message);
  const PATH = process.env.PATH ?? '';
  const notices = startSystemdNotices({ env: { PATH, ...env }, store: { checkWritable }, log });
  onTestFinished(() => notices.stop());
  return { ...notices, errors };
}

const watchdog = { WATCHDOG_USEC: '200000' };
const refused = () => Promise.reject(new Error('The disk is full.'));
const never = () => new Promise<void>(() => {});

const tools = ['/usr/bin/systemd-notify', '/usr/bin/perl'];
const canReceive = process.env.CI !== undefined || tools.every((tool) => existsSync(tool));

describe.runIf(canReceive)('systemd', () => {
  it('is notified when the program is ready, and when it stops', async () => {
    const { socket, received } = await startServiceManager();
    const context = await createReceiverContext(temporaryDirectory());
    const { child } = await context.start({ NOTIFY_SOCKET: socket });
    await expect.poll(received).toEqual(['READY=1']);
    child.kill('SIGTERM');
    await expect(once(child, 'exit')).resolves.toEqual([0, null]);
    await expect.poll(received).toEqual(['READY=1', 'STOPPING=1']);
  });

  it('gets watchdog messages until the service stops', async () => {
    const { socket, received } = await startServiceManager();
    const { stop, errors } = startNotices({ NOTIFY_SOCKET: socket, ...watchdog });
    const begins = () => received().slice(0, 4);
    await expect.poll(begins).toEqual(['READY=1', 'WATCHDOG=1', 'WATCHDOG=1', 'WATCHDOG=1']);
    stop();
    await expect.poll(received).toContain('STOPPING=1');
    expect(errors()).toEqual([]);
  });

  it('gets them also while the disk is full, because a restart would not free space', async () => {
    const { socket, received } = await startServiceManager();
    startNotices({ NOTIFY_SOCKET: socket, ...watchdog }, refused);
    await expect.poll(received).toContain('WATCHDOG=1');
  });

  it.each([
    ['does not answer', [never, never, never]],
    ['gave up an old call and does not answer a new one', [refused, never, refused, never]],
  ])('gets none while the store %s, and gets them again afterwards', async (_name, answers) => {
    const { socket, received } = await startServiceManager();
    const waiting = [...answers];
    const { promise: gate, resolve: allowed } = Promise.withResolvers<void>();
    const checkWritable = async () => {
      const answer = waiting.shift();
      return answer === undefined ? gate : answer();
    };
    const { errors } = startNotices({ NOTIFY_SOCKET: socket, ...watchdog }, checkWritable);
    await expect.poll(() => errors().length).toBeGreaterThan(3);
    expect(errors()[0]).toMatch(/^store does not answer/);
    await expect.poll(received).toEqual(['READY=1']);
    allowed();
    await expect.poll(received).toContain('WATCHDOG=1');
  });
});

describe('the tool that notifies systemd', () => {
  /** Creates a folder whose systemd-notify records its input. */
  function fakeTool(script: string): { PATH: string; written(): string } {
    const folder = temporaryDirectory();
    const file = join(folder, 'systemd-notify');
    writeFileSync(file, `#!/bin/sh\nexec >>${folder}/written\n${script}\n`);
    chmodSync(file, 0o755);
    const written = () => {
      const path = join(folder, 'written');
      return existsSync(path) ? readFileSync(path, 'utf8') : '';
    };
    return { PATH: `${folder}:${process.env.PATH}`, written };
  }

  it('is not run without a service manager', async () => {
    const { PATH, written } = fakeTool('echo "$1 $NOTIFY_SOCKET"');
    for (const env of [{}, { NOTIFY_SOCKET: '' }])
      startNotices({ PATH, ...env, ...watchdog }).stop();
    await setImmediate();
    startNotices({ PATH, NOTIFY_SOCKET: '/run/asked' });
    await expect.poll(written).toBe('READY=1 /run/asked\n');
  });

  it('gets no secret, and runs once at a time', async () => {
    const { PATH, written } = fakeTool('echo "begin $1"; env; echo "end"');
    const env = { PATH, NOTIFY_SOCKET: '/run/asked', EARSHOT_ENDPOINT_PASSWORD: 'open sesame' };
    startNotices(env).stop();
    await expect.poll(written).toMatch(/begin READY=1\n[\s\S]*\nbegin STOPPING=1\n[\s\S]*end\n$/);
    expect(written()).not.toMatch(/begin(?:(?!\nend\n)[\s\S])*begin/);
    expect(written()).not.toMatch(/EARSHOT|open sesame/);
  });

  it('causes one log line when it is missing, and nothing else fails', async () => {
    const { stop, errors } = startNotices({
      PATH: temporaryDirectory(),
      NOTIFY_SOCKET: '/run/asked',
      WATCHDOG_USEC: '20000',
    });
    await expect.poll(errors).toHaveLength(1);
    expect(errors()[0]).toMatch(/^failed to notify systemd/);
    stop();
    await setImmediate();
    expect(errors()).toHaveLength(1);
  });
});
