/** The account's subscriptions over real HTTP: fields, edits, transitions, limits, and subscriptions of other clients. */
import { describe, expect, it } from 'vitest';
import { SubscriptionRefusal } from '../../src/sandbox/account.ts';
import { SandboxConfigurationError } from '../../src/sandbox/live-settings.ts';
import {
  dayMs,
  endpoint,
  iso,
  pushRequest,
  startMs,
  startTestSandbox,
  type TestSandbox,
  unknownId,
  uuid,
} from './set-up.ts';

const createdId = async ({ create }: TestSandbox, changes = {}) =>
  (await create(changes)).json.Id as string;
const statusOf = async ({ list }: TestSandbox, id: string): Promise<string | undefined> =>
  (await list()).find(({ Id }: { Id: string }) => Id === id)?.Status;

describe('a created subscription', () => {
  it('is returned with all its fields and without its credentials', async () => {
    const { create } = await startTestSandbox();
    const SubscriptionEvent = ['created', 'modified'];
    const { status, headers, text, json } = await create({ SubscriptionEvent });
    expect([status, headers.get('content-type')]).toEqual([201, 'application/json']);
    expect(json).toEqual({
      Id: expect.stringMatching(uuid),
      SubscriptionType: 'push',
      FilterParam: pushRequest.FilterParam,
      StageOrder: false,
      Priority: 1,
      Status: 'running',
      NotificationEndpoint: endpoint,
      SubscriptionEvent,
      SubmissionDate: iso(startMs),
      '@odata.context': '$metadata#OData.CSC.Subscription',
    });
    expect(text).not.toContain('hunter2');
  });

  it('has the documented defaults when only the required fields are sent', async () => {
    const { call } = await startTestSandbox();
    const body = { SubscriptionType: 'push', NotificationEndpoint: endpoint };
    const defaults = { Status: 'running', SubscriptionEvent: ['created'], FilterParam: '' };
    const { json } = await call('POST', '/Subscriptions', body);
    expect(json).toMatchObject({ ...defaults, StageOrder: false, Priority: 1 });
  });

  it.each([
    ['created, modified', ['created', 'modified']],
    ['deleted', ['deleted']],
    [['modified', 'modified'], ['modified']],
    [null, ['created']],
  ])('accepts the events %j', async (SubscriptionEvent, expected) => {
    const { create } = await startTestSandbox();
    const { json } = await create({ SubscriptionEvent, FilterParam: null });
    expect(json.SubscriptionEvent).toEqual(expected);
  });

  it('ignores unknown fields and fields that the service assigns', async () => {
    const { create } = await startTestSandbox();
    const changes = { Id: unknownId, SubmissionDate: 'x', Colour: 'red', Priority: 7 };
    const { status, json } = await create(changes);
    expect([status, json.Priority]).toEqual([201, 1]);
    expect(json.Id).not.toBe(unknownId);
    expect(json).not.toHaveProperty('Colour');
  });

  it.each(['running', 'paused'])('keeps the requested status %s', async (Status) => {
    const test = await startTestSandbox();
    const { status, json } = await test.create({ Status });
    expect([status, json.Status]).toEqual([201, Status]);
    expect(await statusOf(test, json.Id)).toBe(Status);
  });
});

describe('the list', () => {
  it('is empty at first, then has all subscriptions, oldest first, without credentials', async () => {
    const { create, list, call } = await startTestSandbox();
    expect(await list()).toEqual([]);
    const { json: first } = await create();
    const { status, json: pull } = await create({ SubscriptionType: 'pull' });
    expect([status, pull.SubscriptionType, pull.Status]).toEqual([201, 'pull', 'running']);
    expect(pull).not.toHaveProperty('NotificationEndpoint');
    expect(await list()).toEqual([first, pull]);
    const { text } = await call('GET', '/Subscriptions/Info');
    expect(text).not.toMatch(/hunter2|NotificationEp|Username|Password/);
  });
});

describe('an id', () => {
  it('is case-insensitive', async () => {
    const { create, call } = await startTestSandbox();
    const { json } = await create();
    for (const id of [json.Id, json.Id.toUpperCase()]) {
      expect(await call('GET', `/Subscriptions(${id})`)).toMatchObject({ status: 200, json });
    }
  });

  it.each(['GET', 'PATCH', 'DELETE'])(
    'of no subscription is answered with 404 for %s',
    async (method) => {
      const { call } = await startTestSandbox();
      const body = method === 'PATCH' ? { Status: 'paused' } : undefined;
      const { status, headers, json } = await call(method, `/Subscriptions(${unknownId})`, body);
      const message = `Subscription with id ${unknownId} not found.`;
      const detail = { message, request_id: headers.get('request-id') };
      expect([status, json]).toEqual([404, { detail }]);
    },
  );

  it('that is quoted, empty or no UUID is an invalid path', async () => {
    const { call } = await startTestSandbox();
    for (const id of [`'${unknownId}'`, `%27${unknownId}%27`, '', '(x)', 'a/b']) {
      const { status, json } = await call('GET', `/Subscriptions(${id})`);
      expect([status, json]).toEqual([404, { detail: 'Invalid odata path' }]);
    }
  });
});

describe('an edit', () => {
  it('changes endpoint and credentials, which are never shown; an empty edit changes nothing', async () => {
    const { create, edit, sandbox } = await startTestSandbox();
    const { json } = await create();
    expect(await edit(json.Id, {})).toMatchObject({ status: 200, json });
    const NotificationEndpoint = 'https://127.0.0.1:2/notifications/other';
    const credentials = { NotificationEpUsername: 'other', NotificationEpPassword: 'hunter3' };
    const edited = await edit(json.Id, { NotificationEndpoint, ...credentials });
    expect([edited.status, edited.json]).toEqual([200, { ...json, NotificationEndpoint }]);
    expect(edited.text).not.toContain('hunter3');
    expect(JSON.stringify(sandbox.subscriptions())).not.toMatch(/hunter/);
  });

  it('of a read-only or unknown field is refused as a whole', async () => {
    const { create, edit, list } = await startTestSandbox();
    const { json } = await create();
    const filter = ['FilterParam', 'SubscriptionEvent', 'SubscriptionType'];
    for (const field of [...filter, 'Priority', 'StageOrder', 'Id', 'Colour']) {
      const refused = await edit(json.Id, { Status: 'paused', [field]: 'x' });
      expect(refused.status).toBe(400);
      expect(refused.json.detail.message).toContain(field);
    }
    expect(await list()).toEqual([json]);
  });

  it('of the endpoint of a pull subscription is refused', async () => {
    const { create, edit } = await startTestSandbox();
    const { json } = await create({ SubscriptionType: 'pull' });
    expect((await edit(json.Id, { NotificationEndpoint: endpoint })).status).toBe(400);
    expect((await edit(json.Id, { Status: 'paused' })).json.Status).toBe('paused');
  });

  it('pauses and resumes the subscription', async () => {
    const test = await startTestSandbox();
    const id = await createdId(test);
    for (const Status of ['paused', 'running']) {
      const { status, json } = await test.edit(id, { Status });
      expect([status, json.Status, await statusOf(test, id)]).toEqual([200, Status, Status]);
    }
  });

  it.each([
    ['running', 'PATCH'],
    ['paused', 'PATCH'],
    ['running', 'DELETE'],
    ['paused', 'DELETE'],
  ])('cancels a %s subscription by %s, permanently', async (Status, method) => {
    const test = await startTestSandbox();
    const id = await createdId(test, { Status });
    const cancel = () => test.call(method, `/Subscriptions(${id})`, { Status: 'cancelled' });
    const { status, text } = await cancel();
    expect([status, text, await test.list()]).toEqual([204, '', []]);
    expect((await cancel()).status).toBe(404);
    expect((await test.edit(id, { Status: 'running' })).status).toBe(404);
  });
});

describe('after 60 days of inactivity', () => {
  it('a running subscription is paused, not a millisecond earlier, and again 60 days after it is resumed', async () => {
    const test = await startTestSandbox();
    const id = await createdId(test);
    const runsFor60Days = async () => {
      test.sandbox.clock.advance(60 * dayMs - 1);
      expect(await statusOf(test, id)).toBe('running');
      test.sandbox.clock.advance(1);
      expect(await statusOf(test, id)).toBe('paused');
    };
    await runsFor60Days();
    test.sandbox.clock.advance(40 * dayMs);
    expect((await test.edit(id, { Status: 'running' })).json.Status).toBe('running');
    await runsFor60Days();
  });

  it('the pause has the date of the end of the 60 days, even when it is noticed later', async () => {
    const { sandbox, create } = await startTestSandbox();
    await create();
    sandbox.clock.advance(200 * dayMs);
    const statusDate = iso(startMs + 60 * dayMs);
    expect(sandbox.subscriptions()).toMatchObject([{ status: 'paused', statusDate }]);
  });

  it.each([
    [
      'a request to run counts as activity, even for a running subscription',
      { Status: 'running' },
      'running',
    ],
    ['another edit does not count as activity', { NotificationEpPassword: 'another' }, 'paused'],
  ])('%s', async (_, body, expected) => {
    const test = await startTestSandbox();
    const id = await createdId(test);
    test.sandbox.clock.advance(59 * dayMs);
    await test.edit(id, body);
    test.sandbox.clock.advance(59 * dayMs);
    expect(await statusOf(test, id)).toBe(expected);
  });

  it('a paused subscription does not count as running', async () => {
    const { create, sandbox } = await startTestSandbox();
    await create();
    await create();
    expect((await create()).status).toBe(400);
    sandbox.clock.advance(60 * dayMs);
    expect((await create()).status).toBe(201);
  });
});

describe('after 365 days without a notification', () => {
  it.each(['running', 'paused'])('a %s subscription is deleted', async (Status) => {
    const test = await startTestSandbox();
    const id = await createdId(test, { Status });
    test.sandbox.clock.advance(365 * dayMs - 1);
    expect(await statusOf(test, id)).toBe('paused');
    test.sandbox.clock.advance(1);
    expect([await test.list(), test.sandbox.subscriptions()]).toEqual([[], []]);
    expect((await test.edit(id, { Status: 'running' })).status).toBe(404);
  });

  it('a subscription is deleted even if it was resumed in the meantime', async () => {
    const test = await startTestSandbox();
    const id = await createdId(test);
    test.sandbox.clock.advance(364 * dayMs);
    expect((await test.edit(id, { Status: 'running' })).status).toBe(200);
    test.sandbox.clock.advance(dayMs);
    expect(await test.list()).toEqual([]);
  });

  it('a subscription is paused and deleted when one request on the control port advances the clock', async () => {
    const { control, create, list } = await startTestSandbox();
    await create();
    expect((await control('POST', '/clock', { advanceMs: 366 * dayMs })).status).toBe(200);
    expect(await list()).toEqual([]);
  });
});

describe('the limits', () => {
  it('allow two running subscriptions; creating or resuming a third is refused and changes nothing', async () => {
    const test = await startTestSandbox();
    const { create, call, sandbox } = test;
    const id = await createdId(test);
    await create({ SubscriptionType: 'pull', NotificationEndpoint: undefined });
    const third = await create();
    const paused = await createdId(test, { Status: 'paused' });
    const NotificationEndpoint = 'https://localhost:2/';
    const resumed = await test.edit(paused, { Status: 'running', NotificationEndpoint });
    const message = expect.stringMatching(/running .*\(2\)/);
    for (const { status, json } of [third, resumed]) {
      expect([status, json.detail.message]).toEqual([400, message]);
    }
    const { json: unchanged } = await call('GET', `/Subscriptions(${paused})`);
    expect([unchanged.Status, unchanged.NotificationEndpoint]).toEqual(['paused', endpoint]);
    // A request to run is accepted for a running subscription.
    expect((await test.edit(id, { Status: 'running' })).status).toBe(200);
    sandbox.service.change({ runningMax: 1 });
    expect((await test.edit(id, { Status: 'running' })).status).toBe(200);
  });

  it('allow ten subscriptions, including pull and paused ones', async () => {
    const { create, list, call } = await startTestSandbox();
    await create();
    await create({ SubscriptionType: 'pull' });
    for (let number = 3; number <= 10; number += 1) {
      expect((await create({ Status: 'paused' })).status).toBe(201);
    }
    const { status, json } = await create({ Status: 'paused' });
    expect([status, json.detail.message]).toEqual([400, expect.stringContaining('(10)')]);
    const [first] = await list();
    await call('DELETE', `/Subscriptions(${first.Id})`);
    expect((await create()).status).toBe(201);
  });
});

describe('another client', () => {
  const password = 'hunter2';

  it('can have push and pull subscriptions, which are listed like all others', async () => {
    const { sandbox, control, list } = await startTestSandbox();
    const id = '7ca682c3-7b21-4e9b-952e-874798101340';
    const credentials = { username: 'a', password };
    const filter = 'Online eq true';
    const added = sandbox.addSubscription({ id, endpoint, ...credentials, filter });
    const submissionDate = '2026-01-01T00:00:00.000Z';
    const pull = { type: 'pull', status: 'paused', events: ['deleted'], submissionDate };
    const { status, json, text } = await control('POST', '/subscriptions', pull);
    expect(status).toBe(201);
    expect(json).toMatchObject({ type: 'pull', endpoint: null, statusDate: submissionDate });
    expect(await list()).toMatchObject([
      { Id: id, SubscriptionType: 'push', Status: 'running', NotificationEndpoint: endpoint },
      { Id: json.id, SubscriptionType: 'pull', Status: 'paused', SubscriptionEvent: ['deleted'] },
    ]);
    expect(added.submissionDate).toBe(iso(startMs));
    expect(sandbox.subscriptions()).toEqual([added, json]);
    const shown = await control('GET', '/subscriptions');
    expect(shown.json).toEqual({ subscriptions: [added, json] });
    expect(`${shown.text}${text}`).not.toContain(password);
    const again = () => sandbox.addSubscription({ type: 'pull', id: id.toUpperCase() });
    expect(again).toThrow(/already/);
    expect(sandbox.subscriptions()).toHaveLength(2);
  });

  it('counts towards the limits', async () => {
    const { sandbox, create, control } = await startTestSandbox();
    sandbox.addSubscription({ type: 'pull' });
    sandbox.addSubscription({ type: 'pull' });
    expect((await create()).status).toBe(400);
    expect(() => sandbox.addSubscription({ type: 'pull' })).toThrow(SubscriptionRefusal);
    const refused = await control('POST', '/subscriptions', { type: 'pull' });
    expect(refused.status).toBe(409);
    expect(refused.json.detail).toContain('running subscriptions (2)');
    sandbox.service.change({ runningMax: 3 });
    expect((await control('POST', '/subscriptions', { type: 'pull' })).status).toBe(201);
  });

  it.each([
    [{ endpoint: 'https://endpoint.example/' }, /not on this machine/],
    [{ type: 'pull', filter: 'foo eq 1' }, /Invalid field: foo/],
  ])('is refused %j', async (subscription, message) => {
    const { control, sandbox } = await startTestSandbox();
    const { status, json } = await control('POST', '/subscriptions', subscription);
    expect([status, json.detail]).toEqual([400, expect.stringMatching(message)]);
    expect(sandbox.subscriptions()).toEqual([]);
  });

  it.each([
    [{ type: 'push' }, 'endpoint'],
    [{ type: 'pull', endpoint }, 'endpoint'],
    [{ type: 'pull', status: 'cancelled' }, 'status'],
    [{ type: 'pull', events: [] }, 'events'],
    [{ type: 'pull', submissionDate: 'yesterday' }, 'submissionDate'],
    [{ type: 'pull', colour: 'red' }, 'colour'],
  ])('cannot add a subscription with %j', async (subscription, field) => {
    const { control, sandbox } = await startTestSandbox();
    const { status, json } = await control('POST', '/subscriptions', subscription);
    expect(status).toBe(400);
    expect(json.errors).toEqual([{ field, message: expect.any(String) }]);
    // The cast permits invalid values that the types forbid.
    const add = () => sandbox.addSubscription(subscription as object);
    expect(add).toThrow(SandboxConfigurationError);
    expect(add).toThrow(field);
  });
});
