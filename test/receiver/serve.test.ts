/** The composed receiver: faults that only the composition can cause. */

import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { serve } from '../../src/receiver/serve.ts';
import { notification } from '../helpers/deliveries.ts';
import { startCommand, testIo } from '../helpers/fake-io.ts';
import { writeKeyPair } from '../helpers/key-pair.ts';
import { recordingLog } from '../helpers/recording-log.ts';
import { credentials } from '../helpers/spawned-receiver.ts';
import { listening } from '../helpers/tcp-server.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { serveConfig, withCertificateWatch } from './serve-config.ts';
import { openServed } from './served-context.ts';

async function startServing(watchMs: number, notAfterMs?: number) {
  const folder = temporaryDirectory();
  const renew = () => writeKeyPair(folder, notAfterMs === undefined ? {} : { notAfterMs });
  const { files } = await renew();
  const { log, lines } = recordingLog();
  const config = serveConfig({
    dataDir: join(folder, 'data'),
    credentials: { source: 'variables', pairs: [credentials] },
    tls: { kind: 'files', ...files },
  });
  const features = withCertificateWatch(watchMs);
  const io = testIo({ features, nowUs: () => Date.now() * 1000 });
  const receiver = await serve(config, log, io);
  onTestFinished(() => receiver.close());
  const port = Number(new URL(receiver.url ?? '').port);
  const servedSerial = async () => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
    onTestFinished(() => void socket.destroy());
    await once(socket, 'secureConnect');
    return socket.getPeerCertificate().serialNumber;
  };
  return { lines, files, renew, servedSerial };
}

describe('a composed receiver', () => {
  it('serves renewed certificate files, and the old pair while the new one is broken', async () => {
    const { lines, files, renew, servedSerial } = await startServing(20);
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
    const { lines } = await startServing(10_000, Date.now() - 1_000);
    const warnings = lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
    expect(warnings).toEqual([
      'the certificate has expired, or is not valid yet; the catalogue will reject it',
    ]);
  });
});

it('accepts notifications although the port of the private listener is taken, and names the variable', async () => {
  const listen = { host: '127.0.0.1', port: await listening(createServer()) };
  const config = serveConfig({
    dataDir: temporaryDirectory(),
    credentials: { source: 'variables', pairs: [credentials] },
    console: { listen, password: undefined, catalogueUrl: 'https://catalogue.test' },
  });
  const { log, at } = recordingLog();
  const io = testIo({ nowUs: () => Date.now() * 1000 });
  const receiver = await serve(config, log, io);
  onTestFinished(() => receiver.close());
  expect(receiver.consoleUrl).toBeNull();
  const reason = expect.stringMatching(/in use, not permitted.*EARSHOT_CONSOLE_LISTEN/);
  expect(at('error')).toMatchObject([{ fields: { reason } }]);
  const authorization = `Basic ${btoa(`${credentials.username}:${credentials.password}`)}`;
  const probe = await fetch(`${receiver.url}/notifications`, { headers: { authorization } });
  expect(probe.status).toBe(200);
});

it('serves received notifications: from the log at once, from the index soon after', async () => {
  const { post, ask } = await openServed({ index: true });
  expect(await post('/notifications/alps', JSON.stringify(notification(1)))).toBe(200);
  const listed = async (path: string) => JSON.parse((await ask(path)).text);
  expect((await listed('/api/notifications')).notifications).toHaveLength(1);
  const products = async () => (await listed('/odata/v1/Products?$count=true'))['@odata.count'];
  await expect.poll(products, { timeout: 5_000 }).toBe(1);
});

/** Runs `earshot start` on loopback, stops it on request, and returns its log. */
async function startedAndStopped(env: Record<string, string>, workingDir = temporaryDirectory()) {
  const starting = startCommand(['start'], {
    workingDir,
    env: {
      EARSHOT_TLS: 'off',
      EARSHOT_LISTEN: '127.0.0.1:0',
      EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
      ...{ EARSHOT_DATA_DIR: join(workingDir, 'data'), EARSHOT_ENDPOINT_USERNAME: 'catalogue' },
      ...env,
    },
  });
  starting.stop();
  const { code, err, out } = await starting.ended;
  expect({ code, out }).toEqual({ code: 0, out: '' });
  const lines = err.trimEnd().split('\n');
  return { err, lines: lines.map((line) => JSON.parse(line)) };
}

it('earshot start warns of plain HTTP and a short password, and stops cleanly on request', async () => {
  const { err, lines } = await startedAndStopped({
    EARSHOT_ENDPOINT_PASSWORD: 'a long password',
    EARSHOT_CONSOLE_PASSWORD: 'a word',
  });
  const warnings = lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg);
  expect(warnings[0]).toMatch(/^EARSHOT_TLS=off: passwords are sent unencrypted/);
  expect(warnings.join()).toContain('EARSHOT_CONSOLE_PASSWORD has fewer than 12 characters');
  expect(lines.at(-1)).toMatchObject({ level: 'info', msg: 'stopped' });
  expect(err).not.toMatch(/a word|a long password/);
});

it('earshot start warns of a secret that every user can read, and of a file that they can change', async () => {
  const folder = temporaryDirectory();
  const [password, config] = [join(folder, 'password'), join(folder, 'earshot.config.ts')];
  writeFileSync(password, 'hunter2-not-to-be-shown\n');
  writeFileSync(config, 'export default { subscriptions: {} };\n');
  chmodSync(password, 0o644);
  chmodSync(config, 0o666);
  const { err, lines } = await startedAndStopped(
    { EARSHOT_ENDPOINT_PASSWORD_FILE: password },
    folder,
  );
  const advice = lines.flatMap((line) => (line.level === 'warn' ? (line.advice ?? []) : []));
  expect(advice).toEqual(
    expect.arrayContaining([`Run: chmod o= ${password}`, `Run: chmod o-w ${config}`]),
  );
  expect(err).not.toContain('hunter2');
});
