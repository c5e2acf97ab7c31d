/** The control port: its reports, its operations, and its errors. */
import { describe, expect, it } from 'vitest';
import { noFaults } from '../../src/sandbox/delivery/faults.ts';
import { jsonOf, recordsFileOf, startDelivering, startMs, startTestSandbox } from './set-up.ts';

describe('the control port shows', () => {
  it('its purpose and its operations, without secrets', async () => {
    const account = { username: 'a', password: 'hunter2' };
    const { control } = await startTestSandbox({ endpoint: 'https://localhost:1/', ...account });
    const { status, json, text } = await control('GET', '/');
    expect(status).toBe(200);
    const about = { endpoint: 'https://localhost:1/', subscriptionId: expect.any(String) };
    expect(json).toMatchObject({
      what: expect.stringContaining('sandbox'),
      ...about,
      paused: false,
    });
    for (const operation of [
      'PATCH /faults',
      'PATCH /service',
      'GET /events?event=&filter=&after=&limit=',
    ]) {
      expect(json.operations).toHaveProperty([operation]);
    }
    expect(text).not.toContain('hunter2');
  });

  it('the delivery record page by page, filtered by outcome, and the totals', async () => {
    const { control, subscribe, publishAll, sandbox } = await startDelivering();
    const pageOf = async (query: string) => {
      const { entries, next } = (await control('GET', `/record?${query}`)).json;
      return [entries.map(({ sequence }: { sequence: number }) => sequence), next];
    };
    await subscribe('one');
    for (const lost of [0, 1, 0, 1, 0]) {
      sandbox.faults.change({ lost });
      await publishAll(1);
    }
    expect(await pageOf('limit=3')).toEqual([[1, 2, 3], 3]);
    expect(await pageOf('limit=3&after=3')).toEqual([[4, 5], null]);
    // A full last page is followed by an empty one.
    expect(await pageOf('limit=5')).toEqual([[1, 2, 3, 4, 5], 5]);
    expect(await pageOf('limit=5&after=5')).toEqual([[], null]);
    expect(await pageOf('outcome=lost')).toEqual([[2, 4], null]);
    const { json } = await control('GET', '/record?outcome=lost&limit=1');
    expect(json.entries).toEqual([sandbox.entries()[1]]);
    expect((await control('GET', '/totals')).json).toEqual({
      published: 5,
      delivered: 3,
      lost: 2,
      pending: 0,
      duplicatesSent: 0,
      attempts: 11,
      accepted: 3,
      receivedOk: 3,
    });
  });
});

describe('the control port changes', () => {
  it('single fault rates and leaves the others unchanged', async () => {
    const { control, sandbox } = await startTestSandbox();
    await control('PATCH', '/faults', { lost: 0.5 });
    const { status, json } = await control('PATCH', '/faults', { duplicate: 1 });
    expect([status, json]).toEqual([200, { ...noFaults, lost: 0.5, duplicate: 1 }]);
    expect(sandbox.faults.current()).toEqual(json);
    expect((await control('GET', '/faults')).json).toEqual(json);
  });

  it('the bodies of notifications delivered after a change of the rates', async () => {
    const { control, subscribe, publishAll, requests } = await startDelivering();
    await subscribe('one');
    await publishAll(1);
    await control('PATCH', '/faults', { ackIdAbsent: 1, arrayBody: 1 });
    await publishAll(1);
    const [before, [after, ...others]] = requests.map(jsonOf);
    expect([before.AckId, before.SubscriptionEvent]).toEqual([expect.any(String), 'created']);
    expect([after.AckId, after.SubscriptionEvent, others]).toEqual([undefined, 'created', []]);
  });

  it('the clock, forward only, by more than ten years at once but with an upper limit', async () => {
    const { control, sandbox } = await startTestSandbox();
    const moved = await control('POST', '/clock', { advanceMs: 60_000 });
    expect(moved.json).toEqual({ now: '2026-05-01T12:01:00.000Z', offsetMs: 60_000 });
    expect(sandbox.clock.now()).toBe(startMs + 60_000);
    expect((await control('GET', '/clock')).json).toEqual(moved.json);
    const mostMs = 4_000 * 86_400_000;
    expect((await control('POST', '/clock', { advanceMs: mostMs })).status).toBe(200);
    expect((await control('POST', '/clock', { advanceMs: mostMs + 1 })).status).toBe(400);
    expect(sandbox.clock.offsetMs()).toBe(60_000 + mostMs);
  });

  it('the published products immediately, with the event created by default', async () => {
    const { control, sandbox } = await startTestSandbox();
    expect((await control('POST', '/publish', { count: 3 })).json).toEqual({ published: 3 });
    const deleted = await control('POST', '/publish', { count: 10_000, event: 'deleted' });
    expect(deleted.json).toEqual({ published: 3 });
    const events = [...sandbox.events()].map(({ event }) => event);
    expect(events).toEqual([...Array(3).fill('created'), ...Array(3).fill('deleted')]);
  });

  it('the paused state of the publisher', async () => {
    const { control } = await startTestSandbox();
    for (const [path, paused] of [
      ['/pause', true],
      ['/resume', false],
    ] as const) {
      expect((await control('POST', path)).json).toEqual({ paused });
      expect((await control('GET', '/')).json.paused).toBe(paused);
    }
  });
});

describe('the control port refuses', () => {
  it.each([
    ['PATCH', '/faults', { duplicat: 0.5 }, 'duplicat'],
    ['PATCH', '/faults', { lost: 1.5 }, 'lost'],
    ['PATCH', '/faults', { lost: '1' }, 'lost'],
    ['POST', '/clock', { advanceMs: -1 }, 'advanceMs'],
    ['POST', '/clock', {}, 'advanceMs'],
    ['POST', '/publish', { count: 10_001 }, 'count'],
    ['POST', '/publish', { count: 1.5 }, 'count'],
    ['POST', '/publish', { count: 1, event: 'Created' }, 'event'],
    ['GET', '/record?outcome=gone', undefined, 'outcome'],
    ['GET', '/record?limit=0', undefined, 'limit'],
    ['GET', '/record?limit=ten', undefined, 'limit'],
    ['GET', '/record?page=2', undefined, 'page'],
  ])('%s %s %j, naming %s', async (method, path, body, field) => {
    const { control, sandbox } = await startTestSandbox();
    const { status, headers, json } = await control(method, path, body);
    expect(status).toBe(400);
    expect(headers.get('content-type')).toBe('application/problem+json');
    expect(json).toMatchObject({ type: 'about:blank', status: 400, title: expect.any(String) });
    expect(json.errors).toEqual([{ field, message: expect.any(String) }]);
    expect(json.detail).toContain(field);
    expect(sandbox.faults.current()).toEqual(noFaults);
    expect([sandbox.clock.offsetMs(), sandbox.holdings().events]).toEqual([0, 0]);
  });

  it('a body that is not JSON, or too large', async () => {
    const { control } = await startTestSandbox();
    for (const body of ['', '{"count":', 'count=1']) {
      const { status, json } = await control('POST', '/publish', body);
      const example = expect.stringContaining('{"count":10,"event":"created"}');
      expect([status, json.detail]).toEqual([400, example]);
    }
    const { status, json } = await control('POST', '/publish', ' '.repeat(70_000));
    expect([status, json.title]).toEqual([413, 'Body too large']);
  });

  it('an unknown path, and an unsupported method, listing the supported ones', async () => {
    const { control } = await startTestSandbox();
    const unknown = await control('GET', '/total');
    expect([unknown.status, unknown.json.detail]).toEqual([404, expect.stringMatching('/total')]);
    const { status, headers } = await control('PUT', '/faults', {});
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD, PATCH']);
    expect((await control('POST', '/totals')).status).toBe(405);
  });

  it.each([
    ['created', 'All records of the file are published'],
    ['deleted', 'first publish with "event":"created"'],
  ])('a publication when no product is left to be %s', async (event, advice) => {
    const recordsFile = recordsFileOf([{ Id: 'a', Name: 'A' }]);
    const { control, publish } = await startTestSandbox({ recordsFile });
    await publish(1);
    await publish(1, 'deleted');
    const { status, json } = await control('POST', '/publish', { count: 1, event });
    expect([status, json.detail]).toEqual([409, expect.stringContaining(advice)]);
  });
});
