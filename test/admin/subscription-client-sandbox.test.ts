/** The client with the sandbox: every row of the specification's tables, unspecified cases, and failures. */
import { describe, expect, it } from 'vitest';
import { errorText } from '../../src/domain/app-error.ts';
import { startMs } from './account.ts';
import {
  endpoint,
  errorOf,
  paused,
  running,
  startClient,
  unknownId,
} from './catalogue-stand-in.ts';

const day = 86_400;

describe('the table of transitions', () => {
  it('none to running: is created, and read back as requested', async () => {
    const { client, nowUs } = await startClient();
    const created = await client.create(running);
    expect(created).toEqual({
      id: expect.stringMatching(/^[\da-f-]{36}$/),
      status: 'running',
      type: 'push',
      events: ['created', 'modified'],
      filter: running.filter,
      endpoint,
      submittedAtUs: nowUs(),
      lastNotificationAtUs: null,
    });
    expect(await client.list()).toEqual([created]);
    expect(await client.get(created?.id ?? '')).toEqual(created);
  });

  it('none to paused: is created even if two are running', async () => {
    const { create, statuses } = await startClient();
    await create(running);
    await create(running);
    await create(paused);
    expect(await statuses()).toEqual(['running', 'running', 'paused']);
  });

  it('running to paused, and back', async () => {
    const { client, create, statuses } = await startClient();
    const id = await create(running);
    await client.edit(id, { status: 'paused' });
    expect(await statuses()).toEqual(['paused']);
    await client.edit(id, { status: 'running' });
    expect(await statuses()).toEqual(['running']);
  });

  it('running to paused after 60 days, and gone after 365', async () => {
    const { advance, client, create, statuses } = await startClient();
    const id = await create(running);
    advance(60 * day - 1);
    expect(await statuses()).toEqual(['running']);
    advance(2);
    expect(await statuses()).toEqual(['paused']);
    advance(305 * day - 2);
    expect(await statuses()).toEqual(['paused']);
    advance(2);
    expect(await statuses()).toEqual([]);
    expect(await client.get(id)).toBeNull();
  });

  it.each([
    ['running', 'cancel'],
    ['paused', 'cancel'],
    ['running', 'delete'],
    ['paused', 'delete'],
  ] as const)('%s to gone, by %s', async (status, method) => {
    const { client, create } = await startClient();
    const [id, other] = [await create({ ...running, status }), await create(paused)];
    await client[method](id);
    expect((await client.list()).map((one) => one.id)).toEqual([other]);
  });

  it('endpoint and credentials change in any state', async () => {
    const { client, create } = await startClient();
    const id = await create(paused);
    const moved = 'https://localhost:9443/notifications/default';
    await client.edit(id, { endpoint: moved, credentials: { username: 'new', password: 'other' } });
    expect((await client.get(id))?.endpoint).toBe(moved);
  });
});

describe('the table of limits', () => {
  it.each([400, 403, 409, 422, 429])('two running: a third is refused with %i', async (status) => {
    const { client, create, statuses, creations } = await startClient({ limitStatus: status });
    await create(running);
    await create(running);
    const error = await errorOf(client.create(running));
    const codes: Record<number, string> = { 409: 'conflict', 429: 'too_many' };
    expect(error.code).toBe(codes[status] ?? 'invalid');
    expect(errorText(error)).toContain('Response: The maximum number of running subscriptions (2)');
    expect(await statuses()).toHaveLength(2);
    expect(creations()).toHaveLength(3);
  });

  it('two running: a third is not resumed', async () => {
    const { client, create, statuses } = await startClient();
    await create(running);
    await create(running);
    const id = await create(paused);
    const error = await errorOf(client.edit(id, { status: 'running' }));
    const refusal = /^The catalogue refused to change subscription .*maximum number/;
    expect(errorText(error)).toMatch(refusal);
    expect(await statuses()).toEqual(['running', 'running', 'paused']);
  });

  it('two running: a success answer to an ignored third resumption is an error', async () => {
    const { client, create } = await startClient({ resumeBeyondLimit: 'ignore' });
    await create(running);
    await create(running);
    const id = await create(paused);
    const edit = client.edit(id, { status: 'running' });
    await expect(edit).rejects.toMatchObject({ code: 'conflict' });
    expect((await client.get(id))?.status).toBe('paused');
  });

  it('ten in total, including pull subscriptions: an eleventh is refused', async () => {
    const { sandbox, client, create } = await startClient();
    for (let index = 0; index < 4; index += 1) {
      sandbox.addSubscription({ type: 'pull', status: 'paused' });
    }
    for (let index = 0; index < 6; index += 1) await create(paused);
    const list = await client.list();
    expect(list.filter((one) => one.endpoint === null && one.type === 'pull')).toHaveLength(4);
    const error = await errorOf(client.create(paused));
    expect([error.code, errorText(error)]).toEqual(['invalid', expect.stringContaining('(10)')]);
    expect(await client.list()).toHaveLength(10);
  });
});

describe('the table of errors', () => {
  it('an invalid filter: the error has the text of the service', async () => {
    const { client, statuses } = await startClient();
    const error = await errorOf(client.create({ ...running, filter: "Foo eq 'x'" }));
    expect(error.code).toBe('invalid');
    expect(errorText(error)).toMatch(
      /^The catalogue refused to create the subscription \(400, request id [\da-f-]{36}\)\. Response: .*Foo/,
    );
    expect(await statuses()).toEqual([]);
  });

  it('a filter for deleted products: is valid only for deleted events', async () => {
    const { client } = await startClient();
    const filter = "DeletionCause eq 'Other'";
    const deleted = { ...running, events: ['deleted'], filter } as const;
    expect((await client.create(deleted))?.events).toEqual(['deleted']);
    const error = await errorOf(client.create({ ...deleted, events: ['created'] }));
    expect(error.code).toBe('invalid');
  });

  it('a refused endpoint: the error has the text of the service', async () => {
    const { client, create } = await startClient();
    const id = await create(paused);
    const error = await errorOf(client.edit(id, { endpoint: 'http://localhost/plain' }));
    const text = expect.stringContaining('https://');
    expect([error.code, errorText(error)]).toEqual(['invalid', text]);
  });

  it.each(['string', 'object', 'list'] as const)(
    'an error in the form "%s": the message has the text of the service',
    async (detailForm) => {
      const { client, create } = await startClient({ detailForm });
      await create(running);
      await create(running);
      const { text, details } = await errorOf(client.create(running));
      expect([text, ...details].join('\n')).toContain(
        'The maximum number of running subscriptions (2)',
      );
    },
  );
});

describe('an unknown id', () => {
  it.each([404, 400, 410, 422])(
    'answered with %i is an error of an edit, and a success of a deletion',
    async (status) => {
      for (const detailForm of ['string', 'object', 'list'] as const) {
        const { client } = await startClient({ unknownIdStatus: status, detailForm });
        expect((await errorOf(client.edit(unknownId, { status: 'paused' }))).code).toBe(
          'not_found',
        );
        expect(await client.get(unknownId)).toBeNull();
        await client.cancel(unknownId);
        await client.delete(unknownId);
      }
    },
  );

  it('is searched in the list when the service has no query by id', async () => {
    const { client, create } = await startClient({ getById: false });
    const id = await create(running);
    expect((await client.get(id.toUpperCase()))?.id).toBe(id);
    expect(await client.get(unknownId)).toBeNull();
  });
});

describe('a token', () => {
  it.each([401, 403])('refused before its end with %i is replaced', async (status) => {
    const { sandbox, advance, tokens, nowUs, grants, clientWith } = await startClient({
      unauthorizedStatus: status,
    });
    // A clock at half the speed of the service's clock.
    const slowUs = () => startMs * 1000 + (nowUs() - startMs * 1000) / 2;
    const client = clientWith(tokens({}, { nowUs: slowUs }));
    await client.create(running);
    advance(700);
    expect((await client.create(running))?.status).toBe('running');
    expect(grants()).toEqual({ logins: 1, refreshes: 1 });
    expect(sandbox.subscriptions()).toHaveLength(2);
  });

  it('of another provider is refused permanently after a login and a refresh', async () => {
    const { sandbox, tokens, grants } = await startClient();
    const { clientWith } = await startClient();
    const client = clientWith(tokens());
    const error = await errorOf(client.list());
    expect([error.code, errorText(error)]).toEqual([
      'unauthorized',
      expect.stringMatching(
        /^The catalogue refused to .*: the access token is not valid\..*Unauthorized$/,
      ),
    ]);
    expect(errorText(await errorOf(client.list()))).toContain('even after a new login');
    expect(grants()).toEqual({ logins: 1, refreshes: 1 });
    expect(sandbox.subscriptions()).toEqual([]);
  });

  it('is requested once for several calls', async () => {
    const { client, create, grants } = await startClient();
    const id = await create(running);
    await Promise.all([client.list(), client.get(id), client.edit(id, { status: 'paused' })]);
    await client.delete(id);
    expect(grants()).toEqual({ logins: 1, refreshes: 0 });
  });
});

describe('a failing service', () => {
  it('receives retries of a list request, and is reported if it continues to fail', async () => {
    const { client, sandbox } = await startClient({ unavailable: true });
    const error = await errorOf(client.list());
    expect(error.code).toBe('unavailable');
    expect(errorText(error)).toContain('could not list subscriptions (503');
    expect(sandbox.requests().filter(({ method }) => method === 'GET')).toHaveLength(4);
  });

  it('that refuses a creation receives no retry', async () => {
    const { client, statuses, creations } = await startClient({ createsRefused503: 1 });
    expect((await errorOf(client.create(running))).code).toBe('unavailable');
    expect(creations()).toHaveLength(1);
    expect(await statuses()).toEqual([]);
  });

  it('that loses the answer to a creation receives no retry, and lists the new subscription', async () => {
    const { client, statuses, creations } = await startClient({ createAnswersLost: 1 });
    const error = await errorOf(client.create(running));
    expect([error.code, errorText(error)]).toEqual([
      'unavailable',
      expect.stringContaining('Could not create the subscription'),
    ]);
    expect(creations()).toHaveLength(1);
    expect(await statuses()).toEqual(['running']);
  });

  it('that is slow causes a timeout', async () => {
    const { sandbox, clientWith, tokens } = await startClient();
    const source = tokens();
    await source.get();
    sandbox.service.change({ answerDelayMs: 3_600_000 });
    const client = clientWith(source, { attemptTimeoutMs: 100, totalTimeoutMs: 300 });
    const error = await errorOf(client.list());
    expect([error.code, errorText(error)]).toEqual([
      'unavailable',
      expect.stringContaining('it did not answer in time'),
    ]);
  });
});

describe('a format that may vary', () => {
  it('is read with the same result: events, dates, stage order', async () => {
    const { client, create, nowUs } = await startClient({
      eventsAs: 'string',
      submissionDateForm: 'withoutZone',
      stageOrderReturned: true,
    });
    const id = await create(paused);
    expect(await client.get(id)).toMatchObject({
      events: ['created', 'modified'],
      submittedAtUs: nowUs(),
    });
  });

  it('may omit the last notification', async () => {
    const { client, sandbox } = await startClient();
    const lastNotificationDate = '2026-04-30T11:22:33.456Z';
    const submissionDate = '2026-04-01T00:00:00.000Z';
    const dates = { lastNotificationDate, submissionDate };
    sandbox.addSubscription({ endpoint, username: 'a', password: 'b', ...dates });
    const [shown] = await client.list();
    expect(shown?.lastNotificationAtUs).toBe(Date.parse(lastNotificationDate) * 1000);
    sandbox.service.change({ lastNotificationDateShown: false });
    const [hidden] = await client.list();
    expect(hidden?.lastNotificationAtUs).toBeNull();
  });
});
