/** Maintenance rounds: changes by the service are undone; changes by people are reported and kept. */
import { describe, expect, it } from 'vitest';
import { maintain } from '../../src/admin/maintain.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
import {
  credentials,
  dayUs,
  desiredState,
  managed,
  minuteUs,
  otherCredentials,
  otherDigest,
  otherFilter,
  pull,
  registrationOf,
  startUs,
  unmanaged,
} from './samples.ts';
import {
  alps,
  baltic,
  historyLines,
  openSetUp,
  pausedByService,
  round,
  silentSinceUs,
} from './set-up.ts';

const pausedNote = { message: expect.stringContaining('is paused in the catalogue') };

describe('a subscription that the service paused', () => {
  it('is only resumed, with a reason in the history and the gap recorded', async () => {
    const endpoint = 'https://elsewhere.example.org/alps';
    const byPeople = { filter: otherFilter, endpoint, credentials: otherCredentials };
    const setUp = await openSetUp({
      subscriptions: [{ ...alps.subscription, ...byPeople }],
      registrations: [alps.registration],
    });
    expect(await round(setUp)).toMatchObject([
      { name: 'alps', status: 'paused', did: 'resume', failure: null },
    ]);
    expect(setUp.catalogue.writes).toEqual(['edit id-alps status=running']);
    expect(setUp.catalogue.subscriptions()).toMatchObject([{ ...byPeople, status: 'running' }]);
    expect(await setUp.administration.history({ limit: 1 })).toMatchObject([
      { action: 'resumed', actor: 'maintain', reason: expect.stringContaining('60 days') },
    ]);
    const fromUs = alps.registration.runningSeenAtUs;
    expect(await setUp.administration.gaps()).toMatchObject([
      { subscription: 'alps', fromUs, toUs: expect.any(Number) },
    ]);
    expect(await round(setUp)).toMatchObject([{ status: 'running', did: null }]);
  });

  it('stays paused with a failure when too many run, while the others are maintained', async () => {
    const setUp = await openSetUp({
      subscriptions: [alps.subscription, baltic.subscription, pull()],
      registrations: [alps.registration, baltic.registration],
    });
    expect(await round(setUp)).toMatchObject([
      { name: 'alps', did: 'resume', failure: null },
      { name: 'baltic', did: null, failure: expect.stringContaining('may have 2 running') },
    ]);
    expect(setUp.catalogue.writes).toEqual(['edit id-alps status=running']);
  });

  it('is not resumed after a recorded delivery to its path', async () => {
    const unseen = { lastNotificationAtUs: null };
    const setUp = await openSetUp({
      subscriptions: [alps, baltic].map((one) => ({ ...one.subscription, ...unseen })),
      registrations: [alps.registration, baltic.registration],
    });
    const lastAtUs = startUs - minuteUs;
    await setUp.administration.markDeliveries([
      { subscription: 'alps', username: 'catalogue', lastAtUs: silentSinceUs },
      { subscription: 'alps', username: 'earlier', lastAtUs },
      { subscription: null, username: 'catalogue', lastAtUs },
    ]);
    expect(await round(setUp)).toMatchObject([
      { name: 'alps', did: null, notes: [pausedNote] },
      { name: 'baltic', did: 'resume' },
    ]);
  });
});

describe('a subscription that no longer exists', () => {
  const ages = startUs - 366 * dayUs;
  const gone = registrationOf({ activityAtUs: ages, notifiedAtUs: ages, runningSeenAtUs: ages });

  it('is recreated, with the gap recorded', async () => {
    const setUp = await openSetUp({ subscriptions: [unmanaged()], registrations: [gone] });
    expect(await round(setUp)).toMatchObject([{ status: 'gone', did: 'recreate', failure: null }]);
    expect(setUp.catalogue.writes).toEqual(['create alps running']);
    expect(await historyLines(setUp)).toEqual(['maintain created alps']);
    expect(await setUp.administration.gaps()).toMatchObject([{ fromUs: ages }]);
    expect(await round(setUp)).toMatchObject([{ status: 'running', did: null, notes: [] }]);
  });

  it('is not recreated in a full account, or when the endpoint does not answer', async () => {
    const full = await openSetUp({ subscriptions: [unmanaged(), pull()], registrations: [gone] });
    const limits = expect.stringContaining('limits of the account');
    expect(await round(full)).toMatchObject([{ did: null, failure: limits }]);
    const setUp = await openSetUp({ registrations: [gone] });
    const message = 'nobody listens.';
    const fault = { code: 'connection-refused', message, advice: 'Start it.' } as const;
    const probe = async () => ({ fault, status: null, tls: null });
    expect(await maintain(null, { ...setUp.context(), probe })).toMatchObject([
      { did: null, failure: expect.stringContaining(message) },
    ]);
    expect([...full.catalogue.writes, ...setUp.catalogue.writes]).toEqual([]);
  });
});

it('a failure of one subscription does not prevent the maintenance of the others', async () => {
  const crete = pausedByService('crete');
  const setUp = await openSetUp({
    subscriptions: [alps.subscription, crete.subscription],
    registrations: [alps.registration, crete.registration],
  });
  const { edit } = setUp.catalogue.client;
  setUp.catalogue.client.edit = (id, changes) =>
    id === 'id-alps'
      ? Promise.reject(new AppError('invalid', 'Refused.', { details: ['A detail.'] }))
      : edit(id, changes);
  expect(await round(setUp)).toMatchObject([
    { name: 'alps', did: null, failure: 'Refused. A detail.' },
    { name: 'crete', did: 'resume', failure: null },
  ]);
});

it('a configuration file ends the maintenance of a subscription that it no longer has, not of one by flags', async () => {
  const crete = pausedByService('crete');
  const setUp = await openSetUp({
    subscriptions: [alps.subscription, baltic.subscription, crete.subscription],
    registrations: [
      ...[alps.registration, crete.registration],
      { ...baltic.registration, origin: 'file' },
    ],
  });
  expect(await round(setUp, [desiredState()])).toMatchObject([
    { name: 'alps', did: 'resume', notes: [] },
    {
      name: 'baltic',
      did: null,
      notes: [{ message: expect.stringContaining('no longer in earshot.config.ts') }],
    },
    { name: 'crete', did: 'resume', notes: [] },
  ]);
});

it('a change by a person is never undone, and is reported', async () => {
  const setUp = await openSetUp({
    subscriptions: [
      managed({ status: 'paused' }),
      managed({ name: 'baltic', filter: otherFilter }),
    ],
    registrations: ['alps', 'baltic'].map((name) => registrationOf({ name })),
  });
  expect(await round(setUp)).toMatchObject([
    { did: null, notes: [pausedNote] },
    { did: null, notes: [{ message: expect.stringContaining('the filter of') }] },
  ]);
  setUp.pass(20 * dayUs);
  expect(await round(setUp)).toMatchObject([{ did: null }, { did: null }]);
  expect(setUp.catalogue.writes).toEqual([]);
  expect(await historyLines(setUp)).toEqual([]);
});

it('a paused subscription with another id is reported as such, not as changed by a person', async () => {
  const setUp = await openSetUp({
    subscriptions: [{ ...alps.subscription, id: 'id-other' }],
    registrations: [alps.registration],
  });
  const message = expect.stringContaining('its id is not registered');
  expect((await round(setUp))[0]?.notes[0]).toMatchObject({ message, isFailure: true });
  expect(await setUp.administration.registrations()).toMatchObject([{ changedByPerson: false }]);
});

it('credentials of an interrupted rotation are no difference while the receiver accepts them', async () => {
  const setUp = await openSetUp({
    subscriptions: [managed({ credentials: otherCredentials })],
    registrations: [registrationOf({ credentialsDigest: otherDigest })],
  });
  const accepted = [otherCredentials, credentials];
  expect(await maintain(null, { ...setUp.context(), accepted })).toMatchObject([{ notes: [] }]);
  const message = expect.stringContaining('the credentials of');
  expect(await round(setUp)).toMatchObject([{ notes: [{ message, isFailure: true }] }]);
});

it('without a public URL, everything except the endpoint is compared', async () => {
  const setUp = await openSetUp({
    subscriptions: [managed(), managed({ name: 'baltic', filter: otherFilter })],
    registrations: ['alps', 'baltic'].map((name) => registrationOf({ name })),
  });
  expect(await maintain(null, { ...setUp.context(), publicUrl: null })).toMatchObject([
    { notes: [] },
    { notes: [{ message: expect.stringContaining('the filter of') }] },
  ]);
});

it('a gap is recorded for a pause that a person began and ended', async () => {
  const setUp = await openSetUp({ subscriptions: [managed()], registrations: [registrationOf()] });
  await round(setUp);
  const ranAtUs = setUp.nowUs();
  setUp.catalogue.put(managed({ status: 'paused' }));
  setUp.pass(dayUs);
  await round(setUp);
  setUp.pass(dayUs);
  setUp.catalogue.put(managed());
  const resumedAtUs = setUp.nowUs();
  await round(setUp);
  const [gap, ...more] = await setUp.administration.gaps();
  expect(more).toEqual([]);
  expect(gap?.fromUs).toBeLessThanOrEqual(ranAtUs);
  expect(gap?.toUs).toBeGreaterThanOrEqual(resumedAtUs);
});
