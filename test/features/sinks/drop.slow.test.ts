/** `earshot sinks retry` and `drop`: dead letters, and queued notifications. */
import { describe, expect, it } from 'vitest';
import { expectEnd, nowUs } from '../../helpers/fake-io.ts';
import { withStore } from '../../helpers/filled-store.ts';
import { openRefusedContext } from './command-context.ts';

describe('earshot sinks retry and drop', () => {
  it('queue named dead letters, or all of them, again', async () => {
    const { earshot, counts } = await openRefusedContext();
    const one = await earshot('sinks retry bus 2');
    expect(one).toMatchObject({ code: 0, out: '' });
    expect(one.err).toBe('Queued 1 dead letter of bus again.\n');
    expect(await counts()).toMatchObject({ waiting: 2, dead: 1 });
    expect((await earshot('sinks retry bus --all')).code).toBe(0);
    expect(await counts()).toMatchObject({ waiting: 3, dead: 0 });
    const none = await earshot('sinks retry bus --all');
    expect(none).toMatchObject({ code: 0, err: 'bus has no dead letters.\n' });
    const drop = await earshot('sinks drop bus --all');
    expect(drop).toMatchObject({ code: 0, err: 'bus has no dead letters.\n' });
  });

  it('process known ids, and name ids without a dead letter', async () => {
    const { earshot, counts } = await openRefusedContext();
    const retry = await expectEnd(earshot('sinks retry bus 99999,2,4,2'), 2);
    expect(retry.err).toBe(
      'Queued 1 dead letter of bus again.\nearshot: No such dead letters of bus: 99999, 4. To list dead letters: `earshot sinks dead bus`.\n',
    );
    expect(await counts()).toMatchObject({ waiting: 2, dead: 1 });
    const drop = await expectEnd(earshot('sinks drop bus 99999', { answers: [] }), 2);
    expect(drop.err).toMatch(/^earshot: No such dead letter of bus: 99999\. /);
    expect((await earshot('sinks drop bus 3,99999 --yes')).code).toBe(2);
    expect(await counts()).toMatchObject({ waiting: 2, dead: 0 });
  });

  it('require ids or --all, not both, and numeric ids', async () => {
    const { earshot, counts } = await openRefusedContext();
    for (const words of [
      ['retry', 'bus'],
      ['retry', 'bus', '2', '--all'],
      ['drop', 'bus'],
    ]) {
      await expectEnd(earshot(['sinks', ...words]), 2, '--all');
    }
    expect((await earshot('sinks retry bus 2,x')).code).toBe(2);
    expect((await earshot('sinks drop bus 2 --waiting --yes')).code).toBe(2);
    expect(await counts()).toMatchObject({ waiting: 1, dead: 2 });
  });

  it('drop asks first, and requires --yes without a terminal', async () => {
    const { earshot, counts } = await openRefusedContext();
    expect((await earshot('sinks drop bus --all')).code).toBe(2);
    const no = await expectEnd(earshot('sinks drop bus --all', { answers: ['n'] }), 1);
    expect(no.err).toContain(
      'Drop all 2 dead letters of bus? The notifications remain in the log, but are not delivered.',
    );
    expect(await counts()).toMatchObject({ waiting: 1, dead: 2 });
    const one = await earshot('sinks drop bus 3 --yes');
    expect(one).toMatchObject({ code: 0, err: 'Dropped 1 dead letter of bus.\n' });
    expect(await counts()).toMatchObject({ waiting: 1, dead: 1 });
  });
});

describe('earshot sinks drop --waiting', () => {
  it('describes what it drops, new or replayed, and how to deliver it again', async () => {
    const { dataDir, earshot, counts } = await openRefusedContext();
    await withStore(dataDir, async ({ sinks }) => {
      const asked = { sink: 'bus', filter: '', sinceUs: null, untilUs: null, requestedAtUs: nowUs };
      const { id } = await sinks.addReplay({ ...asked, afterPosition: 1, lastPosition: 5 });
      const items = [{ position: 2, productId: 'product-2' }];
      const stream = { sink: 'bus', replayId: id, after: 1, upTo: 3 };
      await sinks.enqueue({ ...stream, items, atUs: nowUs });
    });
    const words = '2 notifications and 1 unfinished replay';
    const no = await earshot('sinks drop bus --waiting', { answers: ['n'] });
    expect(no.err).toContain(`Drop from the queue of bus: ${words}? The notifications remain`);
    expect(await counts()).toMatchObject({ waiting: 2, dead: 2 });
    const yes = await earshot('sinks drop bus --waiting --yes');
    expect(yes).toMatchObject({ code: 0, out: '' });
    expect(yes.err).toBe(
      `Dropped from the queue of bus: 2 notifications and 1 unfinished replay.\nTo deliver the notifications: \`earshot sinks replay --sink bus --since 2026-05-02T08:00:00.000000Z\`\n`,
    );
    expect(await counts()).toMatchObject({ waiting: 0, dead: 2 });
    expect(await withStore(dataDir, ({ sinks }) => sinks.replays({ all: false }))).toEqual([]);
    const none = await earshot('sinks drop bus --waiting');
    expect(none).toMatchObject({ code: 0, err: 'The queue of bus is empty.\n' });
  });
});
