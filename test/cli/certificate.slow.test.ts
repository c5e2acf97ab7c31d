/** `earshot certificate` against Pebble, as a user types it, including common mistakes. */
import { existsSync, writeFileSync } from 'node:fs';
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
  it('issues and shows a certificate, and does not replace a valid one', {
    timeout: 60_000,
  }, async () => {
    const { certificate, pebble } = await openContext({ validitySeconds: 90 * 86_400 });
    await expectEnd(certificate('show'), 1, /There is no certificate yet.*certificate renew/);
    expect(await certificate('renew')).toMatchObject({ code: 0 });
    const shown = await printedJson(certificate('show --json'));
    expect(shown).toMatchObject({
      source: 'acme',
      names: ['earshot.example.org'],
      daysLeft: 89,
      shareLeft: 99,
      authority: pebble.directoryUrl,
      renewsBecause: 'lifetime',
      failures: 0,
      lastFailure: null,
      resumeLink: null,
    });
    const again = await certificate('renew');
    expect(again.err).toMatch(/valid until .*automatic renewal on .*--force/);
    expect(await certificate('renew --force')).toMatchObject({ code: 0 });
    const renewed = await printedJson(certificate('show --json'));
    expect(renewed.serialNumber).not.toBe(shown.serialNumber);
    const moved = { EARSHOT_PUBLIC_URL: 'https://new.example.org' };
    expect((await certificate('show', moved)).out).not.toMatch(/^renews at/m);
  });

  it('stops waiting for another program on request', { timeout: 30_000 }, async () => {
    const { certificate, env } = await openContext();
    const release = await createAcquireLock(env.EARSHOT_DATA_DIR)('certificate', { waitMs: 0 });
    onTestFinished(release);
    const waiting = startCommand('certificate renew', { env, nowUs });
    await expect.poll(() => existsSync(join(env.EARSHOT_DATA_DIR, 'certificate.lock'))).toBe(true);
    waiting.stop();
    expect((await waiting.ended).code).toBeGreaterThan(0);
    expect(await certificate('show')).toMatchObject({ code: 1 });
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
    expect(out).toMatch(/^names +earshot\.example\.org$/m);
  });

  it('gets a certificate by tls-alpn-01 on the public port', { timeout: 30_000 }, async () => {
    const { certificate, pebble } = await openContext();
    const changed = {
      EARSHOT_ACME_CHALLENGE: 'tls-alpn-01',
      EARSHOT_LISTEN: `127.0.0.1:${pebble.ports.tls}`,
    };
    expect(await certificate('renew', changed)).toMatchObject({ code: 0 });
  });

  it('orders nothing without the agreement to the terms', async () => {
    const { certificate } = await openContext();
    await expectEnd(certificate('renew', { EARSHOT_ACME_AGREE: '' }), 2, /EARSHOT_ACME_AGREE=yes/);
  });
});

describe.skipIf(!hasPebble)('a mistake with earshot certificate (Pebble)', () => {
  it.each([
    ['files', { EARSHOT_TLS: '' }, /EARSHOT_TLS is files: .*EARSHOT_TLS=acme/],
    ['an unknown root', { EARSHOT_ACME_CA: '' }, /unreachable: .*EARSHOT_ACME_CA/],
    [
      'no directory',
      { EARSHOT_ACME_DIRECTORY: 'https://localhost:1/dir' },
      /unreachable: .*refused/,
    ],
    ['another port', { EARSHOT_ACME_HTTP_LISTEN: '127.0.0.1:0' }, /open port 80/],
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
    expect(err).toMatch(/EARSHOT_ACME_DIRECTORY must be the URL of an ACME directory/);
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
