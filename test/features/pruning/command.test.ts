/** `earshot prune`: preview, confirmation, result and refusals. */
import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import {
  expectEnd,
  expectRefusal,
  type FakeIoOptions,
  nowUs,
  printedJson,
} from '../../helpers/fake-io.ts';
import { filledContext, withStore as withOpenStore } from '../../helpers/filled-store.ts';

const dayUs = 86_400_000_000;

/** A log with one notification a day for ten days, and one received just now. */
async function openContext() {
  const oneADay = Array.from({ length: 11 }, (_, i) =>
    delivery(notification(10 - i), { receivedAtUs: nowUs - (10 - i) * dayUs }),
  );
  const { dataDir, earshot } = await filledContext(oneADay);
  const withStore = <Result>(use: (store: Store) => Promise<Result>) => withOpenStore(dataDir, use);
  const run = (argv: string, options?: FakeIoOptions) => earshot(argv.split(' '), options);
  const left = () =>
    withStore(async (store) => (await collect(store.find({}))).map(({ ackId }) => ackId));
  return { dataDir, withStore, run, left };
}

const days = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => `ack-${from + i}`);

describe('earshot prune', () => {
  it('prints what it will delete, asks, deletes it, and reports the freed space', async () => {
    const { run, left } = await openContext();
    const refused = await run('prune --older-than 3d', { answers: ['n'] });
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toMatch(
      /^Selected for deletion: 7 notifications, received from 2026-04-22 12:00 until 2026-04-29 12:00 \(UTC\); about [\d.]+ KiB of [\d.]+ [KM]iB\.\nDelete 7 notifications permanently\? \[y\/N\] \nearshot: Nothing was changed\.\n$/,
    );
    expect(await left()).toHaveLength(11);
    const { err } = await expectEnd(run('prune --older-than 3d', { answers: ['y'] }), 0);
    expect(err).toMatch(/\nDeleted 7 notifications\. earshot\.db: [\d.]+ [KM]iB, .* less\.\n$/);
    expect(await left()).toEqual(days(0, 4));
  });

  it('deletes with --yes, not without a terminal to ask on, and nothing with --dry-run', async () => {
    const { run, left } = await openContext();
    await expectRefusal(run('prune --older-than 3d'), 'needs a terminal. Nothing was changed.');
    const dry = await printedJson(run('prune --older-than 3d --dry-run --json'));
    expect(dry).toEqual({
      ...{ notifications: 7, quarantined: 0, heldBy: [], removed: null, bytes: expect.any(Number) },
      ...{ from: '2026-04-22T12:00:00.000000Z', until: '2026-04-29T12:00:00.000000Z' },
    });
    expect(await left()).toHaveLength(11);
    const { removed } = await printedJson(run('prune --older-than 3d --yes --json'));
    expect(removed).toEqual({
      ...{ notifications: 7, quarantined: 0, summaries: 0, givenBackBytes: expect.any(Number) },
    });
    expect(await left()).toEqual(days(0, 4));
    await expectEnd(run('prune --older-than 3d'), 0, 'No notifications to delete.');
  });

  it('uses EARSHOT_KEEP when no flag sets the limit', async () => {
    const { run, left } = await openContext();
    await expectRefusal(run('prune'), 'EARSHOT_KEEP is not set. Add --older-than 365d');
    const env = { EARSHOT_KEEP: '5d,50GB' };
    expect(await run('prune --yes', { env })).toMatchObject({ code: 0 });
    expect(await left()).toEqual(days(0, 6));
    expect(await run('prune --older-than 2d --yes', { env })).toMatchObject({ code: 0 });
    expect(await left()).toEqual(days(0, 3));
  });

  it.each([
    ['--older-than 365', 'must be an age in hours, days or weeks, such as 36h, 365d or 52w'],
    ['--older-than -1d', 'must be an age in'],
    ['--to-size 20', 'must be a size such as 50GB or 20GiB.'],
    ['--to-size 20gb', 'must be a size such as 50GB or 20GiB'],
    ['--remove-reader x --dry-run', "cannot be used with option '--dry-run'"],
  ])('refuses %s', async (flags, message) => {
    const { run } = await openContext();
    await expectEnd(run(`prune ${flags}`), 2, message);
  });

  it('names the readers that block pruning, since when, and the next step', async () => {
    const { run, left, withStore } = await openContext();
    await withStore(async (store) => {
      await store.moveCursor('downloads', 3, nowUs - 9 * dayUs);
      await store.moveCursor('sink:orders', 5, nowUs - 6 * dayUs);
    });
    const { err } = await run('prune --older-than 2d --yes');
    expect(err).toContain('Selected for deletion: 2 notifications');
    for (const text of [
      '  reader downloads, at position 3 since 2026-04-23 12:00',
      '`earshot prune --remove-reader downloads`',
      '  sink orders, at position 5 since 2026-04-26 12:00',
    ])
      expect(err).toContain(text);
    expect(await left()).toHaveLength(9);
    await expectEnd(run('prune --remove-reader downloads', { answers: ['y'] }), 0);
    await expectRefusal(run('prune --remove-reader orders --yes'), 'Did you mean sink:orders?');
    await withStore(({ sinks }) =>
      sinks.enqueue({
        ...{ sink: 'orders', replayId: null, after: 5, upTo: 6, atUs: nowUs },
        items: [{ position: 6, productId: 'a' }],
      }),
    );
    await expectEnd(run('prune --remove-reader sink:orders --yes'), 1, 'has unfinished work');
    await withStore(({ sinks }) => sinks.settle([{ id: 1, outcome: 'acknowledged' }], nowUs));
    await expectEnd(run('prune --remove-reader sink:orders --yes'), 0);
    expect((await run('prune --older-than 2d --yes')).err).not.toContain('blocked');
    expect(await left()).toEqual(days(0, 3));
  });
});
