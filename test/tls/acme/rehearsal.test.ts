/** After a failure, an order is first rehearsed where it does not count. */
import { X509Certificate } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { rehearse } from '../../../src/tls/acme/order.ts';
import {
  freePebblePorts,
  hasPebble,
  leaveAccount,
  type Pebble,
  type PebbleOptions,
  startPebble,
} from '../../helpers/pebble.ts';
import { dayUs, it, minuteUs, openProgram, watchRequests } from './pebble-world.ts';

/** True when the leaf of a chain was signed, through what is in the chain, by an authority's root. */
async function isOf({ readRoot }: Pebble, chainPem: string): Promise<boolean> {
  const root = new X509Certificate(await readRoot());
  const [, ...issuers] = chainPem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];
  return issuers.some((pem) => new X509Certificate(pem).verify(root.publicKey));
}

describe.skipIf(!hasPebble)('after a failure (needs pebble)', () => {
  it('the authority is only asked again when its staging directory has issued', async () => {
    const { pebble, staging, program, requests, setAddress, filesOf } = await startBoth();
    const { clock, look, fail, saved, state, issued } = program;
    await setAddress(elsewhere);
    await fail();
    expect(requests.production.orders()).toBe(1);
    expect(requests.staging.asked).toEqual([]);

    // It fails at staging: that counts, and costs the authority nothing.
    const asked = requests.production.asked.length;
    clock.advance(minuteUs);
    expect(await fail()).toContain('(connection: ');
    expect(state().failures).toBe(2);
    expect(requests.staging.orders()).toBe(1);
    expect(requests.production.asked).toHaveLength(asked);

    // It is well there, and fails here.
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
    expect((await look()).outcome).toBe('renewed');
    const { chain, directoryUrl } = saved('certificate.json');
    expect([directoryUrl, issued]).toEqual([pebble.directoryUrl, [chain]]);
    expect([await isOf(pebble, chain), await isOf(staging, chain)]).toEqual([true, false]);
    expect(requests.staging.finalized()).toBe(2);
    expect(filesOf().filter((name) => name.startsWith('account-'))).toHaveLength(2);

    // After a success there is nothing to rehearse.
    clock.advance(4 * 365 * dayUs);
    expect((await look()).outcome).toBe('renewed');
    expect(requests.staging.orders()).toBe(3);
  });

  it('of another kind than a name that was not proved, nothing is rehearsed', async () => {
    const { pebble, program, requests } = await startBoth();
    await pebble.stop();
    expect(await program.fail()).toContain('cannot be asked');
    await pebble.start();
    program.clock.advance(minuteUs);
    expect((await program.look()).outcome).toBe('renewed');
    expect(requests.staging.asked).toEqual([]);
  });

  it('with expiry near, nothing is rehearsed', async () => {
    const { program, requests, setAddress } = await startBoth();
    const { clock, look, fail } = program;
    const first = await look();
    leaveAccount(program.dataDir);
    const endsUs = first.outcome === 'renewed' ? first.certificate.notAfter.getTime() * 1000 : 0;
    clock.set(endsUs - 30 * dayUs);
    await setAddress(elsewhere);
    await fail();
    await setAddress(here);
    clock.advance(minuteUs);
    expect((await look()).outcome).toBe('renewed');
    expect(requests.staging.asked).toEqual([]);
  });

  it('a staging directory that is down is passed over', async () => {
    const { staging, program, requests, setAddress } = await startBoth();
    const { clock, look, fail } = program;
    await setAddress(elsewhere);
    await fail();
    await setAddress(here);
    await staging.stop();
    clock.advance(minuteUs);
    expect((await look()).outcome).toBe('renewed');
    // The one that failed, and this one.
    expect(requests.production.orders()).toBe(2);
  });

  it('one that wants a bound account of its own is passed over', async () => {
    const eabKeys = { 'kid-1': Buffer.alloc(48, 'secret').toString('base64url') };
    const { program, requests, setAddress } = await startBoth({ staging: { eabKeys } });
    const { clock, look, fail } = program;
    await setAddress(elsewhere);
    await fail();
    await setAddress(here);
    clock.advance(minuteUs);
    expect((await look()).outcome).toBe('renewed');
    expect(requests.staging.orders()).toBe(0);
  });
});

describe.skipIf(!hasPebble)('a rehearsal (needs pebble)', () => {
  it('goes through at the staging directory, leaves nothing, and asks the authority nothing', async () => {
    const { program, requests, filesOf } = await startBoth();
    expect(await rehearse(program.context)).toBe('issued');
    expect(requests.production.asked).toEqual([]);
    expect(requests.staging.finalized()).toBe(1);
    expect(filesOf()).toEqual([expect.stringMatching(/^account-/)]);
    expect(program.issued).toEqual([]);
    expect((await program.look()).outcome).toBe('renewed');
  });

  it('proves the name where there is no staging directory, and has no certificate made', async ({
    pebble,
    requests,
  }) => {
    const { context, look, dataDir } = openProgram(pebble);
    expect(await rehearse(context)).toBe('proved');
    expect(requests.orders()).toBe(1);
    const asked = requests.asked.map(({ what }) => what);
    expect(asked).toContain('chalZ');
    expect(asked).not.toContain('finalize-order');
    expect(asked).not.toContain('certZ');
    expect(readdirSync(join(dataDir, 'acme'))).toEqual([expect.stringMatching(/^account-/)]);
    expect((await look()).outcome).toBe('renewed');
  });

  it('that fails says why, counts as no failure, and leaves the certificate alone', async ({
    pebble,
  }) => {
    const { context, look, saved, state, dataDir } = openProgram(pebble);
    await look();
    leaveAccount(dataDir);
    const before = [saved('certificate.json'), state()];
    await pebble.setAddress(elsewhere);
    await expect(rehearse(context)).rejects.toMatchObject({ type: 'connection' });
    expect([saved('certificate.json'), state()]).toEqual(before);
    expect((await look()).outcome).toBe('current');
  });
});

/** Addresses for a name: at the first one nobody answers. */
const elsewhere = '127.0.0.2';

const here = '127.0.0.1';

/** The two look at the same ports, and know nothing of each other. */
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
