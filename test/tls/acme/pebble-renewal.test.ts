/** When a certificate is renewed: by its share of life, after changes, and once for all programs. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { renew } from '../../../src/tls/acme/renew.ts';
import { hasPebble, type Pebble, startPebble } from '../../helpers/pebble.ts';
import { openProgram, watchRequests } from './pebble-world.ts';

const days = (count: number) => count * 24 * 3600;

/** A program that has its first certificate. */
async function withCertificate(pebble: Pebble) {
  const program = openProgram(pebble);
  expect((await program.look()).outcome).toBe('renewed');
  const shown = await program.look();
  if (shown.outcome !== 'current') throw new Error(`It is ${shown.outcome}.`);
  return { ...program, certificate: shown.certificate, due: shown.due };
}

describe.skipIf(!hasPebble)('a certificate (needs pebble)', () => {
  it.each([
    ['90 days, with a third left', days(90), 1 / 3],
    ['six hours, with half of them left', 6 * 3600, 1 / 2],
  ])('that lives for %s, is renewed once', async (_, validitySeconds, shareLeft) => {
    const pebble = await startPebble({ validitySeconds });
    const requests = watchRequests(pebble);
    const { clock, look, certificate, due, saved } = await withCertificate(pebble);
    const lifetimeMs = certificate.notAfter.getTime() - certificate.notBefore.getTime();
    const leftMs = certificate.notAfter.getTime() - due.atUs / 1000;
    expect(due.because).toBe('share');
    expect(leftMs / lifetimeMs).toBeGreaterThanOrEqual(shareLeft - 0.0001);
    expect(leftMs / lifetimeMs).toBeLessThanOrEqual(shareLeft + 0.0201);
    clock.set(due.atUs - 1);
    expect((await look()).outcome).toBe('current');
    expect((await look('asked')).outcome).toBe('current');
    expect(requests.orders()).toBe(1);
    clock.set(due.atUs);
    expect((await look()).outcome).toBe('renewed');
    expect(saved('certificate.json').chain).not.toBe(certificate.cert);
    for (let i = 0; i < 5; i += 1) await look();
    expect(requests.orders()).toBe(2);
  });

  it('is ordered at once for another name, and by another authority', async () => {
    const [pebble, other] = [await startPebble(), await startPebble()];
    const { clock, dataDir, saved } = await withCertificate(pebble);
    const settings = { host: 'other.example.org' };
    const renamed = await openProgram(pebble, { clock, dataDir, settings }).look();
    expect(renamed.outcome === 'renewed' && renamed.certificate.covers(settings.host)).toBe(true);
    const moved = openProgram(other, { clock, dataDir, settings });
    expect((await moved.look()).outcome).toBe('renewed');
    expect(saved('certificate.json').directoryUrl).toBe(other.directoryUrl);
    expect((await moved.look()).outcome).toBe('current');
    const names = readdirSync(join(dataDir, 'acme'));
    expect(names.filter((name) => name.startsWith('account-'))).toHaveLength(2);
  });

  it('is ordered once by two programs that want it at the same time', async () => {
    const pebble = await startPebble();
    const requests = watchRequests(pebble);
    const one = openProgram(pebble);
    const { clock, dataDir } = one;
    const two = openProgram(pebble, { clock, dataDir });
    const ends = await Promise.allSettled([one.look(), two.look()]);
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(ends.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'conflict' },
    });
    expect(requests.orders()).toBe(1);
    // Who waits for the other takes what the other has got, even when it wants one anyway.
    const waiting = ({ context, takeLock }: typeof one) =>
      renew(context, { when: 'anyway', takeLock, lockWaitMs: 10_000, onIssued: () => undefined });
    const outcomes = await Promise.all([waiting(one), waiting(two)]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['current', 'renewed']);
    expect(requests.orders()).toBe(2);
  });
});
