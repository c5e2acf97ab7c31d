/** A certificate that is not what was ordered: refused, and the old one stays. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createCertificateAuthority } from '../../../src/sandbox/certificate-authority.ts';
import { dayUs, failureOf, orderAtStub } from '../../helpers/order-at-stub.ts';

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
  expect((await failureOf(look())).message).toMatch(message);
  expect(served).toHaveLength(1);
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect(await world.states.read()).toMatchObject({ failures: 1 });
});

it('a certificate for another name is refused, and none is served', async () => {
  const { look, served, world } = await orderAtStub({ issueFor: 'other.example.org' });
  expect((await failureOf(look())).message).toMatch(
    /the certificate is not for earshot\.example\.org\)$/,
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
  expect(await look()).toEqual({ outcome: 'waiting', untilUs: (issuedAtUs[0] ?? 0) + dayUs });
  expect(authority.count('newOrder')).toBe(1);
});
