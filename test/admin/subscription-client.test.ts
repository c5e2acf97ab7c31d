/** The client of the subscription API: requests, results of each answer, and errors. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createSubscriptionClient } from '../../src/admin/subscription-client.ts';
import { errorText } from '../../src/core/terms/app-error.ts';
import type { Answer } from '../core/http/answering-server.ts';
import { freePort } from '../helpers/free-ports.ts';
import {
  address,
  errorOf,
  id,
  listedTokens,
  newSubscription,
  notFound,
  shown,
  startStandIn,
} from './catalogue-stand-in.ts';

const { username, password } = address.credentials;

/** Returns the request of a call with the given answer. */
async function sentBy(
  call: (client: Awaited<ReturnType<typeof startStandIn>>['client']) => Promise<unknown>,
  answer: Answer,
) {
  const { client, requests } = await startStandIn([answer]);
  await call(client);
  const [request] = requests;
  if (request === undefined) throw new Error('No request was sent.');
  const { method, path, headers, body } = request;
  return { method, path, headers, json: body === '' ? null : JSON.parse(body) };
}

describe('a request', () => {
  it('to create has the specified path and body', async () => {
    const sent = await sentBy((client) => client.create(newSubscription), {
      status: 201,
      body: shown,
    });
    expect([sent.method, sent.path]).toEqual(['POST', '/odata/v1/Subscriptions']);
    expect(sent.json).toEqual({
      SubscriptionType: 'push',
      SubscriptionEvent: ['created', 'modified'],
      FilterParam: newSubscription.filter,
      StageOrder: false,
      Priority: 1,
      Status: 'running',
      NotificationEndpoint: address.endpoint,
      NotificationEpUsername: username,
      NotificationEpPassword: password,
    });
  });

  it('to create without a filter has no FilterParam', async () => {
    const paused = { ...newSubscription, filter: '', status: 'paused' } as const;
    const sent = await sentBy((client) => client.create(paused), { status: 201, body: shown });
    expect(Object.keys(sent.json)).not.toContain('FilterParam');
    expect(sent.json.Status).toBe('paused');
  });

  it.each([
    [{ status: 'paused' }, { Status: 'paused' }],
    [{ endpoint: address.endpoint }, { NotificationEndpoint: address.endpoint }],
    [
      { credentials: address.credentials },
      { NotificationEpUsername: username, NotificationEpPassword: password },
    ],
    [
      { status: 'running', endpoint: 'https://a/b' },
      { Status: 'running', NotificationEndpoint: 'https://a/b' },
    ],
  ] as const)('to edit contains only the changed fields: %j', async (edit, body) => {
    const sent = await sentBy((client) => client.edit(id, edit), { status: 204 });
    expect([sent.method, sent.path]).toEqual(['PATCH', `/odata/v1/Subscriptions(${id})`]);
    expect(sent.json).toEqual(body);
  });

  it('to edit nothing is not sent', async () => {
    const { client, requests } = await startStandIn([{ body: shown }]);
    await client.edit(id, {});
    expect(requests).toEqual([]);
  });

  it('to list and delete have the specified methods, paths and bodies', async () => {
    const list = await sentBy((client) => client.list(), { body: [] });
    expect([list.method, list.path, list.json]).toEqual([
      'GET',
      '/odata/v1/Subscriptions/Info',
      null,
    ]);
    const path = `/odata/v1/Subscriptions(${id})`;
    const gone = await sentBy((client) => client.delete(id), { status: 204 });
    expect([gone.method, gone.path, gone.json]).toEqual(['DELETE', path, null]);
  });

  it('always has the token and the content type', async () => {
    const { client, requests } = await startStandIn(({ path }) => ({
      body: path.endsWith('Info') ? [] : shown,
    }));
    await client.list();
    await client.create(newSubscription);
    await client.edit(id, { status: 'running' });
    await client.delete(id);
    expect(requests).toHaveLength(4);
    for (const { headers } of requests) {
      expect(headers.authorization).toBe('Bearer first-token');
      expect(headers['content-type']).toBe('application/json');
    }
  });

  it('encodes an invalid id in the path', async () => {
    const { client, requests } = await startStandIn([{ body: shown }]);
    await client.edit('a/../b?c)#\ud800', { status: 'running' });
    expect(requests[0]?.path).toBe('/odata/v1/Subscriptions(a%2F..%2Fb%3Fc)%23%EF%BF%BD)');
  });
});

const fixtures = resolve(import.meta.dirname, '../../../shared/fixtures/subscriptions');
const fixture = (name: string) => JSON.parse(readFileSync(join(fixtures, name), 'utf8'));

describe.skipIf(!existsSync(fixtures))('the documented examples (in ../shared/fixtures)', () => {
  it('of a creation have the fields that the client sends', async () => {
    const sent = await sentBy((client) => client.create(newSubscription), {
      status: 201,
      body: shown,
    });
    const documented = fixture('create-push-request.json');
    expect(Object.keys(sent.json).toSorted()).toEqual(Object.keys(documented).toSorted());
    expect(sent.json.SubscriptionType).toBe(documented.SubscriptionType);
  });

  it('of an answer to a creation are read', async () => {
    const { client } = await startStandIn([{ status: 201, body: fixture('create-push-201.json') }]);
    expect(await client.create(newSubscription)).toEqual({
      id,
      status: 'running',
      type: 'push',
      events: ['created'],
      filter: fixture('create-push-201.json').FilterParam,
      endpoint: 'https://userservice/notification',
      submittedAtUs: Date.UTC(2024, 0, 18, 9, 47, 34) * 1000 + 267_200,
      lastNotificationAtUs: null,
    });
  });

  it('of a list are read, push and pull', async () => {
    const { client } = await startStandIn([{ body: fixture('info-list-200.json') }]);
    const [push, pull] = await client.list();
    expect(push).toMatchObject({
      id,
      status: 'running',
      endpoint: 'https://userservice/notification',
      lastNotificationAtUs: Date.UTC(2024, 0, 18, 9, 47, 45, 540) * 1000,
    });
    expect(pull).toMatchObject({ status: 'paused', endpoint: null });
  });

  it('of an edit are a success', async () => {
    const { client } = await startStandIn([{ body: fixture('patch-paused-200.json') }]);
    await client.edit(id, { status: 'paused' });
  });
});

describe('a successful answer', () => {
  it.each<Answer>([
    { status: 201 },
    { status: 201, body: 'created' },
    { status: 200, body: [] },
    { status: 201, body: { Id: id } },
    { status: 201, body: '{"Id":', headers: { 'Content-Type': 'application/json' } },
  ])('to a creation returns null if it is unreadable (%j)', async (answer) => {
    const { client } = await startStandIn([answer]);
    expect(await client.create(newSubscription)).toBeNull();
  });

  it('to an edit is an error if it shows another status', async () => {
    const { client } = await startStandIn([{ status: 200, body: shown }]);
    const edit = client.edit(id, { status: 'paused' });
    await expect(edit).rejects.toMatchObject({ code: 'conflict' });
  });

  it.each<Answer>([{ status: 200, body: shown }, { status: 204 }, { status: 200, body: '<html>' }])(
    'to an edit or a deletion is accepted with any body (%j)',
    async (answer) => {
      const { client, requests } = await startStandIn([answer]);
      await client.edit(id, { status: 'running' });
      await client.delete(id);
      expect(requests).toHaveLength(2);
    },
  );

  it.each([
    [{ Id: id }, 'item 2 of 2 lacks Status'],
    [{}, 'item 2 of 2 lacks Id and Status'],
    [null, 'item 2 of 2 is not an object'],
    [{ ...shown, Id: '' }, 'lacks Id'],
  ])('to a list is an error if an item is unreadable (%j)', async (item, words) => {
    const { client } = await startStandIn([{ body: [shown, item] }]);
    const error = await errorOf(client.list());
    expect([error.code, errorText(error)]).toEqual(['unavailable', expect.stringContaining(words)]);
  });

  it.each<Answer>([{ body: { value: [] } }, { body: '<html>' }, { status: 204 }])(
    'to a list is an error if it is not an array (%j)',
    async (answer) => {
      const { client } = await startStandIn([answer]);
      const error = await errorOf(client.list());
      expect([error.code, errorText(error)]).toEqual([
        'unavailable',
        'The list of subscriptions cannot be read: the response is not a JSON array. Check EARSHOT_CATALOGUE_URL.',
      ]);
    },
  );
});

describe('a single subscription', () => {
  const other = { ...shown, Id: 'another-id' };
  const listWith = (items: unknown[], answer: Answer) =>
    startStandIn(({ path }) => (path.endsWith('/Info') ? { body: items } : answer));

  it('that is gone can be deleted', async () => {
    const { client, requests } = await startStandIn([notFound]);
    await client.delete(id);
    expect(requests.map(({ method }) => method)).toEqual(['DELETE']);
  });

  it.each<Answer>([
    { status: 410, body: { detail: 'Gone.' } },
    { status: 409, body: { detail: 'Cancelled before.' } },
    { status: 404, body: '<html><title>No such page</title></html>' },
    { status: 404, body: { detail: 'Not Found' } },
  ])('is searched in the list before it counts as gone (%j)', async (answer) => {
    await (await listWith([other], answer)).client.delete(id);
    const { client } = await listWith([shown], answer);
    await errorOf(client.delete(id));
  });

  it('does not count as deleted when the URL is wrong', async () => {
    const { client } = await startStandIn([{ status: 404, body: '<html><title>404</title>' }]);
    const error = await errorOf(client.delete(id));
    expect([error.code, errorText(error)]).toEqual([
      'invalid',
      'The catalogue refused to list subscriptions (404). Check EARSHOT_CATALOGUE_URL. Response: (a web page) 404',
    ]);
  });

  it('that is gone cannot be edited', async () => {
    const { client } = await startStandIn([notFound]);
    const error = await errorOf(client.edit(id, { status: 'paused' }));
    expect([error.code, errorText(error)]).toEqual([
      'not_found',
      `The catalogue could not change subscription ${id} (404, request id r-404): the subscription does not exist. To list all: \`earshot subscriptions list\`. Response: Subscription with id ${id} not found.`,
    ]);
  });
});

describe('a creation', () => {
  it.each<Answer>(['cut', 'hang', { status: 503 }, { status: 500 }, { status: 429 }])(
    'is sent only once (%j)',
    async (answer) => {
      const { client, requests } = await startStandIn([answer], { attemptTimeoutMs: 300 });
      const error = await errorOf(client.create(newSubscription));
      const tooMany = typeof answer === 'object' && 'status' in answer && answer.status === 429;
      expect(error.code).toBe(tooMany ? 'too_many' : 'unavailable');
      expect(requests).toHaveLength(1);
    },
  );

  it('refused because of its token is sent again with another', async () => {
    const unauthorized = { status: 401, body: { detail: 'Unauthorized' } };
    const { client, requests, refused } = await startStandIn([
      unauthorized,
      { status: 201, body: shown },
    ]);
    expect((await client.create(newSubscription))?.id).toBe(id);
    expect(refused).toEqual(['first-token']);
    expect(requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first-token',
      'Bearer second-token',
    ]);
  });
});

describe('a refused token', () => {
  it.each<Answer>([
    { status: 401 },
    { status: 401, body: { detail: 'Unauthorized' } },
    { status: 403, body: { detail: 'Not authenticated' } },
    { status: 403, body: { detail: { message: 'Token has expired', request_id: 'r' } } },
  ])('is replaced only once (%j)', async (answer) => {
    const { client, requests, refused } = await startStandIn([answer]);
    const error = await errorOf(client.list());
    expect(error.code).toBe('unauthorized');
    expect(errorText(error)).toContain('the access token is not valid');
    expect(refused).toEqual(['first-token', 'second-token']);
    expect(requests).toHaveLength(2);
  });

  it('is distinguished from a forbidden request', async () => {
    const answer = { status: 403, body: { detail: 'Quota of this account is used up.' } };
    const { client, refused } = await startStandIn([answer]);
    const error = await errorOf(client.list());
    expect([error.code, refused]).toEqual(['invalid', []]);
  });
});

it('an unreachable catalogue causes an error that names the request', async () => {
  const host = `127.0.0.1:${await freePort()}`;
  const client = createSubscriptionClient({
    catalogueUrl: `http://${host}`,
    tokens: listedTokens().tokens,
    fetch,
    random: () => 0,
    timing: { retryDelayMs: 1 },
  });
  const error = await errorOf(client.create(newSubscription));
  expect([error.code, errorText(error)]).toEqual([
    'unavailable',
    `Could not create the subscription: the catalogue (${host}) cannot be reached: the connection was refused (ECONNREFUSED). Retry later. If this happens again, check EARSHOT_CATALOGUE_URL.`,
  ]);
});

/** Returns the error of the client for an answer to a creation. */
async function errorWith(answer: Answer) {
  const { client } = await startStandIn([answer]);
  return errorOf(client.create(newSubscription));
}

describe('the text of an error', () => {
  it('is shown unchanged if it is a string', async () => {
    const detail = "Invalid filter: Invalid field: 'Größe' (see $filter).";
    const error = await errorWith({
      status: 400,
      body: { detail },
      headers: { 'request-id': 'r-1' },
    });
    expect(errorText(error)).toBe(
      `The catalogue refused to create the subscription (400, request id r-1). Response: ${detail}`,
    );
  });

  it('is shown if it is in an object, with the request id of a header or the body', async () => {
    const body = { detail: { message: 'Invalid value.', request_id: 'r-2' } };
    expect(errorText(await errorWith({ status: 400, body }))).toBe(
      'The catalogue refused to create the subscription (400, request id r-2). Response: Invalid value.',
    );
    const headers = { 'request-id': 'r-3' };
    expect(errorText(await errorWith({ status: 400, body, headers }))).toContain('request id r-3)');
  });

  it('is shown line by line if it is a list, without the input', async () => {
    const input = { NotificationEpPassword: address.credentials.password, odd: 'input' };
    const detail = [
      { type: 'missing', loc: ['body', 'SubscriptionType'], msg: 'Field required', input },
      { type: 'enum', loc: ['body', 'SubscriptionEvent', 0], msg: 'Input should be …', input },
      { msg: 'Without a place', input },
      'a text',
      { input },
    ];
    const error = await errorWith({ status: 422, body: { detail } });
    expect(errorText(error)).toBe(
      'The catalogue refused to create the subscription (422). Response:',
    );
    expect(error.details).toEqual([
      'body.SubscriptionType: Field required',
      'body.SubscriptionEvent.0: Input should be …',
      'Without a place',
      'a text',
      '(a fault without a message)',
    ]);
  });

  it('is limited to twenty lines if it is a long list', async () => {
    const detail = Array.from({ length: 50 }, (_, index) => ({ loc: [index], msg: 'odd' }));
    const { details } = await errorWith({ status: 422, body: { detail } });
    expect([details.length, details.at(-1)]).toEqual([21, '… lines not shown: 30']);
  });

  it.each([
    ['plain text', 'upstream connect error', 'Response: upstream connect error'],
    ['a page', '<html><title>502 Bad Gateway</title>', 'Response: (a web page) 502 Bad Gateway'],
    ['other JSON', { error: 'odd' }, 'Response: {"error":"odd"}'],
    ['control characters', 'a\u001b]0;x\u0007b', 'Response: a\\u001b]0;x\\u0007b'],
    ['a long text', 'x'.repeat(300), `Response: ${'x'.repeat(200)}…`],
  ])('is shown as a hint if it is %s', async (_title, body, words) => {
    const error = await errorWith({ status: 400, body });
    expect(errorText(error).endsWith(words)).toBe(true);
  });

  it('is replaced by the status if it is missing', async () => {
    expect(errorText(await errorWith({ status: 418 }))).toBe(
      'The catalogue refused to create the subscription (418).',
    );
  });

  it.each([
    ['as a text', (text: string) => ({ detail: text })],
    ['as an object', (text: string) => ({ detail: { message: text } })],
    ['as a list', (text: string) => ({ detail: [{ loc: [text], msg: text }] })],
    ['in another form', (text: string) => ({ sent: text })],
    ['as plain text', (text: string) => text],
  ])('never contains our secrets: %s', async (_title, form) => {
    const { username, password } = address.credentials;
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const echo = `first-token ${password} ${encodeURIComponent(password)} ${basic}`;
    const error = await errorWith({
      status: 400,
      body: form(echo),
      headers: { 'request-id': 'Bearer first-token' },
    });
    expect([errorText(error), ...error.details].join()).toContain('… … … …');
  });
});

describe('the error code', () => {
  it.each([
    [400, 'invalid'],
    [403, 'invalid'],
    [404, 'invalid'],
    [409, 'conflict'],
    [422, 'invalid'],
    [429, 'too_many'],
    [500, 'unavailable'],
    [503, 'unavailable'],
    [301, 'unavailable'],
  ])('for status %i is %s', async (status, code) => {
    expect((await errorWith({ status })).code).toBe(code);
  });

  it('for too many requests comes with the time of the next attempt', async () => {
    const soon = await errorWith({ status: 429, headers: { 'Retry-After': '17' } });
    expect(errorText(soon)).toBe(
      'The catalogue refused to create the subscription (429): too many requests. Retry in 17 seconds.',
    );
    expect(errorText(await errorWith({ status: 429 }))).toContain('Retry later.');
  });

  it('for a redirect comes with the target, without the path', async () => {
    const location = 'https://elsewhere.example/path?token=first-token';
    expect(errorText(await errorWith({ status: 302, headers: { location } }))).toBe(
      'The catalogue did not create the subscription: it redirects to https://elsewhere.example (302). earshot does not follow redirects, to protect the access token. Check EARSHOT_CATALOGUE_URL.',
    );
    const odd = await errorWith({ status: 302, headers: { location: 'javascript:first-token' } });
    expect(errorText(odd)).toContain('redirects to another address (302)');
  });

  it('for an unknown id is not_found, with any status', async () => {
    for (const status of [400, 404, 410, 422]) {
      for (const detail of [
        `Subscription with id ${id} not found.`,
        { message: `Subscription with id ${id} not found.` },
        [{ loc: ['path', 'id'], msg: `Subscription with id ${id} not found.` }],
      ]) {
        const { client } = await startStandIn([{ status, body: { detail } }]);
        expect((await errorOf(client.edit(id, { status: 'paused' }))).code).toBe('not_found');
      }
    }
  });
});

const recordedErrors = resolve(import.meta.dirname, '../../../shared/fixtures/errors');

describe.skipIf(!existsSync(recordedErrors))(
  'recorded errors of the real catalogue (in ../shared/fixtures)',
  () => {
    const recorded = () =>
      readdirSync(recordedErrors).flatMap((name) =>
        JSON.parse(readFileSync(join(recordedErrors, name), 'utf8')),
      );

    it('are shown word for word, with their request id', async () => {
      let seen = 0;
      for (const { request, response, ...bare } of recorded()) {
        const body = response?.body ?? bare;
        const headers =
          response === undefined ? {} : { 'request-id': response.headers['request-id'] };
        const error = await errorWith({ status: response?.status.code ?? 400, body, headers });
        const { detail } = body;
        const words = Array.isArray(detail)
          ? detail.map(({ msg }) => msg)
          : [detail.message ?? detail];
        for (const word of words)
          expect([errorText(error), ...error.details].join('\n')).toContain(word);
        if (request !== undefined) expect(errorText(error)).toContain(headers['request-id']);
        seen += 1;
      }
      expect(seen).toBeGreaterThanOrEqual(12);
    });

    it('in a list are shown with their field', async () => {
      const name = join(recordedErrors, 'products-422-skip-release-notes.json');
      const { details } = await errorWith({
        status: 422,
        body: JSON.parse(readFileSync(name, 'utf8')),
      });
      expect(details).toEqual(['query.$skip: Input should be less than or equal to 10000']);
    });
  },
);
