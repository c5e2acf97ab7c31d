/** Read and Ack of a queue: answers, settings, refusals, and injected faults. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { QueueFault, ServiceSettingsInput } from '../../src/sandbox/live-settings.ts';
import {
  type Answer,
  ackAnswer,
  ackIdsOf,
  dayMs,
  iso,
  productIdsOf,
  send,
  startMs,
  startPull,
  unknownId,
} from './set-up.ts';

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
const missing = !existsSync(fixtures);
const fixture = (name: string) => JSON.parse(readFileSync(new URL(name, fixtures), 'utf8'));

const shape = ({ status, json }: Answer) => [status, json];

describe('a Read', () => {
  it('returns one entry by default, and up to twenty, and removes none', async () => {
    const { read, publish, state } = await startPull();
    expect(shape(await read())).toEqual([200, []]);
    await publish(30);
    const all = await read(20);
    expect(all.json).toHaveLength(20);
    expect((await read()).json).toEqual(all.json.slice(0, 1));
    expect((await read(5)).json).toEqual(all.json.slice(0, 5));
    expect((await read(20)).text).toBe(all.text);
    expect(state()).toMatchObject({ length: 30, read: 46, reads: 5, acks: 0 });
  });

  it.each([
    ['0', 'greater_than_equal'],
    ['-1', 'greater_than_equal'],
    ['21', 'less_than_equal'],
    ['ten', 'int_parsing'],
    ['', 'int_parsing'],
  ])('with $top=%s is answered with 422', async (input, type) => {
    const { read, publish, state } = await startPull();
    await publish(1);
    const { status, json } = await read(input);
    expect(status).toBe(422);
    expect(json.detail).toMatchObject([{ type, loc: ['query', '$top'], input }]);
    expect(state().reads).toBe(0);
  });

  it('with $top above 20 returns twenty entries when configured', async () => {
    const { read, publish } = await startPull({ service: { readTopBeyondMax: 'clamp' } });
    await publish(30);
    expect((await read(21)).json).toHaveLength(20);
    expect((await read(0)).status).toBe(422);
  });

  it('of a paused subscription is refused when configured', async () => {
    const { id, read, publish, edit, sandbox, ack } = await startPull();
    await publish(2);
    await edit(id, { Status: 'paused' });
    const page = await read(2);
    expect(page.json).toHaveLength(2);
    sandbox.service.change({ readOfPaused: 'refuse' });
    const { status, json } = await read();
    expect([status, json.detail.message]).toEqual([400, `Subscription with id ${id} is paused.`]);
    expect((await ack(ackIdsOf(page)[0] ?? '')).json).toEqual(ackAnswer(1, 1));
  });

  it('returns entries older than three days without the product', async () => {
    const { read, publish, sandbox } = await startPull();
    await publish(1);
    sandbox.clock.advance(dayMs);
    await publish(1);
    sandbox.clock.advance(2 * dayMs);
    const whole = await read(2);
    sandbox.clock.advance(1);
    const [old, young] = (await read(2)).json;
    const { value, ProductName, ...rest } = whole.json[0];
    expect([value.Name, ProductName]).toEqual([ProductName, expect.any(String)]);
    expect(old).toEqual(rest);
    expect(young).toEqual(whole.json[1]);
    sandbox.service.change({ queueRecordMaxAgeMs: 10 * dayMs });
    expect((await read(2)).json).toEqual(whole.json);
  });
});

describe('an Ack', () => {
  it('acknowledges an entry and all before it', async () => {
    const { read, ack, publish, state, sandbox, outcomes, list } = await startPull();
    await publish(5);
    const all = await read(20);
    sandbox.clock.advance(7_000);
    const answer = await ack(ackIdsOf(all)[2] ?? '');
    expect(shape(answer)).toEqual([200, ackAnswer(3, 2)]);
    expect((await read(20)).json).toEqual(all.json.slice(3));
    expect(state()).toMatchObject({ length: 2, acknowledged: 3, acks: 1, dropped: 0 });
    expect(outcomes()).toBe('dddpp');
    expect(sandbox.entries()[0]?.attempts).toEqual([
      { startedAtMs: startMs + 7_000, durationMs: 0, status: 200, error: null, answerSeen: true },
    ]);
    expect((await list())[0].LastNotificationDate).toBe(iso(startMs + 7_000));
    expect(sandbox.totals()).toMatchObject({ published: 5, delivered: 3, pending: 2, attempts: 3 });
    const [first] = sandbox.events();
    expect(first?.subscriptions).toMatchObject([{ outcome: 'delivered', received: true }]);
  });

  it('of an entry that is not in the queue has no effect, or is refused when configured', async () => {
    const { read, ack, publish, sandbox, list } = await startPull();
    await publish(2);
    const [known = ''] = ackIdsOf(await read());
    await ack(known);
    const before = await list();
    sandbox.clock.advance(1_000);
    for (const ackId of [known, 'bm90aGluZw==', '']) {
      expect(shape(await ack(ackId))).toEqual([200, ackAnswer(0, 1)]);
    }
    sandbox.service.change({ ackUnknown: 'refuse' });
    const { status, json } = await ack(known);
    expect([status, json.detail.message]).toEqual([404, `Ack id ${known} not found.`]);
    expect(await list()).toEqual(before);
    expect((await read(2)).json).toHaveLength(1);
  });

  it('without an id is answered with 422', async () => {
    const { call, id } = await startPull();
    const { status, json } = await call('POST', `/Subscriptions(${id})/Ack`);
    const error = { type: 'missing', loc: ['query', '$ackid'], msg: 'Field required', input: null };
    expect([status, json]).toEqual([422, { detail: [error] }]);
  });

  it('postpones the pause for inactivity', async () => {
    const { ackFirst, publish, list, sandbox } = await startPull();
    await publish(2);
    sandbox.clock.advance(59 * dayMs);
    await ackFirst(1);
    sandbox.clock.advance(59 * dayMs);
    expect((await list())[0].Status).toBe('running');
    sandbox.clock.advance(dayMs);
    expect((await list())[0].Status).toBe('paused');
  });
});

describe('a call of a queue', () => {
  const calls = (id: string) =>
    [
      ['GET', `/Subscriptions(${id})/Read`],
      ['POST', `/Subscriptions(${id})/Ack?$ackid=x`],
    ] as const;

  it('needs an access token', async () => {
    const { root, id } = await startPull();
    for (const [method, path] of calls(id)) {
      const { status, json } = await send(`${root}${path}`, { method });
      expect([status, json]).toEqual([401, { detail: 'Unauthorized' }]);
    }
  });

  it.skipIf(missing)('for an unknown id is answered as recorded', async () => {
    const { call } = await startPull();
    for (const [name, of] of [
      ['read', calls],
      ['ack', calls],
    ] as const) {
      const { detail } = fixture(`errors/subscriptions-${name}-404.json`);
      const id = /id (\S+) not/.exec(detail.message)?.[1] ?? '';
      const [method, path] = of(id)[name === 'read' ? 0 : 1] ?? ['', ''];
      const { status, json } = await call(method, path);
      const expected = { ...detail, request_id: expect.any(String) };
      expect([status, json]).toEqual([404, { detail: expected }]);
    }
  });

  it('of a push subscription has the configured status', async () => {
    const { call, create, sandbox } = await startPull();
    const { Id } = (await create()).json;
    for (const queueOfPushStatus of [400, 409]) {
      sandbox.service.change({ queueOfPushStatus });
      for (const [method, path] of calls(Id)) {
        const { status, json } = await call(method, path);
        const message = expect.stringContaining('not a pull subscription');
        expect([status, json.detail.message]).toEqual([queueOfPushStatus, message]);
      }
    }
  });

  it('has one method, and accepts parentheses in the encoded form and capital letters', async () => {
    const { call, id } = await startPull();
    for (const [index, path] of [`(${id})/Read`, `(${id})/Ack`].entries()) {
      const { status, headers } = await call('PUT', `/Subscriptions${path}`);
      expect([status, headers.get('allow')]).toEqual([405, ['GET', 'POST'][index]]);
    }
    const encoded = `/Subscriptions%28${id.toUpperCase()}%29/Read`;
    expect(shape(await call('GET', encoded))).toEqual([200, []]);
    expect((await call('GET', `/Subscriptions(${id})/read`)).status).toBe(404);
  });

  it('is logged without the query', async () => {
    const { read, ack, id, sandbox } = await startPull();
    await read(3);
    await ack('x');
    expect(sandbox.requests().slice(-2)).toEqual([
      { method: 'GET', path: `/odata/v1/Subscriptions(${id})/Read`, status: 200 },
      { method: 'POST', path: `/odata/v1/Subscriptions(${id})/Ack`, status: 200 },
    ]);
  });

  it.skipIf(missing)('is answered with the fields of the recorded answers', async () => {
    const { read, publish, ackFirst, sandbox } = await startPull();
    await publish(2);
    sandbox.clock.advance(4 * dayMs);
    const page = await read(2);
    const recorded: object[] = fixture('notifications/pull-read-after-3-days.json');
    expect(page.json.map(Object.keys)).toEqual(recorded.map(Object.keys));
    const { json } = await ackFirst(2);
    expect(Object.keys(json)).toEqual(Object.keys(fixture('subscriptions/ack-200.json')));
  });
});

describe('a fault of a queue', () => {
  const closed = /terminated|fetch failed/;

  /** Starts a queue with five entries; `next` sets faults for the next calls. */
  async function startFaults(service: ServiceSettingsInput = {}) {
    const test = await startPull({ service });
    await test.publish(5);
    const next = (nextQueueCalls: Partial<Record<QueueFault, number>>) =>
      test.sandbox.service.change({ nextQueueCalls });
    const remaining = (fault: QueueFault) => test.sandbox.service.current().nextQueueCalls[fault];
    const [first = '', second = ''] = ackIdsOf(await test.read(2));
    return { ...test, next, remaining, first, second };
  }

  it('replaces the answer, and the call has no effect', async () => {
    const { next, read, ack, first, state } = await startFaults();
    const before = state();
    for (const call of [() => read(2), () => ack(first)]) {
      next({ rateLimited: 1, serverError: 1, htmlPage: 1 });
      const limited = await call();
      expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '5']);
      expect((await call()).status).toBe(500);
      const html = await call();
      expect([html.status, html.headers.get('content-type')]).toEqual([200, 'text/html']);
    }
    expect(state()).toEqual(before);
    expect((await ack(first)).json).toEqual(ackAnswer(1, 4));
  });

  it('of the rate has no Retry-After header when none is configured', async () => {
    const { next, read } = await startFaults({ queueRetryAfterSeconds: null });
    next({ rateLimited: 1 });
    const { status, headers } = await read();
    expect([status, headers.has('retry-after')]).toEqual([429, false]);
  });

  it('cuts the answer of a Read in the middle, and the connection of an Ack before any effect', async () => {
    const { next, read, ack, first, state, sandbox } = await startFaults();
    next({ connectionCut: 2 });
    await expect(read(2)).rejects.toThrow(closed);
    await expect(ack(first)).rejects.toThrow(closed);
    expect(state()).toMatchObject({ length: 5, reads: 2, acks: 0 });
    expect(
      sandbox
        .requests()
        .slice(-2)
        .map(({ status }) => status),
    ).toEqual([null, null]);
    expect((await read(20)).json).toHaveLength(5);
  });

  it('truncates the JSON of an answer; an Ack still takes effect', async () => {
    const { next, read, ack, first, state } = await startFaults();
    next({ brokenJson: 2 });
    await expect(read(2)).rejects.toThrow(SyntaxError);
    await expect(ack(first)).rejects.toThrow(SyntaxError);
    expect(state()).toMatchObject({ length: 4, acknowledged: 1 });
  });

  it('loses the answer of an Ack that takes effect, but of no Read', async () => {
    const { next, read, ack, second, state, remaining } = await startFaults();
    next({ ackAnswerLost: 1 });
    expect((await read()).status).toBe(200);
    expect(remaining('ackAnswerLost')).toBe(1);
    await expect(ack(second)).rejects.toThrow(closed);
    expect([state().length, remaining('ackAnswerLost')]).toEqual([3, 0]);
    expect((await ack(second)).json).toEqual(ackAnswer(0, 3));
  });

  it('returns the page of the previous Read again after its acknowledgement', async () => {
    const { next, read, ack, remaining, sandbox } = await startFaults();
    next({ doubleRead: 1 });
    const page = await read(3);
    // Without an acknowledgement since, it would have no effect.
    expect((await read(3)).json).toEqual(page.json);
    expect((await ack(ackIdsOf(page)[1] ?? '')).json).toEqual(ackAnswer(2, 3));
    expect(remaining('doubleRead')).toBe(1);
    expect((await read(1)).json).toEqual(page.json);
    expect(remaining('doubleRead')).toBe(0);
    expect(productIdsOf(await read(20))).toEqual(
      sandbox
        .entries()
        .slice(2)
        .map(({ productId }) => productId),
    );
  });

  it('drops the oldest entry before a Read or Ack, unless the queue is empty', async () => {
    const { next, read, ack, first, second, outcomes, remaining, sandbox } = await startFaults();
    next({ entriesDropped: 2 });
    expect(ackIdsOf(await read())).toEqual([second]);
    expect((await ack(first)).json).toEqual(ackAnswer(0, 3));
    expect([outcomes(), remaining('entriesDropped')]).toEqual(['llppp', 0]);
    expect(sandbox.entries()[0]?.reason).toBe('dropped from the queue (injected by the sandbox)');
    await ack(ackIdsOf(await read(20)).at(-1) ?? '');
    next({ entriesDropped: 1, otherReader: 1 });
    await read();
    await ack(first);
    expect([remaining('entriesDropped'), remaining('otherReader')]).toEqual([1, 1]);
  });

  it('acknowledges the oldest entry as another reader before an Ack', async () => {
    const { next, read, ack, first, second, outcomes, state, sandbox } = await startFaults();
    next({ otherReader: 2 });
    expect((await read()).status).toBe(200);
    expect((await ack(second)).json).toEqual(ackAnswer(1, 3));
    expect((await ack(first)).json).toEqual(ackAnswer(0, 2));
    expect(outcomes()).toBe('ldlpp');
    expect(sandbox.entries()[0]?.reason).toMatch(/^acknowledged by another reader/);
    expect(state()).toMatchObject({ acknowledged: 1, acknowledgedByOthers: 2, dropped: 0 });
  });

  it('is not used up by a refused call', async () => {
    const { next, read, call, remaining } = await startFaults();
    next({ serverError: 1 });
    expect((await read(21)).status).toBe(422);
    expect((await call('GET', `/Subscriptions(${unknownId})/Read`)).status).toBe(404);
    expect(remaining('serverError')).toBe(1);
    expect((await read()).status).toBe(500);
  });

  it('occurs at the configured share, the same for the same seed', async () => {
    const statuses = async () => {
      const { read, sandbox } = await startFaults();
      sandbox.service.change({ queueFaults: { serverError: 0.5, otherReader: 1 } });
      const answers: number[] = [];
      for (let index = 0; index < 40; index += 1) answers.push((await read()).status);
      return answers;
    };
    const first = await statuses();
    expect(new Set(first)).toEqual(new Set([200, 500]));
    expect(await statuses()).toEqual(first);
  });

  it('occurs even if another one is drawn that does not apply to the call', async () => {
    const { read, sandbox, second } = await startFaults();
    sandbox.service.change({ queueFaults: { ackAnswerLost: 1, entriesDropped: 1 } });
    expect(ackIdsOf(await read())).toEqual([second]);
  });
});
