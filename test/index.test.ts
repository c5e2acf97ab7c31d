/** The library as users have it: the receiver in their own app, with a separate store. */
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { describe, expect, it } from 'vitest';
import { createReceiver, type Outcome } from '../src/index.ts';
import { collect, notification } from './helpers/deliveries.ts';
import { openTestStore, pair, serveApp } from './helpers/mounted-receiver.ts';

const good = (number = 1, fields = {}) => JSON.stringify(notification(number, fields));
const authorization = `Basic ${Buffer.from(`${pair.username}:${pair.password}`).toString('base64')}`;
const large = 'x'.repeat(3 * 2 ** 20);

describe.each(['', '/earshot'])('a receiver mounted at "%s/"', (prefix) => {
  const path = `${prefix}/notifications/alps`;

  async function mounted() {
    const outcomes: [Outcome, string | null][] = [];
    const onOutcome = (outcome: Outcome, name: string | null) =>
      void outcomes.push([outcome, name]);
    const context = await serveApp(
      (app, receiver) => {
        app.use(async (c, next) => {
          await next();
          c.header('X-Own', 'yes');
        });
        app.get('/own', (c) => c.text('own'));
        app.route(prefix === '' ? '/' : prefix, receiver);
        app.get('/notifications/own/page', (c) => c.text('own page'));
        app.notFound((c) => c.text('nothing of mine', 404));
      },
      { onOutcome },
    );
    return { ...context, outcomes };
  }

  it('stores a notification once, however often it arrives', async () => {
    const { store, send, outcomes } = await mounted();
    const first = await send({ path, body: good() });
    expect(first).toMatchObject({ status: 200, body: '{"status":"stored"}' });
    expect(first.headers['x-own']).toBe('yes');
    const unnamed = { path: `${prefix}/notifications`, body: good() };
    expect(await send(unnamed)).toMatchObject({ status: 200, body: '{"status":"duplicate"}' });
    const rows = await collect(store.find({}));
    expect(rows).toMatchObject([{ ackId: 'ack-1', subscription: 'alps', timesSeen: 2 }]);
    expect(outcomes).toEqual([
      ['stored', 'alps'],
      ['duplicate', null],
    ]);
  });

  it('answers a probe, and refuses wrong credentials and other methods, with and without a body', async () => {
    const { store, send } = await mounted();
    expect(await send({ method: 'GET', path })).toMatchObject({ status: 200, body: '' });
    expect(await send({ method: 'HEAD', path })).toMatchObject({ status: 200, body: '' });
    for (const auth of [undefined, 'catalogue:wrong', 'other:open: sesame']) {
      const refused = await send({ path, auth, body: good() });
      expect(refused.status).toBe(401);
      expect(refused.headers['www-authenticate']).toMatch(/^Basic /);
    }
    expect(await send({ method: 'GET', path, auth: undefined })).toMatchObject({ status: 401 });
    expect(await send({ path, auth: undefined, body: large })).toMatchObject({ status: 401 });
    expect(await send({ method: 'PUT', path, body: good() })).toMatchObject({ status: 405 });
    expect(await store.counts()).toMatchObject({ notifications: 0, quarantined: 0 });
  });

  it('lets the sender read that a body is too large, and accepts the next one', async () => {
    const { send } = await mounted();
    const chunked = { 'Transfer-Encoding': 'chunked' };
    for (const headers of [{}, chunked]) {
      const refused = await send({ path, body: large, headers });
      expect(refused).toMatchObject({ status: 413, body: /larger than 1048576 bytes/ });
    }
    expect(await send({ path, body: good() })).toMatchObject({ body: '{"status":"stored"}' });
  });

  it('leaves all other paths to the app', async () => {
    const { send } = await mounted();
    expect(await send({ method: 'GET', path: '/own' })).toMatchObject({ body: 'own' });
    const page = { method: 'GET', path: '/notifications/own/page', auth: undefined };
    expect(await send(page)).toMatchObject({ status: 200, body: 'own page' });
    const unknown = await send({ path: `${prefix}/notifications/UPPER`, body: good() });
    expect(unknown).toMatchObject({ status: 404, body: 'nothing of mine' });
  });
});

describe('with middleware that reads bodies', () => {
  const middleware: Record<string, (app: Hono) => unknown> = {
    'as JSON': (app) => app.use((c, next) => c.req.json().then(next)),
    'as bytes': (app) => app.use((c, next) => c.req.arrayBuffer().then(next)),
    'of a bounded length': (app) => app.use(bodyLimit({ maxSize: 2 ** 20 })),
  };
  const manners = { 'with a length': {}, 'in chunks': { 'Transfer-Encoding': 'chunked' } };

  for (const [name, use] of Object.entries(middleware)) {
    it.each(Object.entries(manners))(
      `the receiver accepts a body that was read ${name} and came %s`,
      async (_, headers) => {
        const { store, send } = await serveApp((app, receiver) => {
          use(app);
          app.route('/', receiver);
        });
        const body = good(1, { padding: 'x'.repeat(300_000) });
        expect(await send({ body, headers })).toMatchObject({ body: '{"status":"stored"}' });
        const [row] = await collect(store.find({}));
        expect(Buffer.from(await store.body(row?.position ?? 0)).toString()).toBe(
          name === 'as JSON' ? JSON.stringify(JSON.parse(body)) : body,
        );
        expect(await send({ auth: undefined, body, headers })).toMatchObject({ status: 401 });
      },
    );
  }

  const wrong: [string, (raw: Request) => unknown][] = [
    ['was read', (raw) => raw.text()],
    ['is locked by a reader', (raw) => raw.body?.getReader()],
    [
      'was released after a part was read',
      async (raw) => {
        const reader = raw.body?.getReader();
        await reader?.read();
        reader?.releaseLock();
      },
    ],
  ];
  const each = wrong.flatMap(([name, read]) =>
    Object.entries(manners).map(([manner, headers]) => ({ name, manner, headers, read })),
  );

  it.each(each)('a body that $name and came $manner is reported as unavailable', async (how) => {
    const outcomes: Outcome[] = [];
    const lines: unknown[] = [];
    const note = (fields: object, message: string) => void lines.push(fields, message);
    const log = { debug: note, info: note, warn: note, error: note };
    const { store, send } = await serveApp(
      (app, receiver) => {
        app.use(async (c, next) => {
          await how.read(c.req.raw);
          await next();
        });
        app.route('/', receiver);
      },
      { log, onOutcome: (outcome) => void outcomes.push(outcome) },
    );
    expect(await send({ auth: undefined, body: good() })).toMatchObject({ status: 401 });
    expect(await send({ method: 'GET' })).toMatchObject({ status: 200 });
    lines.length = 0;
    const { status, body } = await send({ body: good(), headers: how.headers });
    expect(status).toBe(500);
    expect(JSON.parse(body)).toMatchObject({
      title: 'Internal error',
      requestId: expect.any(String),
    });
    const message = expect.stringContaining('instead of through c.req');
    expect(lines).toMatchObject([
      { requestId: JSON.parse(body).requestId, err: { message } },
      'request failed',
    ]);
    expect(outcomes).toEqual(['unauthorized', 'failed']);
    expect(await store.counts()).toMatchObject({ notifications: 0 });
  });
});

const post = (body: string, headers: Record<string, string> = { authorization }) =>
  ({ method: 'POST', body, headers }) as const;

it('without a server the receiver gives the same responses, so that a user can test an app', async () => {
  const store = await openTestStore();
  const app = new Hono().route('/', createReceiver({ store, credentials: [pair] }));
  const answer = async (init: RequestInit) => {
    const response = await app.request('/notifications/alps', init);
    return [response.status, (await response.text()).slice(0, 22)];
  };
  expect(await answer(post(good()))).toEqual([200, '{"status":"stored"}']);
  expect(await answer(post(good()))).toEqual([200, '{"status":"duplicate"}']);
  expect(await answer({ headers: { authorization } })).toEqual([200, '']);
  expect((await answer(post(good(), {})))[0]).toBe(401);
  expect((await answer(post('[')))[0]).toBe(400);
  expect((await answer(post('')))[0]).toBe(400);
  expect((await answer(post(large)))[0]).toBe(413);
  expect(await store.counts()).toEqual({ notifications: 1, duplicates: 1, quarantined: 2 });
});

const failures: [string, () => never | Promise<never>][] = [
  ['throws', () => raise()],
  ['rejects', async () => raise()],
];

function raise(): never {
  throw new Error('a failure of the user');
}

it.each(failures)('an onOutcome or a log that %s changes no response', async (_name, fail) => {
  const outcomes: Outcome[] = [];
  let lines = 0;
  const line = () => {
    lines += 1;
    return fail();
  };
  const onOutcome = (outcome: Outcome) => {
    outcomes.push(outcome);
    return fail();
  };
  const log = { debug: line, info: line, warn: line, error: line };
  const { send, store } = await serveApp((app, receiver) => void app.route('/', receiver), {
    ...{ onOutcome, log },
  });
  const statuses: number[] = [];
  for (const sent of [
    { body: good() },
    { body: good() },
    { body: '{"no":"notification"}' },
    { body: good(), auth: 'other:wrong' },
    { body: large },
    { method: 'GET' },
  ]) {
    statuses.push((await send(sent)).status);
  }
  expect(statuses).toEqual([200, 200, 400, 401, 413, 200]);
  expect(outcomes).toEqual(['stored', 'duplicate', 'rejected', 'unauthorized', 'too_large']);
  expect(lines).toBeGreaterThanOrEqual(outcomes.length);
  expect(await store.counts()).toEqual({ notifications: 1, duplicates: 1, quarantined: 1 });
});
