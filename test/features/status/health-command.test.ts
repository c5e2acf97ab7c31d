/** `earshot admin health`: the results that a container's health check gets. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { markServed } from '../../../src/receiver/running-receiver.ts';
import type { Answer } from '../../core/http/answering-server.ts';
import { expectEnd, runCommand } from '../../helpers/fake-io.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { markReceiver } from './marked-receiver.ts';

const health = (dataDir: string, env: Record<string, string> = {}) =>
  runCommand('admin health', { env: { EARSHOT_DATA_DIR: dataDir, ...env } });

describe('earshot admin health', () => {
  it('exits with 0 and one line when the receiver accepts notifications, whatever other settings are', async () => {
    const dataDir = temporaryDirectory();
    const url = await markReceiver(dataDir, { body: 'ready' });
    const ended = await health(dataDir, { EARSHOT_CONSOLE_LISTEN: 'off' });
    expect(ended).toMatchObject({
      ...{ code: 0, out: `The receiver accepts notifications (${url}).\n`, err: '' },
    });
  });

  it('exits with 0 while a receiver without a private listener runs', async () => {
    const dataDir = temporaryDirectory();
    await markReceiver(dataDir, null);
    const { out } = await expectEnd(health(dataDir), 0);
    expect(out).toContain('its state is not known');
  });

  it('asks the address of the settings while the file of the receiver is missing', async () => {
    const dataDir = temporaryDirectory();
    const url = await markReceiver(dataDir, { body: 'ready' });
    rmSync(join(dataDir, 'receiver.json'));
    const listen = { EARSHOT_CONSOLE_LISTEN: new URL(url ?? '').host };
    await expectEnd(health(dataDir, listen), 0);
  });

  it('exits with 1 when no receiver runs, also after one was killed', async () => {
    const dataDir = temporaryDirectory();
    await expectEnd(health(dataDir), 1, /^earshot: No receiver uses .* Start the receiver with/);
    const mark = await markServed(dataDir, silentLog);
    mark.stop();
    await expectEnd(health(dataDir), 1, /No receiver uses/);
  });

  it.each<[string, Answer, RegExp]>([
    ['cannot store', { status: 503, body: 'store' }, /cannot store notifications\. Check the log/],
    ['has no certificate', { status: 503, body: 'certificate' }, /There is no valid certificate/],
    [
      'has no writer',
      { status: 503, body: 'writer\nstore' },
      /The database writer does not answer/,
    ],
    ['is another program', { status: 302 }, /Another program answers at .* \(HTTP status 302\)/],
    ['breaks the connection', 'cut', /does not answer at .*: the connection was lost/],
    ['does not answer in five seconds', 'hang', /does not answer at .*: it did not answer in time/],
  ])('exits with 1 and the reason when the receiver %s', async (_title, answer, reason) => {
    const dataDir = temporaryDirectory();
    await markReceiver(dataDir, answer);
    const { err } = await expectEnd(health(dataDir), 1, reason);
    expect(err).toMatch(/^earshot: The receiver does not accept notifications\. .*\n$/);
  });

  it('exits with 1 when the private listener is gone', async () => {
    const dataDir = temporaryDirectory();
    const mark = await markServed(dataDir, silentLog);
    onTestFinished(() => mark.stop());
    const listen = { EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${await freePort()}` };
    await expectEnd(health(dataDir, listen), 1, /the connection was refused \(ECONNREFUSED\)/);
  });

  it('exits with 2 for an unknown variable', async () => {
    const env = { EARSHOT_LISTN: 'off' };
    await expectEnd(health(temporaryDirectory(), env), 2, /Did you mean EARSHOT_LISTEN\?/);
  });
});

it('a data directory has one receiver: a second one is refused, and the next one starts after the first', async () => {
  const dataDir = temporaryDirectory();
  const first = await markServed(dataDir, silentLog);
  const second = () => markServed(dataDir, silentLog);
  await expect(second()).rejects.toMatchObject({
    code: 'conflict',
    text: expect.stringMatching(/unknown process.*stop it first: Ctrl-C in its terminal/),
  });
  const listen = { host: '::', port: 8443 };
  await first.describe({
    ...{ pid: 4711, startedAtUs: 0, publicUrl: 'https://earshot.example.org', listen },
    consoleUrl: 'http://127.0.0.1:8080',
  });
  await expect(second()).rejects.toThrow(
    'process 4711, https://earshot.example.org, listening on [::]:8443, queries on http://127.0.0.1:8080, running since 1970-01-01 00:00 UTC',
  );
  first.stop();
  (await second()).stop();
});
