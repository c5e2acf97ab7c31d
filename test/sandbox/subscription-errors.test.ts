/** What the subscription service refuses, with which status, and that nothing is changed by it. */
import { describe, expect, it } from 'vitest';
import { pushRequest, send, startAccountWorld, startMs } from './account-world.ts';

const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
const unknownId = '991c4730-cf6f-432a-9f6c-47be0230ff45';

describe('an endpoint', () => {
  const wrong: [string, string, RegExp][] = [
    ['plain HTTP', 'http://localhost:1/', /must begin with https/],
    ['another machine', 'https://endpoint.example/', /not on this machine/],
    ['credentials in it', 'https://a:hunter2@localhost/', /^(?!.*hunter2).*credentials in its URL/],
    ['no URL', 'localhost', /not a URL/],
  ];

  it.each(wrong)('with %s is refused at creation', async (_, NotificationEndpoint, message) => {
    const { create, list } = await startAccountWorld();
    const { status, json } = await create({ NotificationEndpoint });
    expect(status).toBe(400);
    expect(json.detail.message).toMatch(message);
    expect(await list()).toEqual([]);
  });

  it.each(wrong)('with %s is refused in an edit', async (_, NotificationEndpoint, message) => {
    const { create, edit, list } = await startAccountWorld();
    const { json } = await create();
    const refused = await edit(json.Id, { NotificationEndpoint });
    expect(refused.status).toBe(400);
    expect(refused.json.detail.message).toMatch(message);
    expect(await list()).toEqual([json]);
  });

  it('is needed for push', async () => {
    const { create } = await startAccountWorld();
    const { status, json } = await create({ NotificationEndpoint: undefined });
    expect(status).toBe(400);
    expect(json.detail.message).toContain('NotificationEndpoint');
  });
});

describe('a filter', () => {
  it('that is wrong is refused with a text that names the field', async () => {
    const { create, list } = await startAccountWorld();
    const { status, json } = await create({ FilterParam: "foo eq 'bar'" });
    expect([status, json]).toEqual([400, { detail: 'Invalid filter: Invalid field: foo' }]);
    expect(await list()).toEqual([]);
  });

  it('comes back byte for byte', async () => {
    const { create } = await startAccountWorld();
    const odd = "  contains(name,'it''s – (odd') and  Online eq true ";
    expect((await create({ FilterParam: odd })).json.FilterParam).toBe(odd);
  });
});

describe('an odd body', () => {
  it.each<[string, unknown, string, unknown[]]>([
    [
      'without a type',
      { ...pushRequest, SubscriptionType: undefined },
      'missing',
      ['body', 'SubscriptionType'],
    ],
    [
      'with an unknown type',
      { ...pushRequest, SubscriptionType: 'Push' },
      'enum',
      ['body', 'SubscriptionType'],
    ],
    [
      'with an unknown event',
      { ...pushRequest, SubscriptionEvent: ['created', 'Created'] },
      'enum',
      ['body', 'SubscriptionEvent', 1],
    ],
    [
      'with no event',
      { ...pushRequest, SubscriptionEvent: [] },
      'too_short',
      ['body', 'SubscriptionEvent'],
    ],
    [
      'with events of the wrong type',
      { ...pushRequest, SubscriptionEvent: 7 },
      'list_type',
      ['body', 'SubscriptionEvent'],
    ],
    ['with an unknown status', { ...pushRequest, Status: 'stopped' }, 'enum', ['body', 'Status']],
    [
      'with a filter that is no text',
      { ...pushRequest, FilterParam: 1 },
      'string_type',
      ['body', 'FilterParam'],
    ],
    [
      'with a StageOrder that is no boolean',
      { ...pushRequest, StageOrder: 'no' },
      'bool_type',
      ['body', 'StageOrder'],
    ],
    [
      'with a priority that is no number',
      { ...pushRequest, Priority: 'x' },
      'int_type',
      ['body', 'Priority'],
    ],
    ['that is an array', [pushRequest], 'model_attributes_type', ['body']],
    ['that is null', 'null', 'model_attributes_type', ['body']],
    ['that is no JSON', '{"SubscriptionType"', 'json_invalid', ['body', 0]],
    ['that is empty', '', 'json_invalid', ['body', 0]],
  ])('%s is a 422 with a list', async (_, body, type, loc) => {
    const { call, list } = await startAccountWorld();
    const { status, headers, text, json } = await call('POST', '/Subscriptions', body);
    expect(status).toBe(422);
    expect(json.detail).toMatchObject([{ type, loc, msg: expect.any(String) }]);
    expect(headers.get('request-id')).toMatch(uuid);
    expect(text).not.toContain('hunter2');
    expect(await list()).toEqual([]);
  });

  it('does not get a secret of the wrong type back', async () => {
    const { create } = await startAccountWorld();
    const { status, text } = await create({ NotificationEpPassword: ['hunter4'] });
    expect(status).toBe(422);
    expect(text).not.toContain('hunter4');
  });

  it('is a 422 for an edit, too', async () => {
    const { create, edit } = await startAccountWorld();
    const { json } = await create();
    expect((await edit(json.Id, { Status: 1 })).status).toBe(422);
    expect((await edit(json.Id, '[')).status).toBe(422);
  });

  it('that asks for a cancelled subscription is refused', async () => {
    const { create } = await startAccountWorld();
    expect((await create({ Status: 'cancelled' })).status).toBe(400);
  });

  it('that is too large is a 413', async () => {
    const { create } = await startAccountWorld();
    const { status, headers } = await create({ FilterParam: ' '.repeat(300_000) });
    expect(status).toBe(413);
    expect(headers.get('request-id')).toMatch(uuid);
  });
});

describe('a request', () => {
  it.each([
    ['no token', {}],
    ['an unknown token', { Authorization: 'Bearer x' }],
    ['another scheme', { Authorization: 'Basic c2FuZGJveDpzYW5kYm94' }],
  ])('with %s is unauthorized', async (_, headers) => {
    const { sandbox, create, list } = await startAccountWorld();
    await create();
    for (const method of ['GET', 'POST', 'DELETE']) {
      const path = { GET: '/Info', POST: '', DELETE: `(${(await list())[0].Id})` }[method];
      const url = `${sandbox.catalogueUrl}/odata/v1/Subscriptions${path}`;
      const answer = await send(url, { method, headers });
      expect([answer.status, answer.json]).toEqual([401, { detail: 'Unauthorized' }]);
    }
    expect(await list()).toHaveLength(1);
  });

  it.each([
    '/',
    '/odata/v1',
    '/odata/v1/products',
    "/odata/v1/Products('x')",
    '/odata/v1/Subscriptions/',
    '/odata/v1/subscriptionsInfo',
  ])('to %s is to no path', async (path) => {
    const { sandbox } = await startAccountWorld();
    const { status, headers, json } = await send(`${sandbox.catalogueUrl}${path}`, {});
    expect([status, json]).toEqual([404, { detail: 'Invalid odata path' }]);
    expect(headers.get('request-id')).toMatch(uuid);
  });

  it.each([
    ['PUT', '/Subscriptions', 'POST'],
    ['GET', '/Subscriptions', 'POST'],
    ['DELETE', '/Subscriptions/Info', 'GET'],
    ['POST', `/Subscriptions(${unknownId})`, 'GET, PATCH, DELETE'],
  ])('%s %s tells the methods there are', async (method, path, allow) => {
    const { call } = await startAccountWorld();
    const { status, headers } = await call(method, path);
    expect([status, headers.get('allow')]).toEqual([405, allow]);
  });

  it('is answered with an id of its own and the date of the sandbox', async () => {
    const { call, sandbox } = await startAccountWorld();
    const first = await call('GET', '/Subscriptions/Info');
    sandbox.clock.advance(1_000);
    const second = await call('GET', '/Subscriptions/Info');
    expect(first.headers.get('request-id')).not.toBe(second.headers.get('request-id'));
    expect(first.headers.get('date')).toBe(new Date(startMs).toUTCString());
    expect(second.headers.get('date')).toBe(new Date(startMs + 1_000).toUTCString());
  });

  it('is counted, the logins apart from the other requests for tokens', async () => {
    const { create, login, askToken, sandbox, control } = await startAccountWorld();
    const { refresh_token } = (await login()).json;
    await askToken({ client_id: 'cdse-public', grant_type: 'refresh_token', refresh_token });
    await create();
    const path = new URL(sandbox.tokenUrl).pathname;
    const seen = [
      { method: 'POST', path, status: 200, grantType: 'password' },
      { method: 'POST', path, status: 200, grantType: 'refresh_token' },
      { method: 'POST', path, status: 200, grantType: 'password' },
      { method: 'POST', path: '/odata/v1/Subscriptions', status: 201 },
    ];
    expect(sandbox.requests()).toEqual(seen);
    expect((await control('GET', '/requests')).json).toEqual({ requests: seen });
  });
});
