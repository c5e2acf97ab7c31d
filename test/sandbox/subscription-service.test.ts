/** The subscription service over real HTTP: the fields of a subscription, its list, its edits. */
import { describe, expect, it } from 'vitest';
import { endpoint, pushRequest, startAccountWorld, startMs } from './account-world.ts';

const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
const unknownId = '991c4730-cf6f-432a-9f6c-47be0230ff45';
const { FilterParam } = pushRequest;

describe('a created subscription', () => {
  it('is answered with all its fields and without its credentials', async () => {
    const { create } = await startAccountWorld();
    const { status, headers, text, json } = await create({
      SubscriptionEvent: ['created', 'modified'],
    });
    expect(status).toBe(201);
    expect(headers.get('content-type')).toBe('application/json');
    expect(json).toEqual({
      Id: expect.stringMatching(uuid),
      SubscriptionType: 'push',
      FilterParam,
      StageOrder: false,
      Priority: 1,
      Status: 'running',
      NotificationEndpoint: endpoint,
      SubscriptionEvent: ['created', 'modified'],
      SubmissionDate: new Date(startMs).toISOString(),
      '@odata.context': '$metadata#OData.CSC.Subscription',
    });
    expect(text).not.toContain('hunter2');
  });

  it('has the documented defaults when only what is required is sent', async () => {
    const { call } = await startAccountWorld();
    const body = { SubscriptionType: 'push', NotificationEndpoint: endpoint };
    expect((await call('POST', '/Subscriptions', body)).json).toMatchObject({
      Status: 'running',
      SubscriptionEvent: ['created'],
      FilterParam: '',
      StageOrder: false,
      Priority: 1,
    });
  });

  it.each([
    ['created, modified', ['created', 'modified']],
    ['deleted', ['deleted']],
    [['modified', 'modified'], ['modified']],
    [null, ['created']],
  ])('takes the events %j', async (SubscriptionEvent, expected) => {
    const { create } = await startAccountWorld();
    const { json } = await create({ SubscriptionEvent, FilterParam: null });
    expect(json.SubscriptionEvent).toEqual(expected);
  });

  it('of the type pull has no endpoint, in the list neither', async () => {
    const { create, list } = await startAccountWorld();
    const { status, json } = await create({ SubscriptionType: 'pull' });
    expect(status).toBe(201);
    expect(json).toMatchObject({ SubscriptionType: 'pull', Status: 'running' });
    expect(json).not.toHaveProperty('NotificationEndpoint');
    expect(await list()).toEqual([json]);
  });

  it('ignores fields that the service assigns, and unknown ones', async () => {
    const { create } = await startAccountWorld();
    const { status, json } = await create({ Id: unknownId, SubmissionDate: 'x', Colour: 'red' });
    expect(status).toBe(201);
    expect(json.Id).not.toBe(unknownId);
    expect(json).not.toHaveProperty('Colour');
  });
});

describe('the list', () => {
  it('is an empty array at first, then has all of them, oldest first', async () => {
    const { create, list } = await startAccountWorld();
    expect(await list()).toEqual([]);
    const { json: first } = await create();
    const { json: second } = await create({ SubscriptionType: 'pull' });
    expect(await list()).toEqual([first, second]);
  });

  it('never has credentials in it', async () => {
    const { create, call } = await startAccountWorld();
    await create();
    const { text } = await call('GET', '/Subscriptions/Info');
    expect(text).not.toMatch(/hunter2|NotificationEp|Username|Password/);
  });
});

describe('an id', () => {
  it.each([
    ['as it is', (id: string) => id],
    ['in capitals', (id: string) => id.toUpperCase()],
  ])('counts %s', async (_, change) => {
    const { create, call } = await startAccountWorld();
    const { json } = await create();
    const answer = await call('GET', `/Subscriptions(${change(json.Id)})`);
    expect([answer.status, answer.json]).toEqual([200, json]);
  });

  it.each(['GET', 'PATCH', 'DELETE'])('that nobody has is a 404 for %s', async (method) => {
    const { call } = await startAccountWorld();
    const body = method === 'PATCH' ? { Status: 'paused' } : undefined;
    const { status, headers, json } = await call(method, `/Subscriptions(${unknownId})`, body);
    expect(status).toBe(404);
    const request_id = headers.get('request-id');
    const message = `Subscription with id ${unknownId} not found.`;
    expect(json).toEqual({ detail: { message, request_id } });
  });

  it.each([`'${unknownId}'`, `%27${unknownId}%27`, '', '(x)', 'a/b'])(
    'written as (%s) is no path',
    async (id) => {
      const { call } = await startAccountWorld();
      const { status, json } = await call('GET', `/Subscriptions(${id})`);
      expect([status, json]).toEqual([404, { detail: 'Invalid odata path' }]);
    },
  );
});

describe('an edit', () => {
  it('changes endpoint and credentials, which stay unseen', async () => {
    const { create, edit, sandbox } = await startAccountWorld();
    const { json } = await create();
    const address = 'https://127.0.0.1:2/notifications/other';
    const body = {
      NotificationEndpoint: address,
      NotificationEpUsername: 'other',
      NotificationEpPassword: 'hunter3',
    };
    const { status, json: edited, text } = await edit(json.Id, body);
    expect([status, edited]).toEqual([200, { ...json, NotificationEndpoint: address }]);
    expect(text).not.toContain('hunter3');
    expect(JSON.stringify(sandbox.subscriptions())).not.toMatch(/hunter/);
  });

  it('of nothing changes nothing', async () => {
    const { create, edit } = await startAccountWorld();
    const { json } = await create();
    expect(await edit(json.Id, {})).toMatchObject({ status: 200, json });
  });

  it.each([
    'FilterParam',
    'SubscriptionEvent',
    'SubscriptionType',
    'Priority',
    'StageOrder',
    'Id',
    'Colour',
  ])('of %s is refused, and the rest of it with it', async (field) => {
    const { create, edit, list } = await startAccountWorld();
    const { json } = await create();
    const refused = await edit(json.Id, { Status: 'paused', [field]: 'x' });
    expect(refused.status).toBe(400);
    expect(refused.json.detail.message).toContain(field);
    expect(await list()).toEqual([json]);
  });

  it('of the endpoint of a pull subscription is refused', async () => {
    const { create, edit } = await startAccountWorld();
    const { json } = await create({ SubscriptionType: 'pull' });
    expect((await edit(json.Id, { NotificationEndpoint: endpoint })).status).toBe(400);
    expect((await edit(json.Id, { Status: 'paused' })).json.Status).toBe('paused');
  });
});
