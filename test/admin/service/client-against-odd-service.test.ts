/** The client against the sandbox: what the specification leaves open, and a service in trouble. */

import { describe, expect, it } from 'vitest';
import { errorText } from '../../../src/domain/app-error.ts';
import { startMs } from '../session/account.ts';
import { endpoint, errorOf, paused, running, startClient, unknownId } from './sandbox-client.ts';

describe('an id that nobody has', () => {
  it.each([404, 400, 410, 422])('answered with %i is told, or was wanted', async (status) => {
    for (const detailForm of ['string', 'object', 'list'] as const) {
      const { client } = await startClient({ unknownIdStatus: status, detailForm });
      expect((await errorOf(client.edit(unknownId, { status: 'paused' }))).code).toBe('not_found');
      expect(await client.get(unknownId)).toBeNull();
      await client.cancel(unknownId);
      await client.delete(unknownId);
    }
  });

  it('is looked for in the list where one cannot be shown by its id', async () => {
    const { client, create } = await startClient({ getById: false });
    const id = await create(running);
    expect((await client.get(id.toUpperCase()))?.id).toBe(id);
    expect(await client.get(unknownId)).toBeNull();
  });
});

describe('a token', () => {
  it.each([401, 403])('that ends before its time is replaced, answered with %i', async (status) => {
    const { sandbox, advance, tokens, nowUs, grants, clientWith } = await startClient({
      unauthorizedStatus: status,
    });
    // A clock at half the speed of the service's.
    const slowUs = () => startMs * 1000 + (nowUs() - startMs * 1000) / 2;
    const client = clientWith(tokens({}, { nowUs: slowUs }));
    await client.create(running);
    advance(700);
    expect((await client.create(running))?.status).toBe('running');
    expect(grants()).toEqual({ logins: 1, refreshes: 1 });
    expect(sandbox.subscriptions()).toHaveLength(2);
  });

  it('of another provider is refused for good, after two logins', async () => {
    const { sandbox, tokens, grants } = await startClient();
    const { clientWith } = await startClient();
    const client = clientWith(tokens());
    const error = await errorOf(client.list());
    expect([error.code, errorText(error)]).toEqual([
      'unauthorized',
      expect.stringMatching(/^The catalogue does not accept the access token.*Unauthorized$/),
    ]);
    expect(errorText(await errorOf(client.list()))).toContain('not after a new login either');
    expect(grants()).toEqual({ logins: 2, refreshes: 0 });
    expect(sandbox.subscriptions()).toEqual([]);
  });

  it('is asked for once, whatever is done with it', async () => {
    const { client, create, grants } = await startClient();
    const id = await create(running);
    await Promise.all([client.list(), client.get(id), client.edit(id, { status: 'paused' })]);
    await client.delete(id);
    expect(grants()).toEqual({ logins: 1, refreshes: 0 });
  });
});

describe('a service in trouble', () => {
  it('is asked again for a list, and told when it stays so', async () => {
    const { client, sandbox } = await startClient({ unavailable: true });
    const error = await errorOf(client.list());
    expect(error.code).toBe('unavailable');
    expect(errorText(error)).toContain('could not list subscriptions at the moment (503');
    expect(sandbox.requests().filter(({ method }) => method === 'GET')).toHaveLength(4);
  });

  it('that refuses a creation is not asked again', async () => {
    const { client, statuses, creations } = await startClient({ createsRefused503: 1 });
    expect((await errorOf(client.create(running))).code).toBe('unavailable');
    expect(creations()).toHaveLength(1);
    expect(await statuses()).toEqual([]);
  });

  it('whose answer to a creation is lost is not asked again, and the list shows what was made', async () => {
    const { client, statuses, creations } = await startClient({ createAnswersLost: 1 });
    const error = await errorOf(client.create(running));
    expect([error.code, errorText(error)]).toEqual([
      'unavailable',
      expect.stringContaining('Could not create the subscription'),
    ]);
    expect(creations()).toHaveLength(1);
    expect(await statuses()).toEqual(['running']);
  });

  it('that is slow is given up in the end', async () => {
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

describe('what the service may write in different ways', () => {
  it('is read the same: events, dates, stage order', async () => {
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

  it('the last notification is read where it is shown, else unknown', async () => {
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
