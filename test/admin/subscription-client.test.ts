/** The client of the subscription API: requests, results of each answer, and errors. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { SubscriptionClient } from '../../src/admin/subscription-client.ts';
import { errorText } from '../../src/core/terms/app-error.ts';
import type { Answer } from '../core/http/answering-server.ts';
import {
  address,
  errorOf,
  id,
  newSubscription,
  shown,
  startStandIn,
} from './catalogue-stand-in.ts';

type Call = (client: SubscriptionClient) => Promise<unknown>;

const create: Call = (client) => client.create(newSubscription);
const pause: Call = (client) => client.edit(id, { status: 'paused' });
const remove: Call = (client) => client.delete(id);
const list: Call = (client) => client.list();

/** Returns the error of a call with the given answer. */
async function errorWith(answer: Answer, call = create) {
  return errorOf(call((await startStandIn([answer])).client));
}

const [all, one] = ['/odata/v1/Subscriptions', `/odata/v1/Subscriptions(${id})`];
const { username, password } = address.credentials;
const pair = { NotificationEpUsername: username, NotificationEpPassword: password };
const { filter, ...unfiltered } = {
  ...{ SubscriptionType: 'push', SubscriptionEvent: ['created', 'modified'] },
  ...{ StageOrder: false, Priority: 1, Status: 'running' },
  ...{ NotificationEndpoint: address.endpoint, ...pair, filter: newSubscription.filter },
};
const edits = (edit: Parameters<SubscriptionClient['edit']>[1]): Call => {
  return (client) => client.edit(id, edit);
};

it.each<[string, Call, string, object | null]>([
  ['create', create, `POST ${all}`, { ...unfiltered, FilterParam: filter }],
  [
    'create without a filter',
    (client) => client.create({ ...newSubscription, filter: '' }),
    `POST ${all}`,
    unfiltered,
  ],
  ['list', list, `GET ${all}/Info`, null],
  ['delete', remove, `DELETE ${one}`, null],
  ['edit a status', edits({ status: 'running' }), `PATCH ${one}`, { Status: 'running' }],
  ['edit credentials', edits({ credentials: address.credentials }), `PATCH ${one}`, pair],
  [
    'edit an endpoint',
    edits({ status: 'running', endpoint: 'https://a/b' }),
    `PATCH ${one}`,
    { Status: 'running', NotificationEndpoint: 'https://a/b' },
  ],
  [
    'edit an invalid id',
    (client) => client.edit('a/../b?c)#\ud800', { status: 'running' }),
    'PATCH /odata/v1/Subscriptions(a%2F..%2Fb%3Fc)%23%EF%BF%BD)',
    { Status: 'running' },
  ],
])('a request to %s has the specified form and the token', async (_, call, line, body) => {
  const { client, requests } = await startStandIn([{ body: call === list ? [] : shown }]);
  await call(client);
  const [sent] = requests;
  expect(`${sent?.method} ${sent?.path}`).toBe(line);
  expect(sent?.body === '' ? null : JSON.parse(sent?.body ?? '')).toEqual(body);
  expect(sent?.headers).toMatchObject({
    ...{ authorization: 'Bearer first-token', 'content-type': 'application/json' },
  });
});

describe('a successful answer', () => {
  const json = { 'Content-Type': 'application/json' };

  it.each<Answer>([
    { status: 201 },
    { status: 201, body: { Id: id } },
    { status: 201, body: '{"Id":', headers: json },
  ])('to a creation returns null if it is unreadable (%j)', async (answer) => {
    expect(await create((await startStandIn([answer])).client)).toBeNull();
  });

  it('is read in each format that may vary', async () => {
    const read = async (changes: object) =>
      (await (await startStandIn([{ body: [{ ...shown, ...changes }] }])).client.list())[0];
    const submittedAtUs = Date.UTC(2026, 4, 1, 12) * 1000;
    const one = { id, status: 'running', type: 'push', events: ['created'], filter: '' };
    const dated = { ...one, endpoint: address.endpoint, submittedAtUs, lastNotificationAtUs: null };
    expect(await read({})).toEqual(dated);
    expect(await read({ SubscriptionEvent: 'Created', StageOrder: undefined })).toEqual(dated);
    expect(await read({ SubmissionDate: '2026-05-01T12:00:00.000' })).toEqual(dated);
    expect(await read({ Status: 'Running', LastNotificationDate: 'soon' })).toEqual(dated);
    expect(await read({ LastNotificationDate: shown.SubmissionDate })).toMatchObject({
      lastNotificationAtUs: submittedAtUs,
    });
    const old = { SubscriptionType: undefined, NotificationEndpoint: undefined };
    expect(await read(old)).toMatchObject({ type: 'pull', endpoint: null });
  });

  it('to an edit is an error if it shows another status, and accepted with any other body', async () => {
    expect(await errorWith({ body: shown }, pause)).toMatchObject({ code: 'conflict' });
    for (const answer of [{ body: shown }, { status: 204 }, { body: '<html>' }]) {
      const { client, requests } = await startStandIn([answer]);
      await client.edit(id, { status: 'running' });
      await client.delete(id);
      expect(requests).toHaveLength(2);
    }
  });

  it.each<[unknown, string]>([
    [[shown, { Id: id }], 'item 2 of 2 lacks Status'],
    [[null], 'is not an object'],
    [{ value: [] }, 'not a JSON array'],
    [undefined, 'not a JSON array'],
  ])('to a list is an error if it is unreadable (%j)', async (body, words) => {
    const error = await errorWith({ body }, list);
    expect([error.code, errorText(error)]).toEqual(['unavailable', expect.stringContaining(words)]);
  });
});

describe('a subscription that is gone', () => {
  const listWith = (items: unknown[], answer: Answer) =>
    startStandIn(({ path }) => (path.endsWith('/Info') ? { body: items } : answer));

  const message = `Subscription with id ${id} not found.`;

  it.each([
    [400, message],
    [404, { message, request_id: 'r-404' }],
    [422, [{ loc: ['path', 'id'], msg: message }]],
  ])('can be deleted, and cannot be edited, with status %i and %j', async (status, detail) => {
    const { client, requests } = await startStandIn([{ status, body: { detail } }]);
    await client.delete(id);
    expect(requests).toHaveLength(1);
    const error = await errorOf(pause(client));
    expect(error.code).toBe('not_found');
    expect([errorText(error), ...error.details].join()).toContain(message);
  });

  it.each<Answer>([
    { status: 409, body: { detail: 'Cancelled before.' } },
    { status: 404, body: '<html><title>No such page</title></html>' },
    { status: 404, body: { detail: 'Not Found' } },
  ])('is searched in the list after another refusal of a deletion (%j)', async (answer) => {
    await (await listWith([{ ...shown, Id: 'another-id' }], answer)).client.delete(id);
    await errorOf((await listWith([shown], answer)).client.delete(id));
  });

  it('does not count as deleted when the URL is wrong', async () => {
    const error = await errorWith({ status: 404, body: '<html><title>404</title>' }, remove);
    expect([error.code, errorText(error)]).toEqual([
      'invalid',
      expect.stringMatching(/Check EARSHOT_CATALOGUE_URL\. Response: \(a web page\) 404$/),
    ]);
  });
});

it.each<Answer>([
  { status: 401 },
  { status: 403, body: { detail: 'Not authenticated' } },
  { status: 403, body: { detail: { message: 'Token has expired', request_id: 'r' } } },
])('a refused token is replaced once, also for a creation (%j)', async (answer) => {
  const refusing = await startStandIn([answer]);
  expect((await errorOf(list(refusing.client))).code).toBe('unauthorized');
  expect(refusing.refused).toEqual(['first-token', 'second-token']);
  expect(refusing.requests).toHaveLength(2);
  const { client, requests } = await startStandIn([answer, { status: 201, body: shown }]);
  expect(await create(client)).toMatchObject({ id });
  expect(requests[1]?.headers.authorization).toBe('Bearer second-token');
});

describe('an error', () => {
  it('has the code of its status', async () => {
    const statuses = { invalid: [400, 403, 404], conflict: [409], too_many: [429] };
    const codes = Object.entries({ ...statuses, unavailable: [301, 503] });
    for (const [code, status] of codes.flatMap(([code, all]) => all.map((one) => [code, one])))
      expect((await errorWith({ status: Number(status) })).code).toBe(code);
  });

  const detail = "Invalid filter: Invalid field: 'Größe' (see $filter).";
  const [inHeader, inBody] = [{ 'request-id': 'r-3' }, { message: 'Bad.', request_id: 'r-2' }];

  it.each<[Answer, string]>([
    [{ status: 400, body: { detail } }, `create the subscription (400). Response: ${detail}`],
    [{ status: 400, body: { detail: inBody }, headers: inHeader }, 'request id r-3). Response:'],
    [{ status: 400, body: '<html><title>502 Bad</title>' }, 'Response: (a web page) 502 Bad'],
    [{ status: 429, headers: { 'Retry-After': '17' } }, 'too many requests. Retry in 17 seconds.'],
    [
      { status: 302, headers: { location: 'https://elsewhere.example/path?token=first-token' } },
      'redirects to https://elsewhere.example (302).',
    ],
  ])('for %j has the words of the answer', async (answer, words) => {
    expect(errorText(await errorWith(answer))).toContain(words);
  });

  it('shows a list of faults in lines, at most twenty, without the input', async () => {
    const input = { NotificationEpPassword: password, odd: 'input' };
    const faults = [
      { type: 'enum', loc: ['body', 'SubscriptionEvent', 0], msg: 'Input should be …', input },
      { msg: 'Without a place', input },
      { input },
      ...Array.from({ length: 45 }, () => ({ msg: 'odd' })),
    ];
    const { details } = await errorWith({ status: 422, body: { detail: faults } });
    expect(details.slice(0, 3)).toEqual([
      'body.SubscriptionEvent.0: Input should be …',
      'Without a place',
      '(a fault without a message)',
    ]);
    expect([details.length, details.at(-1)]).toEqual([21, '… lines not shown: 28']);
  });

  it.each([
    ['as a text', (text: string) => ({ detail: text })],
    ['as a list', (text: string) => ({ detail: [{ loc: [text], msg: text }] })],
    ['as plain text', (text: string) => text],
  ])('never contains our secrets: %s', async (_title, form) => {
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const body = form(`first-token ${password} ${encodeURIComponent(password)} ${basic}`);
    const headers = { 'request-id': 'Bearer first-token' };
    const error = await errorWith({ status: 400, body, headers });
    expect([errorText(error), ...error.details].join()).toContain('… … … …');
  });
});

const fixtures = resolve(import.meta.dirname, '../../../shared/fixtures');
const fixture = (name: string) => JSON.parse(readFileSync(join(fixtures, name), 'utf8'));

describe.skipIf(!existsSync(fixtures))('the real catalogue (in ../shared/fixtures)', () => {
  const documented = (name: string) => fixture(`subscriptions/${name}.json`);

  it('documents answers that are read: to a creation, a list, an edit', async () => {
    const created = documented('create-push-201');
    const { client } = await startStandIn([
      { status: 201, body: created },
      { body: documented('info-list-200') },
      { body: documented('patch-paused-200') },
    ]);
    const endpoint = 'https://userservice/notification';
    expect(await create(client)).toEqual({
      ...{ id, status: 'running', type: 'push', events: ['created'] },
      ...{ filter: created.FilterParam, endpoint, lastNotificationAtUs: null },
      submittedAtUs: Date.UTC(2024, 0, 18, 9, 47, 34) * 1000 + 267_200,
    });
    expect(await client.list()).toMatchObject([
      {
        ...{ id, status: 'running', endpoint },
        lastNotificationAtUs: Date.UTC(2024, 0, 18, 9, 47, 45, 540) * 1000,
      },
      { status: 'paused', endpoint: null },
    ]);
    await pause(client);
  });

  it('sends errors that are shown word for word, with their request id and field', async () => {
    let seen = 0;
    for (const { request, response, ...bare } of readdirSync(join(fixtures, 'errors')).flatMap(
      (name) => fixture(`errors/${name}`),
    )) {
      const body = response?.body ?? bare;
      const requestId: string = response?.headers['request-id'] ?? 'none';
      const status = response?.status.code ?? 400;
      const error = await errorWith({ status, body, headers: { 'request-id': requestId } });
      const { detail } = body;
      const words = Array.isArray(detail)
        ? detail.map(({ msg }) => msg)
        : [detail.message ?? detail];
      const text = [errorText(error), ...error.details].join('\n');
      for (const word of words) expect(text).toContain(word);
      if (request !== undefined) expect(text).toContain(requestId);
      seen += 1;
    }
    expect(seen).toBeGreaterThanOrEqual(12);
    const body = fixture('errors/products-422-skip-release-notes.json');
    const { details } = await errorWith({ status: 422, body });
    expect(details).toEqual(['query.$skip: Input should be less than or equal to 10000']);
  });
});
