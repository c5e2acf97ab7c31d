/** Rotation of the endpoint credentials: order of steps, removal of the old pair, and cuts at every call. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { isDigestOf } from '../../src/admin/account-context.ts';
import { AppError } from '../../src/domain/app-error.ts';
import { isThorough } from '../helpers/thorough.ts';
import { openRotation, type RotationSituation, type TestedRotation } from './rotation.ts';
import {
  managed,
  otherCredentials,
  otherDigest,
  publicUrl,
  registrationOf,
  unmanaged,
} from './samples.ts';
import type { Cut } from './set-up.ts';

const before = { credentials: otherCredentials };
const alps = managed(before);
const baltic = managed({ ...before, name: 'baltic' });
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

describe('a rotation', () => {
  it('keeps both pairs accepted until the catalogue uses the new one', async () => {
    const rotation = await openSetUp({
      subscriptions: [alps, baltic, unmanaged()],
      deliverEverySeconds: { 'id-alps': 1, 'id-baltic': 3 },
      latencySeconds: 20,
    });
    await rotation.rotate();
    expect(usernames(rotation)).toEqual(['earlier', 'earlier earshot-1', 'earshot-1']);
    rotation.pass(60);
    expect(rotation.refused).toEqual([]);
    expect(rotation.accepted()).toEqual([first]);
    const [one, other, foreign] = rotation.planned.catalogue.subscriptions();
    expect([one?.credentials, other?.credentials]).toEqual([first, first]);
    expect(foreign).toEqual(unmanaged());
  });

  it('updates the catalogue only after the receiver accepts the new pair', async () => {
    const rotation = await openSetUp({ subscriptions: [alps], noticeSeconds: 7 });
    await rotation.rotate();
    const calls = rotation.calls();
    const given = calls.indexOf('client.edit');
    expect(calls.indexOf('process.writePairs')).toBeLessThan(calls.indexOf('process.probe'));
    expect(calls.slice(0, given).filter((call) => call === 'process.probe').length).toBeGreaterThan(
      5,
    );
    expect(calls.slice(given)).toContain('process.writePairs');
  });

  it('updates paused subscriptions too, and records each update', async () => {
    const paused = managed({ ...before, name: 'baltic', status: 'paused' });
    const rotation = await openSetUp({ subscriptions: [alps, paused], waitSeconds: 40 });
    await rotation.rotate();
    const { catalogue, administration } = rotation.planned;
    expect(catalogue.writes).toEqual(['edit id-alps credentials', 'edit id-baltic credentials']);
    for (const registration of await administration.registrations()) {
      expect(isDigestOf(registration.credentialsDigest, first)).toBe(true);
      expect(registration).toMatchObject({ status: 'running', unfinished: false });
    }
    expect(await administration.history({ limit: 9 })).toMatchObject([
      { action: 'rotated', actor: 'credentials', subscription: 'baltic' },
      { action: 'rotated', actor: 'credentials', subscription: 'alps' },
    ]);
  });

  it('of an account without managed subscriptions changes only the file', async () => {
    const rotation = await openSetUp({
      subscriptions: [unmanaged()],
      registrations: [],
      waitSeconds: 5,
    });
    await rotation.rotate();
    expect(rotation.planned.catalogue.writes).toEqual([]);
    expect(rotation.files.at(-1)?.pairs).toEqual([first]);
  });

  it('updates a subscription that a person recreated during the rotation', async () => {
    const situation = { subscriptions: [alps], waitSeconds: 40 };
    const uncut = await openSetUp(situation);
    await uncut.rotate();
    // After the update of the catalogue, before the removal of the old pair.
    const call = uncut.calls().indexOf('administration.deliveryMarks');
    const rotation = await openSetUp(situation);
    const { catalogue } = rotation.planned;
    await rotation.rotate({ call, when: 'before', how: 'killed' }).catch(() => undefined);
    expect(catalogue.subscriptions()).toMatchObject([{ id: 'id-alps', credentials: first }]);
    catalogue.drop('id-alps');
    catalogue.put(managed({ ...before, id: 'id-by-hand' }));
    await rotation.rotate();
    expect(catalogue.subscriptions()).toMatchObject([{ id: 'id-by-hand', credentials: first }]);
  });

  it('updates every subscription under our path, even one that a person created', async () => {
    const byHand = managed({ ...before, id: 'id-by-hand' });
    const rotation = await openSetUp({ subscriptions: [byHand], waitSeconds: 40 });
    await rotation.rotate();
    expect(rotation.planned.catalogue.subscriptions()).toMatchObject([{ credentials: first }]);
  });

  it('without a probe leaves the receiver time to reload', async () => {
    const rotation = await openSetUp({
      subscriptions: [alps],
      deliverEverySeconds: { 'id-alps': 1 },
      skipProbe: true,
      latencySeconds: 0,
    });
    await rotation.rotate();
    rotation.pass(5);
    expect(rotation.calls()).not.toContain('process.probe');
    expect(rotation.refused).toEqual([]);
  });

  it('shows no password', async () => {
    const rotation = await openSetUp({ subscriptions: [alps], waitSeconds: 40 });
    await rotation.rotate();
    const history = await rotation.planned.administration.history({ limit: 9 });
    const text = JSON.stringify([rotation.reports, history]);
    expect(text).not.toContain(first.password);
    expect(text).not.toContain(`"${otherCredentials.password}"`);
  });
});

describe('the old pair of credentials', () => {
  it('is removed half a minute after all running subscriptions have used the new one', async () => {
    const rotation = await openSetUp({
      subscriptions: [alps, baltic],
      deliverEverySeconds: { 'id-alps': 1, 'id-baltic': 100 },
    });
    await rotation.rotate();
    const [, both, only] = rotation.files.map(({ atUs }) => atUs);
    const seconds = ((only ?? 0) - (both ?? 0)) / 1e6;
    // The first use by "baltic" is the event of the hundredth second.
    expect(seconds).toBeGreaterThan(100);
    expect(seconds).toBeLessThan(110);
  });

  it('is kept for half a minute after its last use', async () => {
    const rotation = await openSetUp({
      subscriptions: [alps],
      deliverEverySeconds: { 'id-alps': 1 },
      latencySeconds: 25,
    });
    await rotation.rotate();
    const lastUs = rotation.lastAcceptedUs.get(otherCredentials.username) ?? 0;
    expect(rotation.files.at(-1)?.atUs).toBeGreaterThanOrEqual(lastUs + 30e6);
    expect(rotation.refused).toEqual([]);
  });

  it('is removed after the maximum wait, and a report names subscriptions without deliveries', async () => {
    const rotation = await openSetUp({
      subscriptions: [alps, baltic],
      deliverEverySeconds: { 'id-alps': 5 },
      waitSeconds: 120,
    });
    await rotation.rotate();
    const [, both, only] = rotation.files.map(({ atUs }) => atUs);
    expect(((only ?? 0) - (both ?? 0)) / 1e6).toBeGreaterThanOrEqual(120);
    expect(rotation.reports.join()).toMatch(/No delivery arrived for baltic/);
    expect(rotation.reports.join()).not.toMatch(/No delivery arrived for .*alps/);
  });

  it('is kept while it is used, and removed by a later rotation', async () => {
    // An unmanaged subscription delivers to the receiver with the old pair.
    const endpoint = 'https://alias.example.org/notifications/alps';
    const unnamed = managed({ ...before, id: 'id-unnamed', endpoint });
    const rotation = await openSetUp({
      subscriptions: [alps, unnamed],
      deliverEverySeconds: { 'id-alps': 5, 'id-unnamed': 20 },
      waitSeconds: 120,
    });
    const refusal = rotation.rotate();
    await expect(refusal).rejects.toMatchObject({ code: 'unavailable' });
    await expect(refusal).rejects.toThrow('old credentials');
    expect(rotation.accepted()).toEqual([otherCredentials, first]);
    rotation.deliver({ 'id-alps': 5 });
    await rotation.rotate();
    expect(usernames(rotation)).toEqual(['earlier', 'earlier earshot-1', 'earshot-1']);
    expect(rotation.reports).toContain('Resuming an interrupted rotation.');
    rotation.pass(60);
    expect(rotation.refused).toEqual([]);
  });
});

describe('a subscription without a name under the public URL', () => {
  it('prevents a rotation, because its deliveries would be refused', async () => {
    const unnamed = managed({
      ...before,
      id: 'id-unnamed',
      endpoint: `${publicUrl}/notifications`,
    });
    const rotation = await openSetUp({ subscriptions: [alps, unnamed] });
    await expect(rotation.rotate()).rejects.toMatchObject({ code: 'conflict' });
    expect(rotation.accepted()).toEqual([otherCredentials]);
  });
});

describe('a receiver', () => {
  it('that does not reload the file prevents the update of the catalogue', async () => {
    const rotation = await openSetUp({ subscriptions: [alps], noticeSeconds: 1_000 });
    const refusal = rotation.rotate();
    await expect(refusal).rejects.toMatchObject({ code: 'unavailable' });
    await expect(refusal).rejects.toThrow('did not apply the change. it answers 401.');
    expect(rotation.planned.catalogue.writes).toEqual([]);
    expect(rotation.files.at(-1)?.pairs).toEqual([otherCredentials, first]);
  });

  it('that is down prevents the update of the catalogue, after three probes', async () => {
    const rotation = await openSetUp({ subscriptions: [alps], isDown: true });
    await expect(rotation.rotate()).rejects.toThrow('nobody listens');
    expect(rotation.calls().filter((call) => call === 'process.probe')).toHaveLength(3);
    expect(rotation.planned.catalogue.writes).toEqual([]);
  });
});

describe('a catalogue', () => {
  it('that refuses an update leaves both pairs accepted, and later receives only the rest', async () => {
    const rotation = await openSetUp({
      subscriptions: [alps, baltic],
      deliverEverySeconds: { 'id-alps': 1, 'id-baltic': 1 },
    });
    const { catalogue } = rotation.planned;
    const { edit } = catalogue.client;
    catalogue.client.edit = (id, changes) =>
      id === 'id-baltic'
        ? Promise.reject(new AppError('unavailable', 'No answer came.'))
        : edit(id, changes);
    await expect(rotation.rotate()).rejects.toMatchObject({ code: 'unavailable' });
    rotation.pass(600);
    expect(rotation.accepted()).toEqual([otherCredentials, first]);
    catalogue.client.edit = edit;
    await rotation.rotate();
    rotation.pass(60);
    expect(catalogue.writes).toEqual(['edit id-alps credentials', 'edit id-baltic credentials']);
    expect(rotation.refused).toEqual([]);
  });
});

const situations: [string, RotationSituation][] = [
  [
    'of two subscriptions that deliver continuously',
    {
      subscriptions: [managed(before), managed({ ...before, name: 'baltic' }), unmanaged()],
      registrations: known,
      limits: { runningMax: 3, totalMax: 10 },
      deliverEverySeconds: { 'id-alps': 1, 'id-baltic': 1 },
      latencySeconds: 4,
      waitSeconds: 40,
    },
  ],
  [
    'of a silent subscription, a paused one, and one that a person created',
    {
      subscriptions: [
        managed(before),
        managed({ ...before, name: 'baltic', status: 'paused' }),
        managed({ ...before, id: 'id-by-hand' }),
      ],
      registrations: known,
      deliverEverySeconds: { 'id-by-hand': 7 },
      waitSeconds: 15,
    },
  ],
];

/** Lists the cuts of a rotation; of equal calls in a row, only the first and the last. */
async function cutsOf(situation: RotationSituation): Promise<Cut[]> {
  const rotation = await openRotation(situation);
  await rotation.rotate();
  rotation.planned.close();
  const calls = rotation.calls();
  const distinct = calls
    .map((name, call) => ({ name, call }))
    .filter(({ name, call }) => {
      const isOneOfMany = calls[call - 2] === name && calls[call + 2] === name;
      return name === 'client.edit' || !isOneOfMany;
    });
  // A kill after a call equals a kill before the next one.
  return distinct.flatMap(({ call }) => [
    { call, when: 'before', how: 'killed' },
    { call, when: 'before', how: 'unavailable' },
    { call, when: 'after', how: 'unavailable' },
  ]);
}

function expectEnded(rotation: TestedRotation): void {
  expect(rotation.refused).toEqual([]);
  const pairs = rotation.files.at(-1)?.pairs;
  expect(pairs).toHaveLength(1);
  expect(rotation.accepted()).toEqual(pairs);
  for (const one of rotation.planned.catalogue.subscriptions()) {
    if (one.id === 'id-unmanaged') expect(one).toEqual(unmanaged());
    else expect([one.credentials]).toEqual(pairs);
  }
}

describe.each(situations)('a rotation %s', (_, situation) => {
  it('ends with only the new pair when it is cut at any call and repeated', async () => {
    const cuts = await cutsOf(situation);
    expect(cuts.length).toBeGreaterThan(30);
    const failures: string[] = [];
    for (const cut of isThorough ? cuts : cuts.filter((_, n) => n % 4 === 0)) {
      const rotation = await openRotation(situation);
      await rotation.rotate(cut).catch(() => undefined);
      const cutAt = rotation.calls()[cut.call];
      const begun = rotation.files.at(-1)?.pairs ?? [];
      try {
        rotation.pass(100);
        expect(rotation.refused).toEqual([]);
        await rotation.rotate();
        rotation.pass(100);
        expectEnded(rotation);
        // Two pairs in the file are an interrupted rotation, which continues with its new pair.
        if (begun.length === 2) expect(rotation.files.at(-1)?.pairs).toEqual([begun[1]]);
      } catch (error) {
        failures.push(`${cut.how} ${cut.when} ${cut.call} ${cutAt}: ${error}`);
      }
      rotation.planned.close();
    }
    expect(failures).toEqual([]);
  }, 60_000);
});
