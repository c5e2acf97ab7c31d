/** A certificate that is not what was ordered: refused, and the old one stays. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { errorText } from '../../../src/domain/app-error.ts';
import { createCertificateAuthority } from '../../../src/sandbox/certificate-authority.ts';
import {
  dayUs,
  failure,
  failureOf,
  openOrders,
  orderAtStub,
  startUs,
} from '../../helpers/order-at-stub.ts';
import { startStubAuthority } from '../../helpers/stub-authority.ts';

const other = await createCertificateAuthority({ now: Date.now });
const withAnotherKey = await other.issue({ hosts: ['earshot.example.org'] });

it.each([
  ['with another key', withAnotherKey.certificatePem, /does not belong to the certificate/],
  ['that is no PEM', 'Thank you for your order.', /does not hold a PEM certificate/],
  ['of no certificate at all', '', /does not hold a PEM certificate|not as RFC 8555/],
  [
    'that breaks off',
    withAnotherKey.certificatePem.slice(0, 200),
    /does not hold a PEM certificate/,
  ],
  ['that is a key', withAnotherKey.keyPem, /does not hold a PEM certificate/],
])('a chain %s is refused, and the old one stays', async (_title, chain, message) => {
  const { authority, look, served, clock, dataDir, world } = await orderAtStub();
  await look();
  const file = join(dataDir, 'acme', 'certificate.json');
  const before = readFileSync(file, 'utf8');
  authority.break('certificate', (answer) => ({ ...answer, body: chain }));
  clock.us += 80 * dayUs;
  expect(errorText(await failureOf(look()))).toMatch(message);
  expect(served).toHaveLength(1);
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect(await world.states.read()).toMatchObject({ failures: 1 });
});

it('a certificate for another name is refused, and none is served', async () => {
  const { look, served, world } = await orderAtStub({ issueFor: 'other.example.org' });
  expect(errorText(await failureOf(look()))).toMatch(
    /issued a certificate that cannot be used\..*it is not for earshot\.example\.org\)$/,
  );
  expect(served).toEqual([]);
  expect(await world.folder.readCertificate()).toBeNull();
});

it('certificates that are over at once do not make a storm of orders', async () => {
  const { authority, look, clock, world } = await orderAtStub({ lifetimeMs: 1_000 });
  await look();
  const state = await world.states.read();
  // As after a bad day: the limit of such certificates is reached, and not passed.
  const issuedAtUs = Array.from({ length: 96 }, (_, i) => clock.us - 95 + i);
  await world.states.write({ ...state, issuedAtUs });
  clock.us += 10_000_000;
  expect(await look()).toMatchObject({ outcome: 'waiting', untilUs: (issuedAtUs[0] ?? 0) + dayUs });
  expect(authority.count('newOrder')).toBe(1);
});

it('a certificate that is over does not take the place of a good one', async () => {
  const skew = { ms: 0 };
  const clock = { us: startUs };
  const nowMs = () => clock.us / 1000 - skew.ms;
  const authority = await startStubAuthority({ nowMs });
  const { look, served, world } = openOrders(authority, clock);
  await look();
  skew.ms = 400 * 86_400_000;
  clock.us += 61 * dayUs;
  expect(errorText(await failureOf(look()))).toMatch(/cannot be used\..*it is over already\)$/);
  expect(served).toHaveLength(1);
  expect((await world.folder.readCertificate())?.cert).toBe(served[0]?.cert);
});

it('what is issued in vain counts: five orders a day, and no more', async () => {
  const { authority, look, clock } = await orderAtStub({ issueFor: 'other.example.org' });
  for (let tenMinutes = 0; tenMinutes < 6 * 24; tenMinutes += 1) {
    await look().catch(() => undefined);
    clock.us += 600_000_000;
  }
  expect(authority.count('finalize')).toBe(5);
});

it('an order whose certificate is fetched at a later try counts once', async () => {
  const { authority, look, clock, world } = await orderAtStub();
  authority.break('certificate', failure(500), 2);
  for (let tries = 0; tries < 2; tries += 1) {
    await failureOf(look());
    clock.us += 3_600_000_000;
  }
  expect((await look()).outcome).toBe('renewed');
  expect((await world.states.read()).issuedAtUs).toHaveLength(1);
  expect(authority.count('newOrder')).toBe(1);
});

it('the last certificate of the day is fetched, though the limit is reached by it', async () => {
  const { authority, look, clock, world } = await orderAtStub();
  const state = await world.states.read();
  const issuedAtUs = [1, 2, 3, 4].map((minutes) => clock.us - minutes * 60_000_000);
  await world.states.write({ ...state, issuedAtUs });
  authority.break('certificate', failure(500), 1);
  await failureOf(look());
  expect((await world.states.read()).issuedAtUs).toHaveLength(5);
  clock.us += 3_600_000_000;
  expect((await look()).outcome).toBe('renewed');
  expect(authority.count('newOrder')).toBe(1);
  // Another one is over the limit.
  expect(errorText(await failureOf(look('anyway')))).toMatch(/So many certificates were issued/);
});
