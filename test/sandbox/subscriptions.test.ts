/** The subscription service of the sandbox, against the tables of the specification and recorded answers. */
import { describe, expect, it } from 'vitest';
import {
  dayMs,
  iso,
  pushRequest,
  send,
  startMs,
  startTestSandbox,
  unknownId,
  uuid,
} from './set-up.ts';

const paused = { Status: 'paused' };

describe('a created subscription', () => {
  it('has the documented fields, and no credentials', async () => {
    const { create, call } = await startTestSandbox();
    const { status, json, text } = await create();
    expect([status, json]).toEqual([
      201,
      {
        Id: expect.stringMatching(uuid),
        SubscriptionType: 'push',
        FilterParam: pushRequest.FilterParam,
        // False even when the request sent true.
        StageOrder: false,
        Priority: 1,
        Status: 'running',
        NotificationEndpoint: pushRequest.NotificationEndpoint,
        SubscriptionEvent: ['created'],
        SubmissionDate: iso(startMs),
        '@odata.context': '$metadata#OData.CSC.Subscription',
      },
    ]);
    expect(text).not.toMatch(/hunter2|catalogue"/);
    expect((await call('GET', '/Subscriptions/Info')).json).toEqual([json]);
    expect((await call('GET', `/Subscriptions(${json.Id})`)).json).toEqual(json);
  });

  it('has defaults for what the request lacks', async () => {
    const { create } = await startTestSandbox();
    const given = { Status: undefined, SubscriptionEvent: undefined, FilterParam: undefined };
    const { json } = await create({ ...given, SubscriptionType: 'pull' });
    expect(json).toMatchObject({ Status: 'running', SubscriptionEvent: ['created'] });
    expect(json).toMatchObject({ SubscriptionType: 'pull', FilterParam: '' });
    const listed = await create({ SubscriptionEvent: 'created, modified' });
    expect(listed.json.SubscriptionEvent).toEqual(['created', 'modified']);
  });
});

const refusals: [object | string, number, RegExp][] = [
  [{ SubscriptionType: undefined }, 422, /SubscriptionType/],
  [{ SubscriptionType: 'Push' }, 422, /SubscriptionType/],
  [{ SubscriptionEvent: [] }, 422, /SubscriptionEvent/],
  [{ Status: 'stopped' }, 422, /Status/],
  [{ NotificationEpPassword: ['hunter2'] }, 422, /NotificationEpPassword/],
  ['{"SubscriptionType"', 422, /json_invalid/],
  [{ FilterParam: "Nonsense eq 'x'" }, 400, /"detail":"Invalid filter: Invalid field: Nonsense"/],
  [{ FilterParam: 'Name eq' }, 400, /"detail":"Invalid filter: /],
  [{ SubscriptionEvent: ['deleted'], FilterParam: 'Online eq true' }, 400, /Online/],
  [{ Status: 'cancelled' }, 400, /cancelled/],
  [{ NotificationEndpoint: undefined }, 400, /NotificationEndpoint/],
  [{ NotificationEndpoint: 'http://localhost:1/' }, 400, /https/],
  [{ NotificationEndpoint: 'https://endpoint.example/' }, 400, /not on this machine/],
  [{ NotificationEndpoint: 'https://a:hunter2@localhost/' }, 400, /contains credentials/],
  [{ FilterParam: ' '.repeat(300_000) }, 413, /Too Large/],
];

it('a refused request is answered without secrets, and creates nothing', async () => {
  const { call, list, sandbox } = await startTestSandbox();
  for (const [given, status, text] of refusals) {
    const body = typeof given === 'string' ? given : { ...pushRequest, ...given };
    const answer = await call('POST', '/Subscriptions', body);
    expect([answer.status, answer.text]).toEqual([status, expect.stringMatching(text)]);
    expect(answer.text).not.toContain('hunter2');
    expect(answer.headers.get('request-id')).toMatch(uuid);
  }
  expect((await call('DELETE', `/Subscriptions(${unknownId})`)).status).toBe(404);
  const url = `${sandbox.catalogueUrl}/odata/v1/Subscriptions/Info`;
  for (const headers of [{}, { Authorization: 'Bearer x' }]) {
    const { status, json } = await send(url, 'GET', undefined, headers);
    expect([status, json]).toEqual([401, { detail: 'Unauthorized' }]);
  }
  expect(await list()).toEqual([]);
});

describe('an edit', () => {
  it('changes status, endpoint and credentials, and nothing else', async () => {
    const { create, edit, list, sandbox } = await startTestSandbox();
    const { Id } = (await create()).json;
    const moved = { NotificationEndpoint: 'https://localhost:2/', NotificationEpPassword: 'new' };
    expect((await edit(Id, { ...paused, ...moved })).json).toMatchObject({
      ...{ Id, Status: 'paused', NotificationEndpoint: 'https://localhost:2/' },
    });
    expect((await edit(Id, { FilterParam: '' })).status).toBe(400);
    expect((await edit(Id, { Status: 1 })).status).toBe(422);
    expect(await list()).toMatchObject([{ Id, FilterParam: pushRequest.FilterParam }]);
    const pull = sandbox.addSubscription({ type: 'pull', status: 'paused' });
    expect((await edit(pull.id, moved)).status).toBe(400);
  });

  it('by DELETE or to cancelled deletes the subscription', async () => {
    const { create, edit, call, list } = await startTestSandbox();
    const [first, second] = [(await create()).json.Id, (await create()).json.Id];
    expect((await edit(first, { Status: 'cancelled' })).status).toBe(204);
    expect((await call('DELETE', `/Subscriptions(${second})`)).status).toBe(204);
    expect(await list()).toEqual([]);
  });
});

describe('the account', () => {
  it('has two running subscriptions at most, and ten in total', async () => {
    const { create, edit, list } = await startTestSandbox();
    await create();
    await create({ SubscriptionType: 'pull' });
    expect((await create()).json.detail.message).toContain('running subscriptions (2)');
    const { Id } = (await create(paused)).json;
    expect((await edit(Id, { Status: 'running' })).status).toBe(400);
    for (let index = 0; index < 7; index += 1) await create(paused);
    expect((await create(paused)).json.detail.message).toContain('subscriptions (10)');
    expect(await list()).toHaveLength(10);
  });

  it('pauses a subscription after 60 days of inactivity, and deletes it after 365', async () => {
    const { create, edit, list, sandbox } = await startTestSandbox();
    const { Id } = (await create()).json;
    const statusAfter = async (days: number) => {
      sandbox.clock.advance(days * dayMs);
      return (await list())[0]?.Status;
    };
    expect(await statusAfter(59)).toBe('running');
    expect(await statusAfter(1)).toBe('paused');
    // A resumption counts as activity.
    await edit(Id, { Status: 'running' });
    expect(await statusAfter(59)).toBe('running');
    expect(await statusAfter(245)).toBe('paused');
    expect(await statusAfter(1)).toBeUndefined();
  });
});

it('refuses with the statuses of the settings, which the specification does not show', async () => {
  const settings = { limitStatus: 409, unknownIdStatus: 410, unauthorizedStatus: 403 };
  const { sandbox, create, call } = await startTestSandbox({ service: settings });
  await create();
  await create();
  const third = await create(paused);
  expect((await create()).status).toBe(409);
  expect((await call('GET', `/Subscriptions(${unknownId})`)).status).toBe(410);
  const resume = () => call('PATCH', `/Subscriptions(${third.json.Id})`, { Status: 'running' });
  expect((await resume()).status).toBe(409);
  sandbox.service.change({ resumeBeyondLimit: 'ignore' });
  const ignored = await resume();
  expect([ignored.status, ignored.json.Status]).toEqual([200, 'paused']);
  expect((await send(`${sandbox.catalogueUrl}/odata/v1/Subscriptions/Info`)).status).toBe(403);
});
