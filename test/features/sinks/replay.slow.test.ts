/** `earshot sinks replay`: preview, confirmation, and the deliveries of the receiver. */
import { describe, expect, it } from 'vitest';
import { expectEnd, nowUs } from '../../helpers/fake-io.ts';
import { delivery, hourUs, withStore } from '../../helpers/filled-store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { createSinkCommandContext } from './command-context.ts';
import { type Hooked, startHook } from './hook-server.ts';

const names = ['S2A_1', 'S2A_2', 'S1A_3', 'S2B_4', 'S2A_5'];

/** Five notifications, an hour apart, and a sink that accepts those of Sentinel-2. */
async function openContext(url = 'https://bus.example.org/hook') {
  const context = createSinkCommandContext(
    `{ bus: { webhook: '${url}', filter: "startswith(Name,'S2')", from: 'start' } }`,
  );
  await context.fillNames(names);
  const replays = () =>
    withStore(context.dataDir, ({ sinks }) => sinks.replays({ sink: 'bus', all: true }));
  return { ...context, replays };
}

describe('earshot sinks replay', () => {
  it('counts the matching notifications by time and filter, and changes nothing with --dry-run', async () => {
    const { earshot, replays } = await openContext();
    const count = async (...words: string[]) => {
      const { code, out, err } = await earshot([
        'sinks',
        'replay',
        '--sink',
        'bus',
        '--dry-run',
        ...words,
      ]);
      expect({ code, out }).toEqual({ code: 0, out: '' });
      return err;
    };
    expect(await count()).toBe(
      'Received from the start of the log until now (UTC): 4 notifications would be delivered to bus, the first 2026-05-02 07:00, the last 2026-05-02 11:00.\n',
    );
    expect(await count('--since', '210m')).toContain(': 2 notifications would be delivered');
    expect(await count('--since', '210m', '--until', '90m')).toBe(
      'Received from 2026-05-02 08:30 until 2026-05-02 10:30 (UTC): 1 notification would be delivered to bus, received 2026-05-02 10:00.\n',
    );
    expect(await count('--filter', "contains(Name,'A_')")).toContain(': 3 notifications would');
    expect(await count('--filter', "contains(Name,'S1')")).toBe(
      'Received from the start of the log until now (UTC): no notification matches the rules of bus and the filter.\n',
    );
    expect(await replays()).toEqual([]);
    const { out, err } = await earshot('sinks replay --sink bus --dry-run --json');
    expect(err).toBe('');
    expect(JSON.parse(out)).toEqual({ sink: 'bus', notifications: 4, replay: null });
  });

  it('asks for confirmation, and requires --yes without a terminal', async () => {
    const { earshot, replays } = await openContext();
    const none = await earshot('sinks replay --sink bus');
    expect(none).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
    const no = await expectEnd(earshot('sinks replay --sink bus', { answers: ['no'] }), 1);
    expect(no.err).toContain('Deliver 4 notifications to bus again?');
    expect(await replays()).toEqual([]);
    await expectEnd(
      earshot('sinks replay --sink bus --since 210m', { answers: ['y'] }),
      0,
      'Queued replay 1',
    );
    const since = { sinceUs: nowUs - 3.5 * hourUs, untilUs: null };
    expect(await replays()).toMatchObject([{ id: 1, filter: '', lastPosition: 5, ...since }]);
  });

  it('refuses the same replay while the first is unfinished, and accepts different ones', async () => {
    const { earshot, replays, dataDir } = await openContext();
    const ask = (...words: string[]) =>
      earshot(['sinks', 'replay', '--sink', 'bus', '--yes', ...words]);
    const first = await ask('--since', '7h');
    expect(first.err).toContain('4 notifications will be delivered to bus');
    expect(first.err).toContain('No receiver is delivering to sinks');
    const same = await earshot('sinks replay --sink bus --yes --since 7h', {
      nowUs: () => nowUs + hourUs,
    });
    expect(same.code).toBe(1);
    expect(same.err).toContain(
      'Replay 1 to bus (requested 2026-05-02 12:00 UTC) already covers this request',
    );
    expect((await ask('--since', '7h', '--dry-run')).code).toBe(0);
    expect((await ask('--since', '7h', '--filter', "contains(Name,'A_')")).code).toBe(0);
    expect((await ask('--since', '8h')).code).toBe(0);
    expect(await replays()).toHaveLength(3);
    // All queued, but not all delivered.
    const items = [{ position: 1, productId: 'product-1' }];
    const stream = { sink: 'bus', replayId: 3, after: 0, upTo: 5 };
    await withStore(dataDir, ({ sinks }) => sinks.enqueue({ ...stream, items, atUs: nowUs }));
    expect((await ask('--since', '8h')).err).toContain('Replay 3 to bus (requested');
    await withStore(dataDir, ({ sinks }) =>
      sinks.drop({ sink: 'bus', state: 'waiting', ids: 'all', nowUs }),
    );
    expect((await ask('--since', '8h')).code).toBe(0);
  });

  it('accepts the same replay again when new notifications have arrived', async () => {
    const { earshot, replays, fill } = await openContext();
    const ask = () => earshot('sinks replay --sink bus --yes --since 7h');
    expect((await ask()).code).toBe(0);
    const come = (Name: string, AckId: string) =>
      fill([delivery({ ProductId: Name, AckId, value: { Name } }, { receivedAtUs: nowUs - 1 })]);
    await come('S1A_6', 'ack-6');
    expect((await ask()).err).toContain('Replay 1 to bus');
    await come('S2A_7', 'ack-7');
    await expectEnd(ask(), 0, '5 notifications will be delivered to bus');
    expect(await replays()).toMatchObject([
      { id: 2, lastPosition: 7 },
      { id: 1, lastPosition: 5 },
    ]);
    expect((await ask()).err).toContain('Replay 2 to bus (requested');
  });

  it('reports that the folder has no earshot.config.ts', async () => {
    const { earshot, replays } = await openContext();
    const workingDir = temporaryDirectory();
    const { err } = await expectEnd(earshot('sinks replay --sink bus --yes', { workingDir }), 2);
    expect(err).toContain(`There is no earshot.config.ts in ${workingDir}.`);
    expect(await replays()).toEqual([]);
  });

  it.each([
    ['a sink that is not there', ['--sink', 'nope'], /There is no sink nope\. Known: bus\./],
    [
      'an empty window',
      ['--sink', 'bus', '--since', '1h', '--until', '2h'],
      /--since must be before --until/,
    ],
    [
      'a window that has not begun',
      ['--sink', 'bus', '--since', '2026-05-03'],
      /The time range is empty: .* before now/,
    ],
    ['a window of no time', ['--sink', 'bus', '--since', '0h'], /The time range is empty/],
    [
      'a faulty filter, with its place',
      ['--sink', 'bus', '--filter', "Naem eq 'x'"],
      /Naem eq 'x'\n +\^{4}/,
    ],
  ])('refuses %s with exit code 2', async (_what, words, expected) => {
    const { earshot, replays } = await openContext();
    await expectEnd(earshot(['sinks', 'replay', ...words, '--yes']), 2, expected);
    expect(await replays()).toEqual([]);
  });

  it('goes to a valid sink next to a faulty one, which is refused with its own faults', async () => {
    const { earshot, fillNames } = createSinkCommandContext(
      `{ bus: { command: ['a'] }, odd: { webhook: 'https://a.example', secretFile: 'gone' },
         odder: { command: ['a'], filter: 'Naem' } }`,
    );
    await fillNames(names);
    const sound = await earshot('sinks replay --sink bus --yes');
    expect(sound).toMatchObject({ code: 0, err: expect.stringContaining('Queued replay 1') });
    const faulty = await earshot('sinks replay --sink odd --yes');
    expect(faulty).toMatchObject({
      code: 2,
      err: expect.stringMatching(/sinks\.odd\.secretFile: .*gone/),
    });
    expect(faulty.err).not.toContain('odder');
    const unknown = await earshot('sinks replay --sink ood --yes');
    expect(unknown.err).toContain(
      'There is no sink ood. Did you mean odd? Known: bus, odd, odder.',
    );
  });

  it('is delivered by the receiver: exactly the matching ones, marked, with new ids', async () => {
    const hook = await startHook();
    const { earshot, replays, serveUntil } = await openContext(hook.url);
    const isDone = (count: number) => async () => hook.received.length >= count;
    await serveUntil(isDone(4));
    const first = new Map(hook.received.map(({ data }) => [data.position, data.id]));
    hook.received.length = 0;
    const words = ['--filter', "contains(Name,'A_')", '--since', '270m', '--yes', '--json'];
    const { out } = await earshot(['sinks', 'replay', '--sink', 'bus', ...words]);
    expect(JSON.parse(out)).toEqual({ sink: 'bus', notifications: 2, replay: 1 });
    const listed = await earshot('sinks list --json');
    expect(JSON.parse(listed.out)).toMatchObject([{ name: 'bus', replays: 1 }]);
    await serveUntil(async (sinks) => {
      const [counts] = await sinks.counts();
      return (await sinks.replays({ all: false })).length === 0 && counts?.waiting === 0;
    });
    const replayed = hook.received.map(({ data }: Hooked) => data);
    expect(replayed.map(({ position }) => position).toSorted()).toEqual([2, 5]);
    for (const { position, id, notificationId, replay } of replayed) {
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
