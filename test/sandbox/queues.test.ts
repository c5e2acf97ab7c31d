/** Queues of pull subscriptions: Read and Ack (facts, catalogue 1.3), their faults, and a model of a queue. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ServiceSettingsInput } from '../../src/sandbox/settings.ts';
import { type Answer, dayMs, missing, recorded, startTestSandbox } from './set-up.ts';

const ackIdsOf = ({ json }: Answer): string[] => json.map(({ AckId }: { AckId: string }) => AckId);

async function startQueue(service: ServiceSettingsInput = {}) {
  const test = await startTestSandbox({ service });
  const { id } = test.sandbox.addSubscription({ type: 'pull' });
  const read = (top: number | string = 20) =>
    test.call('GET', `/Subscriptions(${id})/Read?$top=${top}`);
  const ack = (ackId: string) =>
    test.call('POST', `/Subscriptions(${id})/Ack?$ackid=${encodeURIComponent(ackId)}`);
  const next = (fault: string, count = 1) =>
    test.sandbox.service.change({ nextQueueCalls: { [fault]: count } });
  const length = () => test.sandbox.queues()[0]?.length;
  return { ...test, id, read, ack, next, length };
}

const ackAnswer = (AckMessagesNum: number, CurrentQueueLength: number) => ({
  '@odata.context': '$metadata#Notification/$entity',
  ...{ AckMessagesNum, CurrentQueueLength, MaxQueueLength: 100_000 },
});

describe('a Read', () => {
  it('returns one entry by default; a wrong $top is answered with 422', async () => {
    const { sandbox, call, id, read } = await startQueue();
    await sandbox.publishNow(2);
    const [first] = sandbox.entries().map(({ ackId }) => ackId);
    expect(ackIdsOf(await call('GET', `/Subscriptions(${id})/Read`))).toEqual([first]);
    for (const [top, type] of [
      ['0', 'greater_than_equal'],
      ['21', 'less_than_equal'],
      ['ten', 'int_parsing'],
    ] as const) {
      const json = { detail: [{ type, input: top }] };
      expect(await read(top)).toMatchObject({ status: 422, json });
    }
  });

  it('returns entries older than three days without the product', async () => {
    const { read, sandbox } = await startQueue();
    await sandbox.publishNow(1);
    sandbox.clock.advance(3 * dayMs);
    const [{ value, ProductName, ...rest }] = (await read()).json;
    expect(value.Name).toBe(ProductName);
    sandbox.clock.advance(1);
    expect((await read()).json).toEqual([rest]);
    if (missing) return;
    const [documented] = recorded('notifications/pull-read-after-3-days.json');
    expect(Object.keys(rest)).toEqual(Object.keys(documented));
  });
});

it('an Ack acknowledges an entry and all before it, and dates the subscription', async () => {
  const { read, ack, sandbox, list } = await startQueue();
  await sandbox.publishNow(5);
  const ackIds = ackIdsOf(await read());
  sandbox.clock.advance(7_000);
  expect((await ack(ackIds[2] ?? '')).json).toEqual(ackAnswer(3, 2));
  expect(ackIdsOf(await read())).toEqual(ackIds.slice(3));
  expect((await list())[0].LastNotificationDate).toBe(
    sandbox.subscriptions()[0]?.lastNotificationDate,
  );
  expect(sandbox.totals()).toMatchObject({ delivered: 3, pending: 2, accepted: 3 });
  // An entry that is not in the queue has no effect.
  for (const unknown of [ackIds[2] ?? '', 'bm90aGluZw==']) {
    expect((await ack(unknown)).json).toEqual(ackAnswer(0, 2));
  }
  if (!missing) {
    expect(Object.keys(ackAnswer(0, 2))).toEqual(
      Object.keys(recorded('subscriptions/ack-200.json')),
    );
  }
});

describe('a fault', () => {
  it.each([
    ['rateLimited', 429],
    ['serverError', 500],
    ['htmlPage', 200],
    ['brokenJson', 200],
  ])('%s replaces the answer of a Read once', async (fault, status) => {
    const { read, next, sandbox } = await startQueue();
    await sandbox.publishNow(2);
    next(fault);
    const answer = await read().catch(({ name }) => ({ status: 200, name }));
    expect(answer).toMatchObject({ status });
    expect(ackIdsOf(await read())).toHaveLength(2);
  });

  it('leaves an Ack without an answer, before or after its effect', async () => {
    const { read, ack, next, sandbox, length } = await startQueue();
    await sandbox.publishNow(3);
    const [first = '', second = ''] = ackIdsOf(await read());
    next('connectionCut');
    await expect(ack(first)).rejects.toThrow('fetch failed');
    expect(length()).toBe(3);
    next('ackAnswerLost');
    await expect(ack(second)).rejects.toThrow('fetch failed');
    expect(length()).toBe(1);
  });

  it('returns a page again that was acknowledged', async () => {
    const { read, ack, next, sandbox } = await startQueue();
    await sandbox.publishNow(4);
    const page = await read(2);
    // Not used up while the page is in the queue.
    next('doubleRead');
    expect(ackIdsOf(await read(2))).toEqual(ackIdsOf(page));
    await ack(ackIdsOf(page)[1] ?? '');
    expect((await read(2)).text).toBe(page.text);
  });
});

it('a queue has the published entries, except acknowledged ones and the oldest beyond its maximum', async () => {
  const { sandbox, read, ack, id } = await startQueue({ queueMax: 25 });
  const step = fc.oneof(
    fc.record({ publish: fc.integer({ min: 1, max: 12 }) }),
    fc.record({ acknowledge: fc.integer({ min: 0, max: 9 }) }),
  );
  let model: (string | null)[] = [];
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      for (const one of steps) {
        if ('publish' in one) {
          const before = sandbox.entries().length;
          await sandbox.publishNow(one.publish);
          const added = sandbox.entries().slice(before);
          model = [...model, ...added.map(({ ackId }) => ackId)].slice(-25);
        } else {
          await ack(model[one.acknowledge] ?? 'unknown');
          if (one.acknowledge < model.length) model = model.slice(one.acknowledge + 1);
        }
        expect(ackIdsOf(await read())).toEqual(model.slice(0, 20));
        expect(sandbox.queues()).toMatchObject([{ subscriptionId: id, length: model.length }]);
      }
    }),
    { numRuns: 15 },
  );
});

it('the entries of a deleted subscription are lost, and a paused one gets none', async () => {
  const { sandbox, call, id, edit } = await startQueue();
  await sandbox.publishNow(2);
  await edit(id, { Status: 'paused' });
  await sandbox.publishNow(1);
  expect(sandbox.events().at(-1)?.subscriptions).toMatchObject([{ outcome: 'paused' }]);
  await call('DELETE', `/Subscriptions(${id})`);
  expect(sandbox.totals()).toMatchObject({ published: 2, lost: 2, pending: 0 });
});
