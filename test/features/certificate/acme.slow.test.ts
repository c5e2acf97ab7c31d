/** Certificates from Pebble and from a stub: first issue, renewal, failures and restarts. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { startChallengeListener } from '../../../src/features/certificate/challenge.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { hasPebble, type PebbleOptions, startPebble } from '../../helpers/pebble.ts';
import { startStubAuthority } from '../../helpers/stub-authority.ts';
import {
  dayUs,
  minuteUs,
  openProgram,
  serialOf,
  servedSerial,
  startReceiver,
} from './acme-context.ts';

const soon = { timeout: 15_000 };

async function openPebble(options: PebbleOptions = {}) {
  const pebble = await startPebble(options);
  const at = (port: number) => ({ host: '127.0.0.1', port });
  return { pebble, own: { httpListen: at(pebble.ports.http), listen: at(pebble.ports.tls) } };
}

describe.skipIf(!hasPebble)('a receiver (needs pebble)', () => {
  it.each(['http-01', 'tls-alpn-01'] as const)(
    'gets its first certificate by %s without a restart, although a fifth of the nonces is refused',
    async (challenge) => {
      const { pebble, own } = await openPebble({ nonceReject: 20 });
      const { dataDir, serial, lines } = await startReceiver(pebble, { ...own, challenge });
      await expect.poll(serial, soon).not.toBeNull();
      expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
      for (const file of ['acme/state.json', 'acme/certificate.json']) {
        expect(statSync(join(dataDir, file)).mode & 0o777).toBe(0o600);
      }
      // Nothing but handshakes of a current order is answered.
      expect(await servedSerial(own.listen.port, 'acme-tls/1')).toBeNull();
    },
    30_000,
  );

  it('serves the saved certificate after a restart, and renews it in time', async () => {
    const { pebble, own } = await openPebble({ validitySeconds: 90 * 86_400 });
    const first = await startReceiver(pebble, own);
    await expect.poll(first.serial, soon).not.toBeNull();
    const serial = await first.serial();
    await first.close();
    const again = await startReceiver(pebble, { ...own, dataDir: first.dataDir });
    expect(await again.serial()).toBe(serial);
    again.clock.us += 59 * dayUs;
    const program = openProgram(pebble, { ...own, dataDir: first.dataDir, clock: again.clock });
    expect(await program.check('asked')).toBeNull();
    again.clock.us += 2 * dayUs;
    await expect.poll(again.serial, soon).not.toBe(serial);
  }, 40_000);

  it('keeps its valid certificate while renewals fail, and waits longer after each failure', async () => {
    const { pebble, own } = await openPebble({ validitySeconds: 90 * 86_400 });
    const { dataDir, clock, serial, close } = await startReceiver(pebble, own);
    await expect.poll(serial, soon).not.toBeNull();
    const first = await serial();
    await pebble.stop();
    clock.us += 61 * dayUs;
    const program = openProgram(pebble, { ...own, dataDir, clock });
    await vi.waitFor(() => expect(program.state().failures).toBe(1), soon);
    expect(program.state().nextAttemptAtUs).toBe(clock.us + minuteUs);
    expect(program.state().lastFailure?.text).toMatch(/unreachable: the connection was refused/);
    await close();
    // The delay survives a restart, but does not apply to `certificate renew`.
    expect(await program.check()).toBeNull();
    await expect(program.check('asked')).rejects.toThrow(/connection was refused/);
    expect(program.state()).toMatchObject({
      failures: 2,
      nextAttemptAtUs: clock.us + 2 * minuteUs,
    });
    expect(serialOf(program.certificate())).toBe(first);
    await pebble.start();
    clock.us += 2 * minuteUs;
    expect(await program.check()).not.toBeNull();
    expect(program.state()).toMatchObject({ failures: 0, lastFailure: null });
  }, 40_000);

  it('serves a certificate of another process, and orders for another name at once', async () => {
    const { pebble, own } = await openPebble({ validitySeconds: 90 * 86_400 });
    const { dataDir, serial, close } = await startReceiver(pebble, own);
    await expect.poll(serial, soon).not.toBeNull();
    const renewed = await openProgram(pebble, { ...own, dataDir }).check('anyway');
    await expect.poll(serial, soon).toBe(serialOf(renewed));
    await close();
    const moved = openProgram(pebble, { ...own, dataDir, host: 'other.example.org' });
    const { accountKey } = moved.state();
    expect((await moved.check())?.names).toEqual(['other.example.org']);
    expect(moved.state().accountKey).toBe(accountKey);
  }, 40_000);
});

it.skipIf(!hasPebble)(
  'an external account is required, and accepted (needs pebble)',
  async () => {
    const hmacKey = 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W';
    const { pebble, own } = await openPebble({ eabKeys: { kid: hmacKey } });
    await expect(openProgram(pebble, own).check()).rejects.toThrow(/externalAccountRequired/);
    const program = openProgram(pebble, { ...own, eab: { keyId: 'kid', hmacKey } });
    expect(await program.check()).not.toBeNull();
  },
  20_000,
);

it.each([
  ['for another name', { issueFor: 'other.example.org' }, /is for another name/],
  ['that has expired', { lifetimeMs: -1_000 }, /has expired/],
])('a certificate %s is refused, and replaces nothing', async (_title, options, words) => {
  const authority = await startStubAuthority({ nowMs: Date.now, ...options });
  const program = openProgram(authority);
  await expect(program.check()).rejects.toThrow(words);
  expect(program.certificate()).toBeNull();
  expect(program.state().failures).toBe(1);
});

it('an authority with renewal information is asked once a day, and determines an earlier renewal', async () => {
  const clock = { us: Date.UTC(2026, 4, 1, 12) * 1000 };
  let start = new Date(clock.us / 1000 + 20 * 86_400_000).toISOString();
  const renewalInfo = () => ({ start, end: start });
  const authority = await startStubAuthority({ nowMs: () => clock.us / 1000, renewalInfo });
  const program = openProgram(authority, { clock });
  const first = await program.check();
  expect(first).not.toBeNull();
  for (let day = 0; day < 19; day += 1) {
    expect(await program.check()).toBeNull();
    expect(await program.check()).toBeNull();
    clock.us += dayUs;
  }
  expect(authority.count('renewalInfo')).toBe(19);
  // An unreadable window changes nothing.
  start = 'soon';
  clock.us += 1.5 * dayUs;
  expect(await program.check()).not.toBeNull();
  // A window in the past, as of a faulty authority, does not lead to orders without end.
  start = new Date(0).toISOString();
  const orders = authority.count('newOrder');
  for (let hour = 0; hour < 24 * 7; hour += 1) {
    clock.us += 60 * minuteUs;
    await program.check();
  }
  expect(authority.count('newOrder') - orders).toBeLessThan(5);
});

it('the challenge listener answers nothing without an order, and a port in use is reported', async () => {
  const port = await freePort();
  const { dataDir } = openProgram({ directoryUrl: 'https://authority.example', caPem: '' });
  const httpListen = { host: '127.0.0.1', port };
  const listener = await startChallengeListener(dataDir, { httpListen });
  for (const path of ['', '/.well-known/acme-challenge/', '/.well-known/acme-challenge/../x']) {
    expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(404);
  }
  const other = await startStubAuthority({ nowMs: Date.now, unproved: true });
  const program = openProgram(other, { httpListen });
  await expect(program.check()).rejects.toThrow(/in use, not permitted/);
  await listener.close(0);
  expect(await program.check('asked')).not.toBeNull();
});
