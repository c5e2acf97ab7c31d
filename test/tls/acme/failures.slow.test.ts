/** A failed order results in a message and a later attempt, which is first rehearsed at the staging directory. */

import { X509Certificate } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../../src/sandbox/certificate-authority.ts';
import { testOrder } from '../../../src/tls/acme/order.ts';
import { lastFailureText } from '../../../src/tls/acme/state.ts';
import {
  freePebblePorts,
  hasPebble,
  leaveAccount,
  type Pebble,
  type PebbleOptions,
  startPebble,
} from '../../helpers/pebble.ts';
import {
  dayUs,
  host,
  it,
  minuteUs,
  openProgram,
  type Program,
  watchRequests,
} from './pebble-context.ts';

const noListener = async () => undefined;

/** Starts a foreign server on the port for challenges. */
async function startForeignServer(pebble: Pebble, status: number): Promise<void> {
  const server = createServer((_incoming, outgoing) => {
    outgoing.writeHead(status).end('It works!');
  });
  await new Promise<void>((resolve) => server.listen(pebble.ports.http, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
}

/** An ordinary HTTPS server on the public port. */
async function startForeignTls(pebble: Pebble, protocols: string[]): Promise<void> {
  const authority = await createCertificateAuthority({ now: Date.now });
  const { certificatePem: cert, keyPem: key } = await authority.issue({ hosts: [host] });
  const server = createTlsServer({ cert, key, ALPNProtocols: protocols }, (socket) => {
    socket.on('error', () => undefined).end();
  });
  await new Promise<void>((resolve) => server.listen(pebble.ports.tls, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
}

/** Expects the next attempt not before its time, then a success that resets the failures. */
async function thenSucceeds(program: Program, pauseUs: number): Promise<void> {
  const { clock, check, state } = program;
  const failures = state().failures;
  clock.advance(pauseUs - 1);
  expect(await check()).toMatchObject({ outcome: 'waiting', untilUs: clock.nowUs() + 1 });
  expect(state().failures).toBe(failures);
  clock.advance(1);
  expect((await check()).outcome).toBe('renewed');
  expect(state()).toMatchObject({
    failures: 0,
    nextTryAtUs: null,
    lastSuccessAtUs: clock.nowUs(),
    issuedAtUs: [clock.nowUs()],
  });
}

describe.skipIf(!hasPebble)('an unproved name (needs pebble)', () => {
  it('with another address: the failures are counted on disk until the address is right', async ({
    pebble,
    requests,
  }) => {
    await pebble.setAddress('127.0.0.2');
    const first = openProgram(pebble);
    const message = await first.fail();
    expect(message).toMatch(
      /^The authority could not connect to port 80 of earshot\.example\.org\. Open the port/,
    );
    expect(message).toMatch(/\(connection: .*127\.0\.0\.2/);
    expect(first.state()).toMatchObject({
      failures: 1,
      lastFailure: { atUs: first.clock.nowUs() },
      nextTryAtUs: first.clock.nowUs() + minuteUs,
    });
    expect(lastFailureText(first.state())).toBe(message);
    // The state survives a restart, without requests.
    const { clock, dataDir } = first;
    const second = openProgram(pebble, { clock, dataDir });
    const requestCount = requests.asked.length;
    expect((await second.check()).outcome).toBe('waiting');
    expect(requests.asked).toHaveLength(requestCount);
    clock.advance(minuteUs);
    await second.fail();
    expect(second.state().failures).toBe(2);
    expect(second.issued).toEqual([]);
    await pebble.setAddress('127.0.0.1');
    await thenSucceeds(openProgram(pebble, { clock, dataDir }), 2 * minuteUs);
    expect(requests.orders()).toBe(3);
  });

  it('without a listener: an order on request does not wait', async ({ pebble }) => {
    const closed = openProgram(pebble, { openListener: noListener });
    expect(await closed.fail()).toMatch(/could not connect to port 80 of .*\(connection: /);
    const { clock, dataDir } = closed;
    const open = openProgram(pebble, { clock, dataDir });
    expect((await open.check()).outcome).toBe('waiting');
    expect((await open.check('asked')).outcome).toBe('renewed');
    expect((await open.check('asked')).outcome).toBe('current');
  });

  it.each([200, 404, 503])('with another server that answers with status %i', async (status) => {
    const pebble = await startPebble();
    await startForeignServer(pebble, status);
    const program = openProgram(pebble, { openListener: noListener });
    const message = await program.fail();
    expect(message).toMatch(/^Another server answered for earshot\.example\.org on port 80\. Set/);
    expect(message).toContain('forward port 80 to EARSHOT_ACME_HTTP_LISTEN');
    expect(message).toContain('(unauthorized: ');
  });

  it('with nothing or a TLS proxy on port 443', async ({ pebble }) => {
    const settings = { challenge: 'tls-alpn-01' as const };
    const fail = () => openProgram(pebble, { settings, openListener: noListener }).fail();
    const advice = /port 443\b.*forward (the port|port 443) to EARSHOT_LISTEN/i;
    expect(await fail()).toMatch(advice);
    await startForeignTls(pebble, ['h2', 'http/1.1']);
    expect(await fail()).toMatch(advice);
  });

  it('with a port that cannot be opened: the failure counts, without requests to the authority', async ({
    pebble,
    requests,
  }) => {
    const openListener = () => Promise.reject(new Error('taken'));
    const closed = openProgram(pebble, { openListener });
    await closed.fail();
    expect(closed.state().failures).toBe(1);
    expect(requests.asked).toEqual([]);
    const { clock, dataDir } = closed;
    await thenSucceeds(openProgram(pebble, { clock, dataDir }), minuteUs);
  });
});

describe.skipIf(!hasPebble)('a refusal of the authority (needs pebble)', () => {
  const hmacKey = Buffer.alloc(48, 'secret').toString('base64url');
  const eab = { keyId: 'kid-1', hmacKey };

  it('of a name results in a message with the fix', async () => {
    const pebble = await startPebble({ blocked: ['blocked.example.org'] });
    const program = openProgram(pebble, { settings: { host: 'blocked.example.org' } });
    expect(await program.fail()).toMatch(
      /^localhost:\d+ does not issue certificates for blocked\.example\.org\. Correct the name in EARSHOT_PUBLIC_URL, or .*\(rejectedIdentifier: /,
    );
    expect(program.state().failures).toBe(1);
  });

  it('of an account without a binding or with a wrong key ends with the right key', async () => {
    const pebble = await startPebble({ eabKeys: { [eab.keyId]: hmacKey } });
    const requests = watchRequests(pebble);
    const without = openProgram(pebble);
    expect(await without.fail()).toMatch(
      /requires an external account binding\. Set EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY /,
    );
    // The directory requires a binding: no account is requested without one.
    expect(requests.accounts()).toBe(0);
    const { dataDir, clock } = without;
    const retry = (changed: object) =>
      openProgram(pebble, { dataDir, clock, settings: { eab: { ...eab, ...changed } } });
    const wrongKey = Buffer.alloc(48, 'wrong').toString('base64url');
    for (const wrong of [{ hmacKey: wrongKey }, { keyId: 'kid-2' }]) {
      const message = await retry(wrong).fail('asked');
      expect(message).toMatch(
        /does not accept the account\. .*correct EARSHOT_ACME_EAB_KEY_ID and /,
      );
      expect(message).not.toContain('Another server answered');
      expect(message).not.toContain(wrongKey);
      expect(message).not.toContain(hmacKey);
    }
    expect(without.state().failures).toBe(3);
    expect((await retry({}).check('asked')).outcome).toBe('renewed');
    // From now on the key identifies the account.
    expect((await openProgram(pebble, { dataDir, clock }).check('anyway')).outcome).toBe('renewed');
    expect(requests.accounts()).toBe(3);
  });

  it('of a contact results in a message about the e-mail address', async ({ pebble }) => {
    const settings = { email: 'nobody at all' };
    const message = await openProgram(pebble, { settings }).fail();
    expect(message).toMatch(/does not accept the e-mail address\. Correct EARSHOT_ACME_EMAIL\./);
    const right = { email: 'operator@mail.example.org' };
    expect((await openProgram(pebble, { settings: right }).check()).outcome).toBe('renewed');
  });
});

/** Returns true when a certificate of the chain was signed by the root of the authority. */
async function isOf({ readRoot }: Pebble, chainPem: string): Promise<boolean> {
  const root = new X509Certificate(await readRoot());
  const [, ...issuers] = chainPem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];
  return issuers.some((pem) => new X509Certificate(pem).verify(root.publicKey));
}

describe.skipIf(!hasPebble)('after a failure (needs pebble)', () => {
  it('the authority gets an order only after its staging directory has issued', async () => {
    const { pebble, staging, program, requests, setAddress, filesOf } = await startBoth();
    const { clock, check, fail, saved, state, issued } = program;
    await setAddress(elsewhere);
    await fail();
    expect(requests.production.orders()).toBe(1);
    expect(requests.staging.asked).toEqual([]);

    // A failure at staging counts, without requests to the authority.
    const requestCount = requests.production.asked.length;
    clock.advance(minuteUs);
    expect(await fail()).toContain('(connection: ');
    expect(state().failures).toBe(2);
    expect(requests.staging.orders()).toBe(1);
    expect(requests.production.asked).toHaveLength(requestCount);

    // Success at staging, failure at the authority.
    await staging.setAddress(here);
    clock.advance(2 * minuteUs);
    await fail();
    expect(state().failures).toBe(3);
    expect([requests.staging.finalized(), requests.production.orders()]).toEqual([1, 2]);
    expect([issued, requests.production.finalized()]).toEqual([[], 0]);
    expect(existsSync(program.path('certificate.json'))).toBe(false);
    if (existsSync(program.path('order.json'))) {
      expect(saved('order.json').directoryUrl).toBe(pebble.directoryUrl);
    }

    await pebble.setAddress(here);
    clock.advance(5 * minuteUs);
    expect((await check()).outcome).toBe('renewed');
    const { chain, directoryUrl } = saved('certificate.json');
    expect([directoryUrl, issued]).toEqual([pebble.directoryUrl, [chain]]);
    expect([await isOf(pebble, chain), await isOf(staging, chain)]).toEqual([true, false]);
    expect(requests.staging.finalized()).toBe(2);
    expect(filesOf().filter((name) => name.startsWith('account-'))).toHaveLength(2);

    // No rehearsal after a success.
    clock.advance(4 * 365 * dayUs);
    expect((await check()).outcome).toBe('renewed');
    expect(requests.staging.orders()).toBe(3);
  });

  it('for another reason than an unproved name, there is no rehearsal', async () => {
    const { pebble, program, requests } = await startBoth();
    await pebble.stop();
    expect(await program.fail()).toContain('cannot be reached');
    await pebble.start();
    program.clock.advance(minuteUs);
    expect((await program.check()).outcome).toBe('renewed');
    expect(requests.staging.asked).toEqual([]);
  });

  it('there is no rehearsal close to expiry', async () => {
    const { program, requests, setAddress } = await startBoth();
    const { clock, check, fail } = program;
    const first = await check();
    leaveAccount(program.dataDir);
    const endsUs = first.outcome === 'renewed' ? first.certificate.notAfter.getTime() * 1000 : 0;
    clock.set(endsUs - 30 * dayUs);
    await setAddress(elsewhere);
    await fail();
    await setAddress(here);
    clock.advance(minuteUs);
    expect((await check()).outcome).toBe('renewed');
    expect(requests.staging.asked).toEqual([]);
  });

  it('a staging directory that is down is skipped', async () => {
    const { staging, program, requests, setAddress } = await startBoth();
    const { clock, check, fail } = program;
    await setAddress(elsewhere);
    await fail();
    await setAddress(here);
    await staging.stop();
    clock.advance(minuteUs);
    expect((await check()).outcome).toBe('renewed');
    // The failed order and this one.
    expect(requests.production.orders()).toBe(2);
  });

  it('a staging directory that requires its own account binding is skipped', async () => {
    const eabKeys = { 'kid-1': Buffer.alloc(48, 'secret').toString('base64url') };
    const { program, requests, setAddress } = await startBoth({ staging: { eabKeys } });
    const { clock, check, fail } = program;
    await setAddress(elsewhere);
    await fail();
    await setAddress(here);
    clock.advance(minuteUs);
    expect((await check()).outcome).toBe('renewed');
    expect(requests.staging.orders()).toBe(0);
  });
});

describe.skipIf(!hasPebble)('a rehearsal (needs pebble)', () => {
  it('succeeds at the staging directory, leaves no files, and sends nothing to the authority', async () => {
    const { program, requests, filesOf } = await startBoth();
    expect(await testOrder(program.context)).toBe('issued');
    expect(requests.production.asked).toEqual([]);
    expect(requests.staging.finalized()).toBe(1);
    expect(filesOf()).toEqual([expect.stringMatching(/^account-/)]);
    expect(program.issued).toEqual([]);
    expect((await program.check()).outcome).toBe('renewed');
  });

  it('without a staging directory proves the name, but requests no certificate', async ({
    pebble,
    requests,
  }) => {
    const { context, check, dataDir } = openProgram(pebble);
    expect(await testOrder(context)).toBe('proved');
    expect(requests.orders()).toBe(1);
    const asked = requests.asked.map(({ what }) => what);
    expect(asked).toContain('chalZ');
    expect(asked).not.toContain('finalize-order');
    expect(asked).not.toContain('certZ');
    expect(readdirSync(join(dataDir, 'acme'))).toEqual([expect.stringMatching(/^account-/)]);
    expect((await check()).outcome).toBe('renewed');
  });

  it('that fails reports the reason, counts as no failure, and leaves the certificate unchanged', async ({
    pebble,
  }) => {
    const { context, check, saved, state, dataDir } = openProgram(pebble);
    await check();
    leaveAccount(dataDir);
    const before = [saved('certificate.json'), state()];
    await pebble.setAddress(elsewhere);
    await expect(testOrder(context)).rejects.toMatchObject({ type: 'connection' });
    expect([saved('certificate.json'), state()]).toEqual(before);
    expect((await check()).outcome).toBe('current');
  });
});

/** Addresses for the name; nothing listens at the first one. */
const elsewhere = '127.0.0.2';

const here = '127.0.0.1';

/** Starts an authority and its staging directory, which check the same ports. */
async function startBoth(options: { staging?: PebbleOptions } = {}) {
  const pebble = await startPebble();
  const { http, tls } = pebble.ports;
  const ports = { ...(await freePebblePorts()), http, tls };
  const staging = await startPebble({ ...options.staging, ports });
  const settings = { extraCaPem: `${pebble.caPem}\n${staging.caPem}` };
  const stagingUrl = staging.directoryUrl;
  const program = openProgram(pebble, { settings, stagingUrl });
  const requests = { production: watchRequests(pebble), staging: watchRequests(staging) };
  const setAddress = (ip: string) =>
    Promise.all([pebble, staging].map((one) => one.setAddress(ip)));
  const filesOf = () => readdirSync(join(program.dataDir, 'acme')).sort();
  return { pebble, staging, program, requests, setAddress, filesOf };
}
