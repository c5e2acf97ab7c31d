/** The client against the sandbox: every row of the specification's tables. */

import { describe, expect, it } from 'vitest';
import { errorText } from '../../../src/domain/app-error.ts';
import { endpoint, errorOf, paused, running, startClient } from './sandbox-client.ts';

const day = 86_400;

describe('the table of transitions', () => {
  it('nothing to running: created, and read back as requested', async () => {
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

  it('nothing to paused: created, though two are running', async () => {
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
    expect(errorText(error)).toContain('It says: The maximum number of running subscriptions (2)');
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

  it('two running: a service that ignores the third resumption is not believed', async () => {
    const { client, create } = await startClient({ resumeBeyondLimit: 'ignore' });
    await create(running);
    await create(running);
    const id = await create(paused);
    const edit = client.edit(id, { status: 'running' });
    await expect(edit).rejects.toMatchObject({ code: 'conflict' });
    expect((await client.get(id))?.status).toBe('paused');
  });

  it('ten in total, pull ones counted: an eleventh is refused', async () => {
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
  it('a filter that is wrong: the text of the service', async () => {
    const { client, statuses } = await startClient();
    const error = await errorOf(client.create({ ...running, filter: "Foo eq 'x'" }));
    expect(error.code).toBe('invalid');
    expect(errorText(error)).toMatch(
      /^The catalogue refused to create the subscription \(400, request id [\da-f-]{36}\)\. It says: .*Foo/,
    );
    expect(await statuses()).toEqual([]);
  });

  it('a filter for deleted products is checked as such', async () => {
    const { client } = await startClient();
    const filter = "DeletionCause eq 'Other'";
    const deleted = { ...running, events: ['deleted'], filter } as const;
    expect((await client.create(deleted))?.events).toEqual(['deleted']);
    const error = await errorOf(client.create({ ...deleted, events: ['created'] }));
    expect(error.code).toBe('invalid');
  });

  it('an endpoint that the service refuses: its text', async () => {
    const { client, create } = await startClient();
    const id = await create(paused);
    const error = await errorOf(client.edit(id, { endpoint: 'http://localhost/plain' }));
    const text = expect.stringContaining('https://');
    expect([error.code, errorText(error)]).toEqual(['invalid', text]);
  });

  it.each(['string', 'object', 'list'] as const)(
    'in the form "%s" reaches the reader',
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
