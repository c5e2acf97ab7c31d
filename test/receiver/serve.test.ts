/** The composed receiver: faults that only the composition can cause. */

import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { app } from '../../src/app.ts';
import { type ServeTuning, serve } from '../../src/receiver/serve.ts';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import { startCommand } from '../helpers/fake-io.ts';
import { recordingLog } from '../helpers/recording-log.ts';
import { credentials } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

async function startServing(tuning: ServeTuning, notAfterMs?: number) {
  const folder = temporaryDirectory();
  const authority = await createCertificateAuthority({ now: Date.now });
  const files = { cert: join(folder, 'certificate.pem'), key: join(folder, 'key.pem') };
  const renew = async (hosts = ['localhost']) => {
    const request = notAfterMs === undefined ? { hosts } : { hosts, notAfterMs };
    const pair = await authority.issue(request);
    writeFileSync(files.cert, pair.certificatePem);
    writeFileSync(files.key, pair.keyPem);
  };
  await renew();
  const { log, lines } = recordingLog();
  const config = {
    listen: { host: '127.0.0.1', port: 0 },
    publicUrl: 'https://elsewhere.example',
    dataDir: join(folder, 'data'),
    diskReserveBytes: undefined,
    sharedLog: null,
    credentials: { source: 'variables' as const, pairs: [credentials] },
    tls: { kind: 'files' as const, ...files },
    trustedProxies: [],
    console: null,
    index: false,
    logLevel: 'info' as const,
  };
  const io = {
    features: app,
    nowUs: () => Date.now() * 1000,
    newId: () => 'id',
    random: Math.random,
  };
  const receiver = await serve(config, log, io, tuning);
  onTestFinished(() => receiver.close());
  const port = Number(new URL(receiver.url ?? '').port);
  const open = async () => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
    onTestFinished(() => void socket.destroy());
    await once(socket, 'secureConnect');
    return socket;
  };
  const servedSerial = async () => (await open()).getPeerCertificate().serialNumber;
  return { lines, files, renew, open, servedSerial };
}

describe('a composed receiver', () => {
  it('serves renewed certificate files, and the old pair while the new one is broken', async () => {
    const { lines, files, renew, servedSerial } = await startServing({ certificateWatchMs: 20 });
    const first = await servedSerial();
    writeFileSync(files.key, 'broken');
    const complaint = expect.objectContaining({
      ...{ level: 'error', message: expect.stringContaining('previous certificate stays in use') },
    });
    await vi.waitFor(() => expect(lines).toContainEqual(complaint), { timeout: 5_000 });
    expect(await servedSerial()).toBe(first);
    await renew();
    await vi.waitFor(async () => expect(await servedSerial()).not.toBe(first), { timeout: 5_000 });
  });

  it('warns of a certificate that the catalogue will reject', async () => {
    const { lines } = await startServing({}, Date.now() - 1_000);
    const warnings = lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
    expect(warnings).toEqual([
      'the certificate has expired, or is not valid yet; the catalogue will reject it',
    ]);
  });

  it('disconnects a sender with valid credentials that never finishes the body', async () => {
    const limits = { requestTimeoutMs: 300, headersTimeoutMs: 200 };
    const { open } = await startServing({ limits });
    const socket = await open();
    const authorization = Buffer.from(`${credentials.username}:${credentials.password}`);
    socket.write(
      `POST /notifications HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nAuthorization: Basic ${authorization.toString('base64')}\r\n\r\n{`,
    );
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
    });
    await once(socket, 'close');
    expect(answer === '' || /^HTTP\/1\.1 4\d\d /.test(answer)).toBe(true);
  });

  it('logs a sender without credentials', async () => {
    const { lines, open } = await startServing({});
    const socket = await open();
    socket.write('POST /notifications HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n');
    await once(socket, 'data');
    expect(lines.map(({ message }) => message)).toContain('login failed');
  });
});

describe('earshot start', () => {
  it('warns of plain HTTP and a short password, and stops cleanly on request', async () => {
    const starting = startCommand(['start'], {
      env: {
        EARSHOT_TLS: 'off',
        EARSHOT_LISTEN: '127.0.0.1:0',
        EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
        EARSHOT_DATA_DIR: join(temporaryDirectory(), 'data'),
        EARSHOT_ENDPOINT_USERNAME: 'catalogue',
        EARSHOT_ENDPOINT_PASSWORD: 'a long password',
        EARSHOT_CONSOLE_PASSWORD: 'a word',
      },
    });
    starting.stop();
    const { code, err, out } = await starting.ended;
    expect({ code, out }).toEqual({ code: 0, out: '' });
    const lines = err
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const warnings = lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg);
    expect(warnings[0]).toMatch(/^EARSHOT_TLS=off: passwords are sent unencrypted/);
    expect(warnings).toContain(
      'EARSHOT_CONSOLE_PASSWORD has fewer than 12 characters, and can be guessed.',
    );
    expect(lines.at(-1)).toMatchObject({ level: 'info', msg: 'stopped' });
    expect(err).not.toMatch(/a word|a long password/);
  });
});

it('logs a warning for a secret that every user can read, and for a file that they can change', async () => {
  const workingDir = temporaryDirectory();
  const password = join(workingDir, 'password');
  const config = join(workingDir, 'earshot.config.ts');
  writeFileSync(password, 'hunter2-not-to-be-shown\n');
  writeFileSync(config, 'export default { subscriptions: {} };\n');
  chmodSync(password, 0o644);
  chmodSync(config, 0o666);
  const starting = startCommand(['start'], {
    workingDir,
    env: {
      EARSHOT_TLS: 'off',
      EARSHOT_LISTEN: '127.0.0.1:0',
      EARSHOT_CONSOLE_LISTEN: 'off',
      EARSHOT_DATA_DIR: join(workingDir, 'data'),
      EARSHOT_ENDPOINT_USERNAME: 'catalogue',
      EARSHOT_ENDPOINT_PASSWORD_FILE: password,
    },
  });
  starting.stop();
  const { err } = await starting.ended;
  const lines = err
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const warned = lines.filter(({ msg }) => /users? .*can (access|change)/.test(msg));
  expect(warned).toMatchObject([
    {
      level: 'warn',
      msg: `Other users can access ${password}.`,
      advice: `Run: chmod o= ${password}`,
    },
    {
      level: 'warn',
      msg: `Every user of this machine can change ${config}.`,
      advice: `Run: chmod o-w ${config}`,
    },
  ]);
  expect(err).not.toContain('hunter2');
});
