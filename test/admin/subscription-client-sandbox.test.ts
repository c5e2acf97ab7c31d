/** The client with the sandbox: every row of the specification's tables, unspecified cases, and failures. */
import { describe, expect, it } from 'vitest';
import { errorText } from '../../src/core/terms/app-error.ts';
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
    const { advance, create, statuses } = await startClient();
    await create(running);
    advance(60 * day - 1);
    expect(await statuses()).toEqual(['running']);
    advance(2);
    expect(await statuses()).toEqual(['paused']);
    advance(305 * day - 2);
    expect(await statuses()).toEqual(['paused']);
    advance(2);
    expect(await statuses()).toEqual([]);
  });

  it.each(['running', 'paused'] as const)('%s to gone', async (status) => {
    const { client, create } = await startClient();
    const [id, other] = [await create({ ...running, status }), await create(paused)];
    await client.delete(id);
    expect((await client.list()).map((one) => one.id)).toEqual([other]);
  });

  it('endpoint and credentials change in any state', async () => {
    const { client, create } = await startClient();
    const id = await create(paused);
    const moved = 'https://localhost:9443/notifications/default';
    await client.edit(id, { endpoint: moved, credentials: { username: 'new', password: 'other' } });
    expect((await client.list())[0]?.endpoint).toBe(moved);
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
    expect((await client.list()).map((one) => one.status)).toContain('paused');
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

describe('an unknown id', () => {
  it.each([404, 400, 410, 422])(
    'answered with %i is an error of an edit, and a success of a deletion',
    async (status) => {
      for (const detailForm of ['string', 'object', 'list'] as const) {
        const { client } = await startClient({ unknownIdStatus: status, detailForm });
        expect((await errorOf(client.edit(unknownId, { status: 'paused' }))).code).toBe(
          'not_found',
        );
        await client.delete(unknownId);
      }
    },
  );
});

describe('a format that may vary', () => {
  it('is read with the same result: events, dates, stage order', async () => {
    const { client, create, nowUs } = await startClient({
      eventsAs: 'string',
      submissionDateForm: 'withoutZone',
      stageOrderReturned: true,
    });
    await create(paused);
    expect(await client.list()).toMatchObject([
      { events: ['created', 'modified'], submittedAtUs: nowUs() },
    ]);
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
