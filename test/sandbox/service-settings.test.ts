/** The settings of the services: their effects, and changes while the sandbox runs. */
import { describe, expect, it } from 'vitest';
import {
  type ServiceSettingsInput,
  serviceSettingsSchema,
} from '../../src/sandbox/live-settings.ts';
import { type Answer, send, startMs, startTestSandbox, turn, unknownId } from './set-up.ts';

const unknownPath = `/Subscriptions(${unknownId})`;
const infoPath = '/Subscriptions/Info';
const shape = ({ status, json }: Answer) => [status, json];

describe('a setting changes', () => {
  it('the limits of running and of all subscriptions, and the status when one is exceeded', async () => {
    const service = { runningMax: 1, totalMax: 2, limitStatus: 409 };
    const { create, edit } = await startTestSandbox({ service });
    expect((await create()).status).toBe(201);
    expect((await create()).status).toBe(409);
    const { status, json } = await create({ Status: 'paused' });
    expect(status).toBe(201);
    expect((await edit(json.Id, { Status: 'running' })).status).toBe(409);
    expect((await create({ Status: 'paused' })).status).toBe(409);
  });

  it('the effect of a request to run beyond the limit', async () => {
    const service = { runningMax: 1, resumeBeyondLimit: 'ignore' } as const;
    const { create, edit } = await startTestSandbox({ service });
    await create();
    const { json } = await create({ Status: 'paused' });
    expect(await edit(json.Id, { Status: 'running' })).toMatchObject({ status: 200, json });
  });

  it('the statuses of an unknown id and of a bad token', async () => {
    const service = { unknownIdStatus: 410, unauthorizedStatus: 403 };
    const { call, root } = await startTestSandbox({ service });
    expect((await call('GET', unknownPath)).status).toBe(410);
    expect(shape(await send(`${root}${infoPath}`))).toEqual([403, { detail: 'Unauthorized' }]);
  });

  it('the form of detail, except for errors of filters and paths', async () => {
    const { call, create, sandbox } = await startTestSandbox();
    const text = `Subscription with id ${unknownId} not found.`;
    const listed = { loc: ['body'], msg: text, type: expect.any(String) };
    for (const [detailForm, detail] of [
      ['string', text],
      ['object', { message: text, request_id: expect.any(String) }],
      ['list', [expect.objectContaining(listed)]],
    ] as const) {
      sandbox.service.change({ detailForm });
      expect(shape(await call('GET', unknownPath))).toEqual([404, { detail }]);
      const filter = await create({ FilterParam: 'foo eq 1' });
      expect(shape(filter)).toEqual([400, { detail: 'Invalid filter: Invalid field: foo' }]);
      expect((await call('GET', '/nothing')).json).toEqual({ detail: 'Invalid odata path' });
      expect((await create({ SubscriptionType: 'x' })).json.detail).toEqual([expect.anything()]);
    }
  });

  it('whether one subscription can be read', async () => {
    const { create, call } = await startTestSandbox({ service: { getById: false } });
    const { json } = await create();
    const { status, headers } = await call('GET', `/Subscriptions(${json.Id})`);
    expect([status, headers.get('allow')]).toEqual([405, 'PATCH, DELETE']);
  });

  it('whether the last notification is shown', async () => {
    const { sandbox, list } = await startTestSandbox();
    const lastNotificationDate = '2026-04-30T00:00:00.000Z';
    sandbox.addSubscription({ type: 'pull', lastNotificationDate });
    expect((await list())[0].LastNotificationDate).toBe(lastNotificationDate);
    sandbox.service.change({ lastNotificationDateShown: false });
    expect((await list())[0]).not.toHaveProperty('LastNotificationDate');
  });

  it('the forms of events, dates and StageOrder', async () => {
    const forms = { eventsAs: 'string', submissionDateForm: 'withoutZone' } as const;
    const service = { ...forms, stageOrderReturned: true };
    const { create, list } = await startTestSandbox({ service });
    await create({ SubscriptionEvent: ['created', 'modified'], StageOrder: true });
    const SubmissionDate = '2026-05-01T12:00:00.0000';
    expect(await list()).toMatchObject([
      { SubscriptionEvent: 'created, modified', SubmissionDate, StageOrder: true },
    ]);
  });

  it('the lifetimes of tokens', async () => {
    const service = { accessTokenSeconds: 5, refreshTokenSeconds: 60 };
    const { json } = await (await startTestSandbox({ service })).login();
    expect([json.expires_in, json.refresh_expires_in]).toEqual([5, 60]);
  });
});

describe('an injected fault', () => {
  it('makes every catalogue call unavailable, but no other service', async () => {
    const { call, login, sandbox } = await startTestSandbox();
    await call('GET', infoPath);
    sandbox.service.change({ unavailable: true });
    const calls = [
      ['GET', infoPath],
      ['POST', '/Subscriptions'],
      ['DELETE', unknownPath],
    ] as const;
    for (const [method, path] of calls) expect((await call(method, path)).status).toBe(503);
    expect((await login()).status).toBe(200);
    sandbox.service.change({ unavailable: false });
    expect((await call('GET', infoPath)).status).toBe(200);
  });

  it('makes the identity provider unavailable, with an HTML page, but not the catalogue', async () => {
    const { call, login, sandbox } = await startTestSandbox();
    await call('GET', infoPath);
    sandbox.service.change({ identityUnavailable: true });
    expect(shape(await login())).toEqual([503, undefined]);
    expect((await call('GET', infoPath)).status).toBe(200);
  });

  it('loses the answers to a given number of creations, which still take effect', async () => {
    const { create, list, sandbox } = await startTestSandbox();
    await list();
    sandbox.service.change({ createAnswersLost: 1 });
    // A refused creation does not count.
    expect((await create({ FilterParam: 'foo eq 1' })).status).toBe(400);
    await expect(create()).rejects.toThrow('fetch failed');
    expect(await list()).toHaveLength(1);
    expect(sandbox.requests().at(-2)).toMatchObject({ method: 'POST', status: null });
    expect(sandbox.service.current().createAnswersLost).toBe(0);
    expect((await create()).status).toBe(201);
  });

  it('refuses a given number of creations, without effect', async () => {
    const { create, list } = await startTestSandbox({ service: { createsRefused503: 2 } });
    expect([(await create()).status, (await create()).status]).toEqual([503, 503]);
    expect(await list()).toEqual([]);
    expect((await create()).status).toBe(201);
  });

  it('delays answers by the clock of the sandbox, after the operation took effect', async () => {
    const { create, list, sandbox } = await startTestSandbox();
    await list();
    sandbox.service.change({ answerDelayMs: 60_000 });
    let answered = false;
    const answer = create().finally(() => {
      answered = true;
    });
    while (sandbox.subscriptions().length === 0) await turn();
    expect(answered).toBe(false);
    sandbox.clock.advance(60_000);
    expect((await answer).status).toBe(201);
  });
});

describe('the settings', () => {
  it('are shown on the control port with their defaults, without secrets', async () => {
    const { control } = await startTestSandbox();
    const { totpSecret, ...defaults } = serviceSettingsSchema.parse({});
    expect(totpSecret).toBeNull();
    const shown = await control('GET', '/service');
    expect(shape(shown)).toEqual([200, { ...defaults, totpSecretSet: false }]);
    const patched = await control('PATCH', '/service', { totpSecret: 'JBSWY3DPEHPK3PXP' });
    expect(patched.json.totpSecretSet).toBe(true);
    expect(patched.text).not.toContain('JBSWY');
    expect((await control('GET', '/service')).text).not.toContain('JBSWY');
  });

  it('can be changed one by one, including faults, and leave the others unchanged', async () => {
    const service = { totalMax: 5, queryFaults: { outOfOrder: 0.25 } };
    const { control } = await startTestSandbox({ service });
    await control('PATCH', '/service', { runningMax: 1 });
    const { json } = await control('PATCH', '/service', { queryFaults: { serverError: 0 } });
    expect(json).toMatchObject({ totalMax: 5, runningMax: 1 });
    expect(json.queryFaults).toMatchObject({ outOfOrder: 0.25, serverError: 0 });
  });

  it.each([
    [{ runingMax: 1 }, 'runingMax'],
    [{ runningMax: -1 }, 'runningMax'],
    [{ limitStatus: 200 }, 'limitStatus'],
    [{ detailForm: 'xml' }, 'detailForm'],
    [{ totpSecret: 'secret-0189' }, 'totpSecret'],
    [{ nextQueries: { hang: 1 } }, 'nextQueries.hang'],
  ])('refuse %j and change nothing', async (changes, field) => {
    const { control, sandbox } = await startTestSandbox();
    const before = sandbox.service.current();
    const { status, json, text } = await control('PATCH', '/service', changes);
    expect([status, json.errors]).toEqual([400, [{ field, message: expect.any(String) }]]);
    expect(text).not.toContain('secret-0189');
    // The cast permits invalid values that the types forbid.
    expect(() => sandbox.service.change(changes as object)).toThrow(field.split('.').at(-1));
    expect(sandbox.service.current()).toEqual(before);
  });

  it.each([null, [], 'x', 7])('%j is refused, being no selection', async (changes) => {
    const { control } = await startTestSandbox();
    expect((await control('PATCH', '/service', changes)).status).toBe(400);
  });
});

describe('product queries', () => {
  async function startLists(service: ServiceSettingsInput = {}) {
    const test = await startTestSandbox({ service });
    await test.publish(5);
    const order = new URLSearchParams({ $orderby: 'PublicationDate asc', $top: '5' });
    return { ...test, ask: (path = '/Products') => send(`${test.root}${path}?${order}`) };
  }

  it('have the faults configured for the next queries, then none', async () => {
    const { ask, sandbox } = await startLists();
    const right = await ask();
    expect(right.json.value).toHaveLength(5);
    const next = { rateLimited: 1, serverError: 1, htmlPage: 1, connectionCut: 1, brokenJson: 1 };
    sandbox.service.change({ nextQueries: { ...next, valueMissing: 1, outOfOrder: 1 } });
    const limited = await ask();
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '5']);
    // A query by id always finds the product.
    expect((await ask(`/Products(${right.json.value[0].Id})`)).status).toBe(200);
    expect((await ask('/DeletedProducts')).status).toBe(500);
    const html = await ask();
    expect([html.status, html.headers.get('content-type')]).toEqual([200, 'text/html']);
    await expect(ask()).rejects.toThrow(/terminated|fetch failed/);
    await expect(ask()).rejects.toThrow(SyntaxError);
    const { value, ...rest } = right.json;
    expect(shape(await ask())).toEqual([200, rest]);
    expect((await ask()).json.value).toEqual(value.toReversed());
    expect((await ask()).json).toEqual(right.json);
    expect(Object.values(sandbox.service.current().nextQueries)).toEqual(Array(7).fill(0));
  });

  it('have faults at the configured share, the same for the same seed', async () => {
    const statuses = async () => {
      const { ask } = await startLists({ queryFaults: { serverError: 0.5 } });
      const answers: number[] = [];
      for (let index = 0; index < 40; index += 1) answers.push((await ask()).status);
      return answers;
    };
    const first = await statuses();
    expect(new Set(first)).toEqual(new Set([200, 500]));
    expect(await statuses()).toEqual(first);
  });

  it('have no Retry-After header when none is configured', async () => {
    const { ask } = await startLists({
      nextQueries: { rateLimited: 1 },
      queryRetryAfterSeconds: null,
    });
    const { status, headers } = await ask();
    expect([status, headers.has('retry-after')]).toEqual([429, false]);
  });

  it('are delayed for the configured time', async () => {
    const { ask, sandbox } = await startLists({ queryDelayMs: 3_000 });
    const asking = ask();
    const isOpen = () => sandbox.requests().some(({ path }) => path.endsWith('Products'));
    await expect.poll(isOpen).toBe(true);
    expect(sandbox.requests().at(-1)?.status).toBeNull();
    sandbox.clock.advance(3_000);
    expect((await asking).headers.get('date')).toBe(new Date(startMs + 3_000).toUTCString());
  });

  it('require a token when configured', async () => {
    const { ask, call } = await startLists({ queriesNeedToken: true });
    expect((await ask()).status).toBe(401);
    expect((await call('GET', '/Products')).json.value).toHaveLength(5);
  });
});
