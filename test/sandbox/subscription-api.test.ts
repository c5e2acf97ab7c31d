/** Valid and invalid requests to the subscription service, compared with documented and recorded answers. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { pushRequest, send, startMs, startTestSandbox, unknownId, uuid } from './set-up.ts';

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
const missing = !existsSync(fixtures);
const fixture = (name: string) => JSON.parse(readFileSync(new URL(name, fixtures), 'utf8'));

describe('an endpoint', () => {
  it('that is not allowed is refused at creation and in an edit', async () => {
    const { create, edit, list } = await startTestSandbox();
    const { json } = await create();
    const changes = { NotificationEndpoint: 'https://endpoint.example/' };
    for (const refused of [await create(changes), await edit(json.Id, changes)]) {
      expect(refused.status).toBe(400);
      expect(refused.json.detail.message).toMatch(/not on this machine/);
    }
    expect(await list()).toEqual([json]);
  });

  it('is required for a push subscription', async () => {
    const { create } = await startTestSandbox();
    const { status, json } = await create({ NotificationEndpoint: undefined });
    expect(status).toBe(400);
    expect(json.detail.message).toContain('NotificationEndpoint');
  });
});

describe('an invalid body', () => {
  it.each<[object | string, string, ...(string | number)[]]>([
    [{ SubscriptionType: undefined }, 'missing', 'SubscriptionType'],
    [{ SubscriptionType: 'Push' }, 'enum', 'SubscriptionType'],
    [{ SubscriptionEvent: ['created', 'Created'] }, 'enum', 'SubscriptionEvent', 1],
    [{ SubscriptionEvent: [] }, 'too_short', 'SubscriptionEvent'],
    [{ SubscriptionEvent: 7 }, 'list_type', 'SubscriptionEvent'],
    [{ Status: 'stopped' }, 'enum', 'Status'],
    [{ FilterParam: 1 }, 'string_type', 'FilterParam'],
    [{ StageOrder: 'no' }, 'bool_type', 'StageOrder'],
    [{ Priority: 'x' }, 'int_type', 'Priority'],
    [JSON.stringify([pushRequest]), 'model_attributes_type'],
    ['null', 'model_attributes_type'],
    ['{"SubscriptionType"', 'json_invalid', 0],
    ['', 'json_invalid', 0],
  ])('with %j is answered with 422 and a list', async (given, type, ...path) => {
    const { call, list } = await startTestSandbox();
    const body = typeof given === 'string' ? given : { ...pushRequest, ...given };
    const { status, headers, text, json } = await call('POST', '/Subscriptions', body);
    expect(status).toBe(422);
    expect(json.detail).toMatchObject([{ type, loc: ['body', ...path], msg: expect.any(String) }]);
    expect(headers.get('request-id')).toMatch(uuid);
    expect(text).not.toContain('hunter2');
    expect(await list()).toEqual([]);
  });

  it('with a secret of the wrong type is not echoed', async () => {
    const { create } = await startTestSandbox();
    const { status, text } = await create({ NotificationEpPassword: ['hunter4'] });
    expect(status).toBe(422);
    expect(text).not.toContain('hunter4');
  });

  it('is answered with 422 for an edit, 400 for a cancelled subscription, 413 when too large', async () => {
    const { create, edit } = await startTestSandbox();
    const { json } = await create();
    expect((await edit(json.Id, { Status: 1 })).status).toBe(422);
    expect((await edit(json.Id, '[')).status).toBe(422);
    expect((await create({ Status: 'cancelled' })).status).toBe(400);
    const { status, headers } = await create({ FilterParam: ' '.repeat(300_000) });
    expect([status, headers.get('request-id')]).toEqual([413, expect.stringMatching(uuid)]);
  });
});

describe('a request', () => {
  it.each([{}, { Authorization: 'Bearer x' }, { Authorization: 'Basic c2FuZGJveDpzYW5kYm94' }])(
    'with the header %j is unauthorized',
    async (headers) => {
      const { root, create, list } = await startTestSandbox();
      await create();
      for (const method of ['GET', 'POST', 'DELETE']) {
        const path = { GET: '/Info', POST: '', DELETE: `(${(await list())[0].Id})` }[method];
        const { status, json } = await send(`${root}/Subscriptions${path}`, { method, headers });
        expect([status, json]).toEqual([401, { detail: 'Unauthorized' }]);
      }
      expect(await list()).toHaveLength(1);
    },
  );

  it('to an unknown path is answered with 404', async () => {
    const { sandbox } = await startTestSandbox();
    const products = ['/odata/v1/products', "/odata/v1/Products('x')"];
    const subscriptions = ['/odata/v1/Subscriptions/', '/odata/v1/subscriptionsInfo'];
    for (const path of ['/', '/odata/v1', ...products, ...subscriptions]) {
      const { status, headers, json } = await send(`${sandbox.catalogueUrl}${path}`);
      expect([status, json], path).toEqual([404, { detail: 'Invalid odata path' }]);
      expect(headers.get('request-id')).toMatch(uuid);
    }
  });

  it.each([
    ['PUT', '/Subscriptions', 'POST'],
    ['GET', '/Subscriptions', 'POST'],
    ['DELETE', '/Subscriptions/Info', 'GET'],
    ['POST', `/Subscriptions(${unknownId})`, 'GET, PATCH, DELETE'],
  ])('%s %s is answered with the allowed methods', async (method, path, allow) => {
    const { call } = await startTestSandbox();
    const { status, headers } = await call(method, path);
    expect([status, headers.get('allow')]).toEqual([405, allow]);
  });

  it('is answered with a unique request id and the date of the sandbox', async () => {
    const { call, sandbox } = await startTestSandbox();
    const first = await call('GET', '/Subscriptions/Info');
    sandbox.clock.advance(1_000);
    const second = await call('GET', '/Subscriptions/Info');
    expect(first.headers.get('request-id')).not.toBe(second.headers.get('request-id'));
    expect(first.headers.get('date')).toBe(new Date(startMs).toUTCString());
    expect(second.headers.get('date')).toBe(new Date(startMs + 1_000).toUTCString());
  });

  it('is counted, with logins separate from other token requests', async () => {
    const { create, login, askToken, sandbox, control } = await startTestSandbox();
    const { refresh_token } = (await login()).json;
    await askToken({ client_id: 'cdse-public', grant_type: 'refresh_token', refresh_token });
    await create();
    const token = { method: 'POST', path: new URL(sandbox.tokenUrl).pathname, status: 200 };
    const seen = [
      { ...token, grantType: 'password' },
      { ...token, grantType: 'refresh_token' },
      { ...token, grantType: 'password' },
      { method: 'POST', path: '/odata/v1/Subscriptions', status: 201 },
    ];
    expect(sandbox.requests()).toEqual(seen);
    expect((await control('GET', '/requests')).json).toEqual({ requests: seen });
  });
});

/** Starts a sandbox whose account permits a subscription for every filter. */
async function startFilters() {
  const test = await startTestSandbox({ service: { totalMax: 1_000 } });
  const subscribe = (FilterParam: string, SubscriptionEvent = ['created'], changes = {}) =>
    test.create({ FilterParam, SubscriptionEvent, Status: 'paused', ...changes });
  return { ...test, subscribe };
}

describe('a filter is accepted', () => {
  it.each([
    '',
    '   ',
    "  contains(name,'it''s – (odd') and  Online eq true ",
    "Name eq 'it''s (one) of foo'",
    "startswith(NAME,'S2') and COLLECTION/NAME ne 'X' or not (online eq true)",
    "attributes/OData.CSC.StringAttribute/any(i0:i0/Name eq 'a' and i0/Value eq 'b')",
    "OData.CSC.Intersects(Footprint=geography'SRID=4326;POINT(4 50)')",
  ])('and returned byte for byte: %j', async (filter) => {
    const { subscribe } = await startFilters();
    const { status, json } = await subscribe(filter);
    expect([status, json.FilterParam]).toEqual([201, filter]);
  });

  it.skipIf(missing)('when the real service accepts it', async () => {
    const { subscribe } = await startFilters();
    const filters: { entity: string; filter: string }[] = fixture('filters-valid.json');
    expect(filters.length).toBeGreaterThan(50);
    for (const { entity, filter } of filters) {
      const event = entity === 'DeletedProducts' ? 'deleted' : 'created';
      expect((await subscribe(filter, [event])).status, filter).toBe(201);
    }
  });

  it.each([
    ['Online eq true', [201, 201, 400, 400]],
    ["DeletionCause eq 'Other'", [400, 400, 201, 400]],
    ["Name ne 'x'", [201, 201, 201, 201]],
  ])('only when the products of all its events have its fields: %s', async (filter, expected) => {
    const { subscribe } = await startFilters();
    const statuses: number[] = [];
    for (const events of [['created'], ['modified'], ['deleted'], ['created', 'deleted']]) {
      statuses.push((await subscribe(filter, events)).status);
    }
    expect(statuses).toEqual(expected);
  });
});

describe('a filter is refused', () => {
  it.each([
    ["foo eq 'bar'", /^Invalid filter: Invalid field: foo$/],
    [
      "Name eq 'x' and Collection/name/x eq 'y'",
      /^Invalid filter: Invalid field: Collection\/name\/x$/,
    ],
    ['BurstId eq 15804', /^Invalid filter: Invalid field: BurstId$/],
    ['DeletionDate gt 2023-04-01T00:00:00.000Z', /^Invalid filter: Invalid field: DeletionDate$/],
    ["Name eq 'x", /^Invalid filter: /],
    ["(Name eq 'x'", /^Invalid filter: /],
    ['Collection/Name eq SENTINEL-2', /^Invalid filter: .*SENTINEL-2/],
    ["substringof('IW_GRDH',Name)", /^Invalid filter: .*substringof/],
    ["OData.CSC.Intersects(area=geography'SRID=3857;POINT(4 50)')", /^Invalid filter: .*3857/],
    [
      "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51))')",
      /^Invalid filter: .*clos/,
    ],
  ])('%s', async (filter, problem) => {
    const { subscribe, list } = await startFilters();
    for (const changes of [{}, { SubscriptionType: 'pull', NotificationEndpoint: undefined }]) {
      const { status, json } = await subscribe(filter, ['created'], changes);
      expect([status, json]).toEqual([400, { detail: expect.stringMatching(problem) }]);
    }
    expect(await list()).toEqual([]);
  });

  it('when configured, unless it is empty', async () => {
    const { subscribe, control } = await startFilters();
    await control('PATCH', '/service', { filterRefusal: 'Invalid field: Name' });
    const { status, json } = await subscribe("Name eq 'x'");
    expect([status, json.detail]).toEqual([400, 'Invalid filter: Invalid field: Name']);
    expect((await subscribe('')).status).toBe(201);
  });

  it.each([
    ['deep', `${'('.repeat(5_000)}Name eq 'x'${')'.repeat(5_000)}`],
    ['long', `Name eq '${'x'.repeat(1_000_000)}'`],
    ['wide', Array(7_000).fill("Name eq 'a'").join(' or ')],
  ])('when it is too %s, regardless of who creates it', async (_, filter) => {
    const { sandbox } = await startFilters();
    expect(() => sandbox.addSubscription({ type: 'pull', filter })).toThrow('Invalid filter: ');
    expect(sandbox.subscriptions()).toEqual([]);
  });
});

describe('the documented examples', () => {
  const keysOf = (given: object, ...left: string[]) =>
    Object.keys(given).filter((key) => !left.includes(key));

  it.skipIf(missing).each(['create-push', 'create-pull'])(
    '%s has the documented answer',
    async (name) => {
      const { call } = await startTestSandbox({
        allowRemote: true,
        service: { stageOrderReturned: true },
      });
      const request = fixture(`subscriptions/${name}-request.json`);
      const { status, json } = await call('POST', '/Subscriptions', request);
      expect(status).toBe(201);
      // The documented answers predate SubscriptionType.
      const { Id, SubmissionDate, ...shown } = fixture(`subscriptions/${name}-201.json`);
      expect(json).toMatchObject(shown);
      const [context, ...names] = Object.keys(shown).reverse();
      const expected = ['Id', ...names.reverse(), 'SubmissionDate', context];
      expect(keysOf(json, 'SubscriptionType')).toEqual(expected);
    },
  );

  it.skipIf(missing)('show the fields of the answers to an edit and to a list', async () => {
    const { call, edit, list, create } = await startTestSandbox({ allowRemote: true });
    const request = fixture('subscriptions/create-push-request.json');
    const { json } = await call('POST', '/Subscriptions', request);
    await create({ SubscriptionType: 'pull' });
    const given = (one: object) => keysOf(one, 'SubscriptionType');
    const shown = (one: object) => keysOf(one, 'LastNotificationDate');
    const edited = await edit(json.Id, { Status: 'paused' });
    expect(given(edited.json)).toEqual(shown(fixture('subscriptions/patch-paused-200.json')));
    const shownList = fixture('subscriptions/info-list-200.json');
    expect((await list()).map(given)).toEqual(shownList.map(shown));
  });

  it.skipIf(missing)(
    'include the answers to an unknown id, an invalid body and an error',
    async () => {
      const { call, create } = await startTestSandbox();
      for (const name of ['read', 'ack']) {
        const { detail } = fixture(`errors/subscriptions-${name}-404.json`);
        const [id] = /[\da-f-]{30,}/.exec(detail.message) ?? [];
        const { status, json } = await call('GET', `/Subscriptions(${id})`);
        const request_id = expect.stringMatching(uuid);
        expect([status, json]).toEqual([404, { detail: { ...detail, request_id } }]);
      }
      const { response } = fixture('errors/products-422-2.json');
      const { status, json } = await create({ SubscriptionType: 'x' });
      expect(status).toBe(response.status.code);
      const itemKeys = ({ detail }: { detail: object[] }) =>
        detail.map((item) => Object.keys(item));
      expect(itemKeys(json)).toEqual(itemKeys(response.body));
      const recorded = fixture('errors/products-400-5.json').response.body;
      const usual = await call('PATCH', '/Subscriptions(x)', {});
      expect(Object.keys(usual.json.detail)).toEqual(Object.keys(recorded.detail));
      expect(usual.json.detail.request_id).toBe(usual.headers.get('request-id'));
    },
  );

  it.skipIf(missing)('show the fields of a login and of the realm', async () => {
    const { login, sandbox } = await startTestSandbox();
    const tokens = fixture('identity/token-200.fake-tokens.json');
    const given = (await login()).json;
    for (const [name, value] of Object.entries(tokens)) {
      expect(given[name], name).toEqual(expect.any(Object(value).constructor));
    }
    expect(given.token_type.toLowerCase()).toBe(tokens.token_type);
    const shown = fixture('identity/openid-configuration.json');
    const realm = `${sandbox.catalogueUrl}/auth/realms/CDSE`;
    const { json } = await send(`${realm}/.well-known/openid-configuration`);
    const pathOf = (url: string) => new URL(url).pathname;
    expect(pathOf(json.issuer)).toBe(pathOf(shown.issuer));
    expect(pathOf(json.token_endpoint)).toBe(pathOf(shown.token_endpoint));
    expect(keysOf(json, ...Object.keys(shown))).toEqual([]);
    expect(shown.grant_types_supported).toEqual(expect.arrayContaining(json.grant_types_supported));
  });
});
