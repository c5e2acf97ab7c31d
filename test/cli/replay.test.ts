/** `earshot replay`: how many it would be, the question, and what a receiver hands over then. */
import { describe, expect, it } from 'vitest';
import { type Hooked, startHook } from '../sinks/hook-server.ts';
import { nowUs } from './fake-io.ts';
import { hourUs, withStore } from './filled-store.ts';
import { createSinkCommandWorld } from './sink-world.ts';

const names = ['S2A_1', 'S2A_2', 'S1A_3', 'S2B_4', 'S2A_5'];

/** Five notifications, an hour apart, and a sink that wants those of Sentinel-2. */
async function openWorld(url = 'https://bus.example.org/hook') {
  const world = createSinkCommandWorld(
    `{ bus: { webhook: '${url}', filter: "startswith(Name,'S2')", from: 'start' } }`,
  );
  await world.fillNames(names);
  const replays = () =>
    withStore(world.dataDir, ({ sinks }) => sinks.replays({ sink: 'bus', all: true }));
  return { ...world, replays };
}

describe('earshot replay', () => {
  it('counts what the sink wants, by time and filter, and with --dry-run does nothing', async () => {
    const { earshot, replays } = await openWorld();
    const count = async (...words: string[]) => {
      const { code, out, err } = await earshot(['replay', '--sink', 'bus', '--dry-run', ...words]);
      expect({ code, out }).toEqual({ code: 0, out: '' });
      return err;
    };
    expect(await count()).toBe('4 notifications would be handed over to bus.\n');
    expect(await count('--since', '210m')).toBe('2 notifications would be handed over to bus.\n');
    expect(await count('--since', '210m', '--until', '90m')).toMatch(/^1 notification would/);
    expect(await count('--filter', "contains(Name,'A_')")).toMatch(/^3 notifications would/);
    expect(await count('--filter', "contains(Name,'S1')")).toBe(
      'Nothing that matches the filter was received in this time that bus wants by its own rules.\n',
    );
    expect(await replays()).toEqual([]);
    const { out, err } = await earshot(['replay', '--sink', 'bus', '--dry-run', '--json']);
    expect(err).toBe('');
    expect(JSON.parse(out)).toEqual({ sink: 'bus', notifications: 4, replay: null });
  });

  it('asks, and without a terminal wants --yes', async () => {
    const { earshot, replays } = await openWorld();
    const none = await earshot(['replay', '--sink', 'bus']);
    expect(none).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
    const no = await earshot(['replay', '--sink', 'bus'], { answers: ['no'] });
    expect(no.err).toContain('Hand 4 notifications over to bus once more?');
    expect(no.code).toBe(1);
    expect(await replays()).toEqual([]);
    const yes = await earshot(['replay', '--sink', 'bus', '--since', '210m'], { answers: ['y'] });
    expect(yes.code).toBe(0);
    expect(yes.err).toContain('Replay 1');
    const since = { sinceUs: nowUs - 3.5 * hourUs, untilUs: null };
    expect(await replays()).toMatchObject([{ id: 1, filter: '', lastPosition: 5, ...since }]);
  });

  it.each([
    ['a sink that is not there', ['--sink', 'nope'], /has no sink nope\. It has: bus\./],
    [
      'an empty window',
      ['--sink', 'bus', '--since', '1h', '--until', '2h'],
      /--since must lie before --until/,
    ],
    [
      'a faulty filter, with its place',
      ['--sink', 'bus', '--filter', "Naem eq 'x'"],
      /Naem eq 'x'\n +\^{4}/,
    ],
  ])('refuses %s with exit code 2', async (_what, words, expected) => {
    const { earshot, replays } = await openWorld();
    const { code, err } = await earshot(['replay', ...words, '--yes']);
    expect(err).toMatch(expected);
    expect(code).toBe(2);
    expect(await replays()).toEqual([]);
  });

  it('is handed over by the receiver: exactly those, marked, under ids of their own', async () => {
    const hook = await startHook();
    const { earshot, replays, serveUntil } = await openWorld(hook.url);
    const isDone = (count: number) => async () => hook.received.length >= count;
    await serveUntil(isDone(4));
    const first = new Map(hook.received.map(({ data }) => [data.position, data.id]));
    hook.received.length = 0;
    const words = ['--filter', "contains(Name,'A_')", '--since', '270m', '--yes', '--json'];
    const { out } = await earshot(['replay', '--sink', 'bus', ...words]);
    expect(JSON.parse(out)).toEqual({ sink: 'bus', notifications: 2, replay: 1 });
    const listed = await earshot(['sinks', 'list', '--json']);
    expect(JSON.parse(listed.out)).toMatchObject([{ sink: 'bus', replays: 1 }]);
    await serveUntil(async (sinks) => {
      const [counts] = await sinks.counts();
      return (await sinks.replays({ all: false })).length === 0 && counts?.waiting === 0;
    });
    const told = hook.received.map(({ data }: Hooked) => data);
    expect(told.map(({ position }) => position).toSorted()).toEqual([2, 5]);
    for (const { position, id, notificationId, replay } of told) {
      const plain = first.get(position);
      expect({ id, notificationId, replay }).toEqual({
        id: `${plain}_replay_1`,
        notificationId: plain,
        replay: true,
      });
    }
    expect(await replays()).toMatchObject([{ endedAtUs: expect.any(Number) }]);
  });
});
