/** Problems on our side: unreadable bodies, records that cannot be written again, a clock that is set back. */
import { describe, expect, it } from 'vitest';
import { collect } from '../../helpers/deliveries.ts';
import { replaceBody } from '../../helpers/replace-body.ts';
import { answering } from './hook-server.ts';
import { openHookContext } from './sink-context.ts';

const filter = "startswith(Name,'S2')";

it.each(['', filter])(
  'an unreadable body is a dead letter of a sink with the filter "%s" after some attempts, and the others are delivered',
  async (filter) => {
    const { accept, startSink, isDone, items, breakBodies, hook } = await openHookContext();
    for (let i = 0; i < 3; i += 1) await accept({ value: { Name: 'S2A_1' } });
    breakBodies((position) => position === 2);
    startSink({ filter, attemptsMax: 3 });
    await isDone();
    const error = expect.stringContaining('the disk is broken here');
    expect(await items('dead')).toMatchObject([{ position: 2, attempts: 3, error }]);
    expect(hook.positions().toSorted()).toEqual([1, 3]);
  },
);

describe('a record that cannot be written as JSON again', () => {
  const deep = 20_000;
  const deepList = `${'['.repeat(deep)}${']'.repeat(deep)}`;

  it('is a dead letter after its attempts, with the reason; the others are delivered', async () => {
    const { accept, startSink, isDone, items, hook, dataDir, store } = await openHookContext();
    for (let i = 0; i < 10; i += 1) await accept();
    for (const row of (await collect(store.find({ order: 'oldest' }))).slice(0, 8)) {
      const record = `{"Id":"${row.productId}","Checksum":${deepList}}`;
      const fields = `"ProductId":"${row.productId}","SubscriptionEvent":"created"`;
      replaceBody(dataDir, row.position, Buffer.from(`{${fields},"value":${record}}`));
    }
    startSink({ attemptsMax: 2, concurrency: 2 });
    await isDone();
    expect(hook.positions().toSorted((a, b) => a - b)).toEqual([9, 10]);
    const dead = await items('dead');
    expect(dead.map(({ position }) => position).toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    for (const one of dead) {
      expect(one).toMatchObject({ attempts: 2, error: expect.stringMatching(/call stack/) });
    }
  });
});

it.each([
  ['403', 403, {}],
  ['429 with Retry-After', 429, { 'retry-after': '3000' }],
  ['400', 400, {}],
])(
  'a clock that is set back by hours delays neither a replay nor an item postponed after %s',
  async (_what, status, headers) => {
    const { accept, startSink, items, isDone, replay, context, hook, time } = await openHookContext(
      answering(status, headers),
    );
    let aheadUs = 5 * 3_600_000_000;
    context.nowUs = () => time.nowUs() + aheadUs;
    await accept({ ProductId: 'one' });
    startSink({ attemptsMax: 50 });
    await time.runUntil(async () => (await items('waiting'))[0]?.error != null);
    aheadUs = 0;
    const beginUs = time.nowUs();
    hook.change(() => undefined);
    await accept({ ProductId: 'two' });
    await isDone();
    await replay({ afterPosition: 1 });
    await time.runUntil(() => hook.received.some(({ data }) => data.replay));
    expect(time.nowUs() - beginUs).toBeLessThan(600_000_000);
  },
);
