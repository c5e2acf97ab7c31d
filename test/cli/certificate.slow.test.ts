/** `earshot certificate` against Pebble, as a user types it, including common mistakes. */
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { freePort } from '../helpers/free-ports.ts';
import { hasPebble, type PebbleOptions, startPebble } from '../helpers/pebble.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { expectEnd, type FakeIoOptions, printedJson, runCommand, startCommand } from './fake-io.ts';

const nowUs = () => Date.now() * 1000;

/** Starts Pebble; returns the environment of a user who has set every variable correctly. */
async function openContext(options: PebbleOptions = {}) {
  const pebble = await startPebble(options);
  const folder = temporaryDirectory();
  const ca = join(folder, 'ca.pem');
  writeFileSync(ca, pebble.caPem);
  const listen = await freePort();
  const env = {
    EARSHOT_TLS: 'acme',
    EARSHOT_PUBLIC_URL: 'https://earshot.example.org',
    EARSHOT_DATA_DIR: join(folder, 'data'),
    EARSHOT_LISTEN: `127.0.0.1:${listen}`,
    EARSHOT_ACME_DIRECTORY: pebble.directoryUrl,
    EARSHOT_ACME_CA: ca,
    EARSHOT_ACME_AGREE: 'yes',
    EARSHOT_ACME_HTTP_LISTEN: `127.0.0.1:${pebble.ports.http}`,
  };
  const certificate = (argv: string, changed: Record<string, string> = {}, io?: FakeIoOptions) =>
    runCommand(['certificate', ...argv.split(' ')], {
      nowUs,
      ...io,
      env: { ...env, ...changed },
    });
  return { pebble, folder, env, certificate };
}

describe.skipIf(!hasPebble)('earshot certificate (Pebble)', () => {
  it('tests, issues and shows a certificate, and does not replace a valid one', {
    timeout: 60_000,
  }, async () => {
    const { certificate, pebble } = await openContext({ validitySeconds: 90 * 86_400 });
    const tested = await expectEnd(certificate('test'), 0);
    expect(tested.out).toMatch(/validated earshot\.example\.org with http-01\. No cert/);
    await expectEnd(certificate('show'), 1, /There is no certificate yet.*certificate renew/);
    expect(await certificate('renew')).toMatchObject({ code: 0 });
    const shown = await printedJson(certificate('show --json'));
    expect(shown).toMatchObject({
      source: 'acme',
      names: ['earshot.example.org'],
      keyType: 'EC P-256',
      daysLeft: 89,
      chainLength: 2,
      authority: pebble.directoryUrl,
      renewsBecause: 'share',
      failures: 0,
      lastFailure: null,
      issuedLastDay: 1,
    });
    const again = await certificate('renew');
    expect(again.err).toMatch(/valid until .*automatic renewal on .*--force/);
    const pem = (await certificate('show --pem')).out;
    expect(new X509Certificate(pem).serialNumber).toBe(shown.serialNumber);
    expect(pem).not.toContain('PRIVATE KEY');
    expect(await certificate('renew --force')).toMatchObject({ code: 0 });
    expect(new X509Certificate((await certificate('show --pem')).out).serialNumber).not.toBe(
      shown.serialNumber,
    );
  });

  it('reports a certificate that does not match the settings', async () => {
    const { certificate } = await openContext();
    await certificate('renew');
    const moved = { EARSHOT_PUBLIC_URL: 'https://new.example.org' };
    const { out, err } = await expectEnd(certificate('show', moved), 0);
    expect(out).not.toMatch(/^renews at/m);
    expect(err).toMatch(/does not match the settings \(host new\.example\.org/);
  });

  it('stops waiting for another program on request', { timeout: 30_000 }, async () => {
    const { certificate, env } = await openContext();
    const release = await createAcquireLock(env.EARSHOT_DATA_DIR)('certificate', { waitMs: 0 });
    onTestFinished(release);
    const waiting = startCommand('certificate renew', { env, nowUs });
    await expect.poll(waiting.err).toMatch(/waiting for another process that is ordering/);
    waiting.stop();
    await expectEnd(waiting.ended, 1, /Interrupted\./);
    expect(await certificate('show')).toMatchObject({ code: 1 });
  });

  it('prints only PEM with --pem, which cannot be combined with --json', async () => {
    const { certificate } = await openContext();
    expect(await certificate('show --pem')).toMatchObject({ code: 1, out: '' });
    expect(await certificate('show --pem --json')).toMatchObject({ code: 2 });
  });

  it('prints aligned lines for people', { timeout: 30_000 }, async () => {
    const { certificate } = await openContext();
    await certificate('renew');
    const { out } = await certificate('show');
    const columns = out
      .trimEnd()
      .split('\n')
      .map((line) => line.search(/(?<= {2})\S/));
    expect(new Set(columns).size).toBe(1);
    expect(out).toMatch(/^for +earshot\.example\.org$/m);
  });

  it('gets a certificate by tls-alpn-01 on the public port', { timeout: 30_000 }, async () => {
    const { certificate, pebble } = await openContext();
    const changed = {
      EARSHOT_ACME_CHALLENGE: 'tls-alpn-01',
      EARSHOT_LISTEN: `127.0.0.1:${pebble.ports.tls}`,
    };
    expect(await certificate('renew', changed)).toMatchObject({ code: 0 });
  });

  it('shows the terms of service before they are accepted, and orders nothing', async () => {
    const { certificate } = await openContext();
    const asked = await expectEnd(certificate('test', { EARSHOT_ACME_AGREE: '' }), 2);
    expect(asked.err).toMatch(/Terms of service: data:.*\n.*set EARSHOT_ACME_AGREE=yes/);
    const refused = await certificate('renew', { EARSHOT_ACME_AGREE: '' });
    expect(refused).toMatchObject({ code: 2 });
  });
});

describe.skipIf(!hasPebble)('a mistake with earshot certificate (Pebble)', () => {
  it.each([
    ['files', { EARSHOT_TLS: '' }, /EARSHOT_TLS is files: .*EARSHOT_TLS=acme/],
    ['an unknown root', { EARSHOT_ACME_CA: '' }, /cannot be reached.*EARSHOT_ACME_CA/],
    [
      'no directory',
      { EARSHOT_ACME_DIRECTORY: 'https://localhost:1/dir' },
      /cannot be reached.*refused/,
    ],
    [
      'another port',
      { EARSHOT_ACME_HTTP_LISTEN: '127.0.0.1:0' },
      /port 80 of earshot\.example\.org/,
    ],
  ])('%s: says what to fix', { timeout: 30_000 }, async (_title, changed, words) => {
    const { certificate } = await openContext();
    const { code, err } = await certificate('renew', changed);
    expect(code).toBeGreaterThan(0);
    expect(err).toMatch(words);
    expect(err).not.toMatch(/fault of the program|at .*\.ts:\d/);
  });

  it('a URL that is no ACME directory: names the variable', { timeout: 30_000 }, async () => {
    const { certificate, pebble } = await openContext();
    const page = `https://localhost:${pebble.ports.management}/roots/0`;
    const { err } = await expectEnd(certificate('renew', { EARSHOT_ACME_DIRECTORY: page }), 1);
    expect(err).toMatch(/is not valid ACME.*EARSHOT_ACME_DIRECTORY/);
  });

  it('a port in use by another program: says so', { timeout: 30_000 }, async () => {
    const { certificate } = await openContext();
    const other = createServer((_request, response) => response.end('hello'));
    const port = await freePort();
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const { code, err } = await certificate('renew', {
      EARSHOT_ACME_HTTP_LISTEN: `127.0.0.1:${port}`,
    });
    expect(code).toBeGreaterThan(0);
    expect(err).toMatch(/another program uses this port.*EARSHOT_ACME_HTTP_LISTEN/);
  });
});

describe('earshot certificate show', () => {
  it('shows certificate files, too', async () => {
    const folder = temporaryDirectory();
    const authority = await createCertificateAuthority({ now: Date.now });
    const { certificatePem, keyPem } = await authority.issue({ hosts: ['earshot.example.org'] });
    writeFileSync(join(folder, 'cert.pem'), certificatePem);
    writeFileSync(join(folder, 'key.pem'), keyPem);
    const env = {
      EARSHOT_TLS_CERT: join(folder, 'cert.pem'),
      EARSHOT_TLS_KEY: join(folder, 'key.pem'),
    };
    const { out } = await expectEnd(runCommand('certificate show --json', { env, nowUs }), 0);
    expect(JSON.parse(out)).toMatchObject({
      source: 'files',
      names: ['earshot.example.org'],
      daysLeft: 29,
      authority: null,
      failures: null,
    });
  });

  it('says behind a proxy that the proxy has the certificate', async () => {
    const env = { EARSHOT_TLS: 'off' };
    const { err } = await expectEnd(runCommand('certificate show', { env }), 2);
    expect(err).toMatch(/the reverse proxy has the certificate/);
  });
});
