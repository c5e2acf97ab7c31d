/** `earshot sinks replay`, `retry` and `drop`: previews, confirmations, and what they change. */
import { describe, expect, it } from 'vitest';
import { expectEnd, nowUs } from '../../helpers/fake-io.ts';
import { hourUs, withStore } from '../../helpers/filled-store.ts';
import { createSinkCommandContext, openRefusedContext } from './command-context.ts';
import { queued, replayOf } from './sink-items.ts';

const names = ['S2A_1', 'S2A_2', 'S1A_3', 'S2B_4', 'S2A_5'];

/** Five notifications, an hour apart, and a sink that accepts those of Sentinel-2. */
async function openContext() {
  const context = createSinkCommandContext(
    `{ bus: { command: ['a'], filter: "startswith(Name,'S2')", from: 'start' } }`,
  );
  await context.fillNames(names);
  const stored = () => withStore(context.dataDir, ({ sinks }) => sinks.replay('bus'));
  const replay = (...words: string[]) =>
    context.earshot(['sinks', 'replay', '--sink', 'bus', ...words]);
  return { ...context, stored, replay };
}

describe('earshot sinks replay', () => {
  it('counts the matching notifications by time and filter, and changes nothing with --dry-run', async () => {
    const { replay, stored } = await openContext();
    for (const [words, notifications] of [
      [[], 4],
      [['--since', '210m'], 2],
      [['--since', '210m', '--until', '90m'], 1],
      [['--filter', "contains(Name,'A_')"], 3],
      [['--filter', "contains(Name,'S1')"], 0],
    ] as const) {
      const { out, err } = await replay('--dry-run', '--json', ...words);
      expect([JSON.parse(out), err]).toEqual([{ sink: 'bus', notifications, replay: null }, '']);
    }
    await expectEnd(replay('--dry-run', '--since', '210m'), 0, ': 2 notifications would be');
    expect(await stored()).toBeNull();
  });

  it('asks for confirmation, and requires --yes without a terminal', async () => {
    const { earshot, replay, stored } = await openContext();
    await expectEnd(replay(), 2, '--yes');
    const asked = (answer: string) =>
      earshot('sinks replay --sink bus --since 210m', { answers: [answer] });
    await expectEnd(asked('no'), 1, 'Deliver 2 notifications to bus again?');
    expect(await stored()).toBeNull();
    const { err } = await expectEnd(asked('y'), 0, 'Queued replay 1');
    expect(err).toContain('so nothing is delivered');
    const since = { sinceUs: nowUs - 3.5 * hourUs, untilUs: null };
    expect(await stored()).toMatchObject({ id: 1, filter: '', lastPosition: 5, ...since });
    const [listed] = JSON.parse((await earshot('sinks list --json')).out);
    expect(listed).toMatchObject({ name: 'bus', isReplaying: true });
    await expectEnd(replay('--yes'), 1, 'A replay to bus has not finished.');
    await expectEnd(earshot('sinks drop bus --waiting --yes'), 0);
    const json = await replay('--filter', "contains(Name,'A_')", '--yes', '--json');
    expect(JSON.parse(json.out)).toEqual({ sink: 'bus', notifications: 3, replay: 2 });
  });

  it.each([
    ['an empty window', ['--since', '1h', '--until', '2h'], /is not after --since/],
    ['a window that has not begun', ['--since', '2026-05-03'], /is empty: .* before now/],
    ['a window of no time', ['--since', '0h'], /Use 90m, 24h, 7d or a date/],
    ['a faulty filter, with its place', ['--filter', "Naem eq 'x'"], /Naem eq 'x'\n +\^{4}/],
  ])('refuses %s with exit code 2', async (_what, words, expected) => {
    const { replay, stored } = await openContext();
    await expectEnd(replay(...words, '--yes'), 2, expected);
    expect(await stored()).toBeNull();
  });
});

describe('earshot sinks retry and drop', () => {
  it('queue all dead letters again', async () => {
    const { earshot, counts } = await openRefusedContext();
    await expectEnd(earshot('sinks retry bus'), 0, 'Queued 2 dead letters of bus again.');
    expect(await counts()).toMatchObject({ waiting: 3, dead: 0 });
    for (const command of ['retry', 'drop']) {
      await expectEnd(earshot(`sinks ${command} bus`), 0, 'bus has no dead letters.');
    }
  });

  it('drop asks first', async () => {
    const { earshot, counts } = await openRefusedContext();
    await expectEnd(earshot('sinks drop bus'), 2, '--yes');
    const no = await expectEnd(earshot('sinks drop bus', { answers: ['n'] }), 1);
    expect(no.err).toMatch(/Drop 2 dead letters of bus\? .* remain in the log/);
    expect(await counts()).toMatchObject({ waiting: 1, dead: 2 });
    await expectEnd(earshot('sinks drop bus --yes'), 0, 'Dropped 2 dead letters of bus.');
    expect(await counts()).toMatchObject({ waiting: 1, dead: 0 });
  });

  it('drop --waiting describes what it drops, new or replayed, and how to deliver it again', async () => {
    const { dataDir, earshot, counts } = await openRefusedContext();
    await withStore(dataDir, async (store) => {
      const { id: replayId } = await store.sinks.addReplay(replayOf(5, { sink: 'bus' }));
      await queued(store, ['product-1'], { sink: 'bus', replayId });
    });
    const words = '2 notifications and the rest of the replay';
    const drop = (answer: string) => earshot('sinks drop bus --waiting', { answers: [answer] });
    await expectEnd(drop('n'), 1, `Drop from the queue of bus: ${words}?`);
    expect(await counts()).toMatchObject({ waiting: 2, dead: 2 });
    const yes = await expectEnd(earshot('sinks drop bus --waiting --yes'), 0, `: ${words}.\n`);
    expect(yes.err).toContain('`earshot sinks replay --sink bus`');
    expect(await counts()).toMatchObject({ waiting: 0, dead: 2 });
    expect(await withStore(dataDir, ({ sinks }) => sinks.replay('bus'))).toBeNull();
    await expectEnd(earshot('sinks drop bus --waiting'), 0, 'The queue of bus is empty.');
  });
});
