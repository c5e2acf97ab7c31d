/** Rotation of the endpoint credentials: no refused push, whatever is cut and repeated. */
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isDigestOf } from '../../src/admin/changes.ts';
import { times } from '../helpers/thorough.ts';
import { arbitraryCut } from './arbitrary-account.ts';
import { openRotation, type RotationSituation, type TestedRotation } from './rotation.ts';
import {
  managed,
  otherCredentials,
  otherDigest,
  publicUrl,
  registrationOf,
  unmanaged,
} from './samples.ts';

const before = { credentials: otherCredentials };
const alps = managed(before);
const baltic = managed({ ...before, name: 'baltic' });
const byHand = managed({ ...before, id: 'id-by-hand' });
const known = [
  registrationOf({ credentialsDigest: otherDigest }),
  registrationOf({ name: 'baltic', credentialsDigest: otherDigest }),
];
const first = { username: 'earshot-1', password: 'made-1' };

async function openSetUp(situation: RotationSituation): Promise<TestedRotation> {
  const rotation = await openRotation({ registrations: known, ...situation });
  onTestFinished(rotation.planned.close);
  return rotation;
}

const usernames = ({ files }: TestedRotation) =>
  files.map(({ pairs }) => pairs.map(({ username }) => username).join(' '));

/** Interval of deliveries in seconds; 1,000,000 for none. */
const every = fc.constantFrom(1, 3, 20, 100, 1_000_000);
const situations = fc
  .record({
    every: fc.tuple(every, every, every),
    status: fc.constantFrom('running', 'paused'),
    isByHand: fc.boolean(),
    latencySeconds: fc.nat(25),
    noticeSeconds: fc.integer({ min: 1, max: 7 }),
    waitSeconds: fc.integer({ min: 60, max: 200 }),
  })
  .map(
    ({ every: [one, two, three], status, isByHand, ...rest }): RotationSituation => ({
      ...rest,
      subscriptions: [alps, { ...baltic, status }, unmanaged(), ...(isByHand ? [byHand] : [])],
      registrations: known,
      limits: { runningMax: 4, totalMax: 10 },
      deliverEverySeconds: { 'id-alps': one, 'id-baltic': two, 'id-by-hand': three },
    }),
  );

describe('a rotation', () => {
  it('refuses no push and ends with only the new pair, also when it is cut and repeated', async () => {
    await fc.assert(
      fc.asyncProperty(situations, fc.option(arbitraryCut(60)), async (situation, cut) => {
        const rotation = await openRotation(situation);
        const { catalogue, administration } = rotation.planned;
        await rotation.rotate(cut ?? undefined).catch(() => undefined);
        rotation.pass(40);
        await rotation.rotate();
        rotation.pass(60);
        expect(rotation.refused).toEqual([]);
        const [pair, ...others] = rotation.files.at(-1)?.pairs ?? [];
        expect(others).toEqual([]);
        expect(rotation.accepted()).toEqual([pair]);
        for (const one of catalogue.subscriptions()) {
          if (one.id === 'id-unmanaged') expect(one).toEqual(unmanaged());
          else expect(one.credentials).toEqual(pair);
        }
        for (const { credentialsDigest } of await administration.registrations()) {
          expect(pair && isDigestOf(credentialsDigest, pair)).toBe(true);
        }
        rotation.planned.close();
      }),
      { numRuns: times(20, 400) },
    );
  }, 600_000);

  it('is recorded without the passwords, and waits for the receiver before it changes anything', async () => {
    const rotation = await openSetUp({ subscriptions: [alps], noticeSeconds: 7, waitSeconds: 40 });
    await rotation.rotate();
    const calls = rotation.calls();
    const probes = calls.slice(0, calls.indexOf('client.edit'));
    expect(probes.filter((call) => call === 'process.probe').length).toBeGreaterThan(5);
    const history = await rotation.planned.administration.history({ limit: 9 });
    expect(history).toMatchObject([
      { action: 'rotated', actor: 'credentials', subscription: 'alps' },
    ]);
    const text = JSON.stringify([rotation.reports, history]);
    for (const { password } of [first, otherCredentials])
      expect(text).not.toContain(`"${password}`);
  });

  it('ends after the maximum wait, and names subscriptions without deliveries', async () => {
    const rotation = await openSetUp({
      subscriptions: [alps, baltic],
      deliverEverySeconds: { 'id-alps': 5 },
      waitSeconds: 120,
    });
    await rotation.rotate();
    const [, both, only] = rotation.files.map(({ atUs }) => atUs);
    expect(((only ?? 0) - (both ?? 0)) / 1e6).toBeGreaterThanOrEqual(120);
    expect(rotation.reports.join()).toMatch(/No delivery arrived for baltic/);
  });

  it('keeps the old pair while it is used, and is continued by a later rotation', async () => {
    // An unmanaged subscription delivers to the receiver with the old pair.
    const endpoint = 'https://alias.example.org/notifications/alps';
    const unnamed = managed({ ...before, id: 'id-unnamed', endpoint });
    const rotation = await openSetUp({
      subscriptions: [alps, unnamed],
      deliverEverySeconds: { 'id-alps': 5, 'id-unnamed': 20 },
      waitSeconds: 120,
    });
    await expect(rotation.rotate()).rejects.toMatchObject({ code: 'unavailable' });
    expect(rotation.accepted()).toEqual([otherCredentials, first]);
    rotation.deliver({ 'id-alps': 5 });
    await rotation.rotate();
    expect(usernames(rotation)).toEqual(['earlier', 'earlier earshot-1', 'earshot-1']);
    expect(rotation.refused).toEqual([]);
  });

  it('is refused if it would lock out a subscription without a name', async () => {
    const endpoint = `${publicUrl}/notifications`;
    const unnamed = managed({ ...before, id: 'id-unnamed', endpoint });
    const rotation = await openSetUp({ subscriptions: [alps, unnamed] });
    await expect(rotation.rotate()).rejects.toMatchObject({ code: 'conflict' });
    expect(rotation.accepted()).toEqual([otherCredentials]);
  });

  it.each([
    ['does not reload the file', { noticeSeconds: 1_000 }, 40],
    ['is down', { isDown: true }, 3],
  ])('changes nothing in the catalogue if the receiver %s', async (_, situation, probes) => {
    const rotation = await openSetUp({ subscriptions: [alps], ...situation });
    await expect(rotation.rotate()).rejects.toMatchObject({ code: 'unavailable' });
    expect(rotation.calls().filter((call) => call === 'process.probe')).toHaveLength(probes);
    expect(rotation.planned.catalogue.writes).toEqual([]);
    expect(rotation.files.at(-1)?.pairs).toEqual([otherCredentials, first]);
  });
});
