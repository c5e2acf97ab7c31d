/** What the subscription API's client sends: paths, headers and bodies as specified and documented. */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../http/answering-server.ts';
import { id, shown, startStandIn, wanted } from './catalogue-stand-in.ts';

const { username, password } = wanted.credentials;

/** What one call sends, when it is answered so. */
async function sentBy(
  call: (client: Awaited<ReturnType<typeof startStandIn>>['client']) => Promise<unknown>,
  answer: Answer,
) {
  const { client, requests } = await startStandIn([answer]);
  await call(client);
  const [request] = requests;
  if (request === undefined) throw new Error('Nothing was sent.');
  const { method, path, headers, body } = request;
  return { method, path, headers, json: body === '' ? null : JSON.parse(body) };
}

describe('a request', () => {
  it('to create has the specified path and body', async () => {
    const sent = await sentBy((client) => client.create(wanted), { status: 201, body: shown });
    expect([sent.method, sent.path]).toEqual(['POST', '/odata/v1/Subscriptions']);
    expect(sent.json).toEqual({
      SubscriptionType: 'push',
      SubscriptionEvent: ['created', 'modified'],
      FilterParam: wanted.filter,
      StageOrder: false,
      Priority: 1,
      Status: 'running',
      NotificationEndpoint: wanted.endpoint,
      NotificationEpUsername: username,
      NotificationEpPassword: password,
    });
  });

  it('to create without a filter has no FilterParam', async () => {
    const paused = { ...wanted, filter: '', status: 'paused' } as const;
    const sent = await sentBy((client) => client.create(paused), { status: 201, body: shown });
    expect(Object.keys(sent.json)).not.toContain('FilterParam');
    expect(sent.json.Status).toBe('paused');
  });

  it.each([
    [{ status: 'paused' }, { Status: 'paused' }],
    [{ endpoint: wanted.endpoint }, { NotificationEndpoint: wanted.endpoint }],
    [
      { credentials: wanted.credentials },
      { NotificationEpUsername: username, NotificationEpPassword: password },
    ],
    [
      { status: 'running', endpoint: 'https://a/b' },
      { Status: 'running', NotificationEndpoint: 'https://a/b' },
    ],
  ] as const)('to edit has only what changes: %j', async (edit, body) => {
    const sent = await sentBy((client) => client.edit(id, edit), { status: 204 });
    expect([sent.method, sent.path]).toEqual(['PATCH', `/odata/v1/Subscriptions(${id})`]);
    expect(sent.json).toEqual(body);
  });

  it('to edit nothing is not sent', async () => {
    const { client, requests } = await startStandIn([{ body: shown }]);
    await client.edit(id, {});
    expect(requests).toEqual([]);
  });

  it('to list, show, cancel and delete have the specified methods, paths and bodies', async () => {
    const list = await sentBy((client) => client.list(), { body: [] });
    expect([list.method, list.path, list.json]).toEqual([
      'GET',
      '/odata/v1/Subscriptions/Info',
      null,
    ]);
    const path = `/odata/v1/Subscriptions(${id})`;
    const get = await sentBy((client) => client.get(id), { body: shown });
    expect([get.method, get.path, get.json]).toEqual(['GET', path, null]);
    const cancel = await sentBy((client) => client.cancel(id), { status: 204 });
    expect([cancel.method, cancel.path, cancel.json]).toEqual([
      'PATCH',
      path,
      { Status: 'cancelled' },
    ]);
    const gone = await sentBy((client) => client.delete(id), { status: 204 });
    expect([gone.method, gone.path, gone.json]).toEqual(['DELETE', path, null]);
  });

  it('always carries the token and the content type', async () => {
    const { client, requests } = await startStandIn(({ path }) => ({
      body: path.endsWith('Info') ? [] : shown,
    }));
    await client.list();
    await client.get(id);
    await client.create(wanted);
    await client.edit(id, { status: 'running' });
    await client.cancel(id);
    await client.delete(id);
    expect(requests).toHaveLength(6);
    for (const { headers } of requests) {
      expect(headers.authorization).toBe('Bearer first-token');
      expect(headers['content-type']).toBe('application/json');
    }
  });

  it('keeps an id that is none within its place in the path', async () => {
    const { client, requests } = await startStandIn([{ body: shown }]);
    await client.edit('a/../b?c)#\ud800', { status: 'running' });
    expect(requests[0]?.path).toBe('/odata/v1/Subscriptions(a%2F..%2Fb%3Fc)%23%EF%BF%BD)');
  });
});

const fixtures = resolve(import.meta.dirname, '../../../../shared/fixtures/subscriptions');
const fixture = (name: string) => JSON.parse(readFileSync(join(fixtures, name), 'utf8'));

describe.skipIf(!existsSync(fixtures))('the documented examples (in ../shared/fixtures)', () => {
  it('of a creation are what is sent, but for our own values', async () => {
    const sent = await sentBy((client) => client.create(wanted), { status: 201, body: shown });
    const documented = fixture('create-push-request.json');
    expect(Object.keys(sent.json).toSorted()).toEqual(Object.keys(documented).toSorted());
    expect(sent.json.SubscriptionType).toBe(documented.SubscriptionType);
  });

  it('of an answer to a creation are read', async () => {
    const { client } = await startStandIn([{ status: 201, body: fixture('create-push-201.json') }]);
    expect(await client.create(wanted)).toEqual({
      id,
      status: 'running',
      type: null,
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

  it('of an edit are success', async () => {
    const { client } = await startStandIn([{ body: fixture('patch-paused-200.json') }]);
    await client.edit(id, { status: 'paused' });
  });
});
