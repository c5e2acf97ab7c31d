/** What goes wrong with an order ends in a sentence and a later try, and then it goes well. */

import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../../src/sandbox/certificate-authority.ts';
import { lastFailureText } from '../../../src/tls/acme/renewal-state.ts';
import { hasPebble, type Pebble, startPebble } from '../../helpers/pebble.ts';
import { host, minuteUs, openProgram, type Program, watchRequests } from './pebble-world.ts';

const noDoor = async () => undefined;

/** A program that has taken the port for challenges, and answers in its own way. */
async function startStranger(pebble: Pebble, status: number): Promise<void> {
  const server = createServer((_incoming, outgoing) => {
    outgoing.writeHead(status).end('It works!');
  });
  await new Promise<void>((resolve) => server.listen(pebble.ports.http, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
}

/** An ordinary HTTPS server on the public port. */
async function startStrangeTls(pebble: Pebble, protocols: string[]): Promise<void> {
  const authority = await createCertificateAuthority({ now: Date.now });
  const { certificatePem: cert, keyPem: key } = await authority.issue({ hosts: [host] });
  const server = createTlsServer({ cert, key, ALPNProtocols: protocols }, (socket) => {
    socket.on('error', () => undefined).end();
  });
  await new Promise<void>((resolve) => server.listen(pebble.ports.tls, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
}

/** The try after a failure: not before its time, and then it is well, and forgotten. */
async function thenSucceeds(program: Program, pauseUs: number): Promise<void> {
  const { clock, look, state } = program;
  const failures = state().failures;
  clock.advance(pauseUs - 1);
  expect(await look()).toMatchObject({ outcome: 'waiting', untilUs: clock.nowUs() + 1 });
  expect(state().failures).toBe(failures);
  clock.advance(1);
  expect((await look()).outcome).toBe('renewed');
  expect(state()).toMatchObject({
    failures: 0,
    nextTryAtUs: null,
    lastSuccessAtUs: clock.nowUs(),
    issuedAtUs: [clock.nowUs()],
  });
}

describe.skipIf(!hasPebble)('a name that cannot be proved (needs pebble)', () => {
  it('because it leads elsewhere: the failures are counted on disk, until it leads here', async () => {
    const pebble = await startPebble();
    const requests = watchRequests(pebble);
    await pebble.setAddress('127.0.0.2');
    const first = openProgram(pebble);
    const message = await first.fail();
    expect(message).toMatch(/^Port 80 of earshot\.example\.org could not be reached\. Open it/);
    expect(message).toMatch(/\(connection: .*127\.0\.0\.2/);
    expect(first.state()).toMatchObject({
      failures: 1,
      lastFailure: { atUs: first.clock.nowUs() },
      nextTryAtUs: first.clock.nowUs() + minuteUs,
    });
    expect(lastFailureText(first.state())).toBe(message);
    // A restart knows of it, and asks nobody.
    const { clock, dataDir } = first;
    const second = openProgram(pebble, { clock, dataDir });
    const asked = requests.asked.length;
    expect((await second.look()).outcome).toBe('waiting');
    expect(requests.asked).toHaveLength(asked);
    clock.advance(minuteUs);
    await second.fail();
    expect(second.state().failures).toBe(2);
    expect(second.issued).toEqual([]);
    await pebble.setAddress('127.0.0.1');
    await thenSucceeds(openProgram(pebble, { clock, dataDir }), 2 * minuteUs);
    expect(requests.orders()).toBe(3);
  });

  it('because nobody is on the port: who asks need not wait', async () => {
    const pebble = await startPebble();
    const closed = openProgram(pebble, { openDoor: noDoor });
    expect(await closed.fail()).toMatch(/^Port 80 of .* could not be reached.*\(connection: /);
    const { clock, dataDir } = closed;
    const open = openProgram(pebble, { clock, dataDir });
    expect((await open.look()).outcome).toBe('waiting');
    expect((await open.look('asked')).outcome).toBe('renewed');
    expect((await open.look('asked')).outcome).toBe('current');
  });

  it.each([200, 404, 503])('because something else answers with status %i', async (status) => {
    const pebble = await startPebble();
    await startStranger(pebble, status);
    const program = openProgram(pebble, { openDoor: noDoor });
    const message = await program.fail();
    expect(message).toMatch(/^Something else answered for earshot\.example\.org on port 80\. Let/);
    expect(message).toContain('let port 80 lead to EARSHOT_ACME_HTTP_LISTEN');
    expect(message).toContain('(unauthorized: ');
  });

  it('because port 443 leads to nobody, or to a proxy that ends HTTPS', async () => {
    const pebble = await startPebble();
    const settings = { challenge: 'tls-alpn-01' as const };
    const fail = () => openProgram(pebble, { settings, openDoor: noDoor }).fail();
    const advice = /port 443\b.*let (that port|port 443) lead to EARSHOT_LISTEN/i;
    expect(await fail()).toMatch(advice);
    await startStrangeTls(pebble, ['h2', 'http/1.1']);
    expect(await fail()).toMatch(advice);
  });

  it('because the port cannot be opened: that counts, and costs the authority nothing', async () => {
    const pebble = await startPebble();
    const requests = watchRequests(pebble);
    const openDoor = () => Promise.reject(new Error('taken'));
    const closed = openProgram(pebble, { openDoor });
    await closed.fail();
    expect(closed.state().failures).toBe(1);
    expect(requests.asked).toEqual([]);
    const { clock, dataDir } = closed;
    await thenSucceeds(openProgram(pebble, { clock, dataDir }), minuteUs);
  });
});

describe.skipIf(!hasPebble)('an authority that refuses (needs pebble)', () => {
  const hmacKey = Buffer.alloc(48, 'secret').toString('base64url');
  const eab = { keyId: 'kid-1', hmacKey };

  it('a name: the sentence says what to correct', async () => {
    const pebble = await startPebble({ blocked: ['blocked.example.org'] });
    const program = openProgram(pebble, { settings: { host: 'blocked.example.org' } });
    expect(await program.fail()).toMatch(
      /^localhost:\d+ issues nothing for blocked\.example\.org\. Correct the name in EARSHOT_PUBLIC_URL, or .*\(rejectedIdentifier: /,
    );
    expect(program.state().failures).toBe(1);
  });

  it('an account that is not bound, or bound by a wrong key, and takes the right one', async () => {
    const pebble = await startPebble({ eabKeys: { [eab.keyId]: hmacKey } });
    const requests = watchRequests(pebble);
    const without = openProgram(pebble);
    expect(await without.fail()).toMatch(
      /asks for an account that is bound to one of yours there\. Set EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY /,
    );
    // The directory says so: no account is asked for in vain.
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
      expect(message).not.toContain('Something else answered');
      expect(message).not.toContain(wrongKey);
      expect(message).not.toContain(hmacKey);
    }
    expect(without.state().failures).toBe(3);
    expect((await retry({}).look('asked')).outcome).toBe('renewed');
    // From now on the account is known by its key alone.
    expect((await openProgram(pebble, { dataDir, clock }).look('anyway')).outcome).toBe('renewed');
    expect(requests.accounts()).toBe(3);
  });

  it('a contact: the sentence names the e-mail address', async () => {
    const pebble = await startPebble();
    const settings = { email: 'nobody at all' };
    const message = await openProgram(pebble, { settings }).fail();
    expect(message).toMatch(/does not take the e-mail address\. Correct EARSHOT_ACME_EMAIL\./);
    const right = { email: 'operator@mail.example.org' };
    expect((await openProgram(pebble, { settings: right }).look()).outcome).toBe('renewed');
  });
});
