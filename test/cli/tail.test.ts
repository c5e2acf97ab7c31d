/** `earshot tail`: where it starts, that it follows, and that a named reader loses nothing. */
import { describe, expect, it, vi } from 'vitest';
import { createWorld, delivery, numbered, withStore } from './filled-store.ts';

const toTheEnd = ['tail', '--no-follow'];

describe('tail --no-follow', () => {
  it.each<[string, number[]]>([
    ['--from start', [1, 2, 3, 4]],
    ['--from 0', [1, 2, 3, 4]],
    ['--from 2', [3, 4]],
    ['--from 99', []],
    ['--from now', []],
    ['', []],
  ])('%s prints the positions %j, oldest first', async (line, positions) => {
    const world = createWorld();
    await world.fill(numbered(1, 4));
    const argv = line.split(' ').filter((word) => word !== '');
    expect(await world.positions([...toTheEnd, ...argv])).toEqual(positions);
  });

  it('prints only what the filter lets through', async () => {
    const world = createWorld();
    await world.fill([
      ...numbered(1, 2),
      delivery({ AckId: 'ack-3', SubscriptionEvent: 'deleted' }, { subscription: 'fires' }),
    ]);
    const from = [...toTheEnd, '--from', 'start'];
    expect(await world.positions([...from, '--event', 'deleted'])).toEqual([3]);
    expect(await world.positions([...from, '--subscription', 'sea-ice'])).toEqual([1, 2]);
  });

  it('prints a line with time, event and product for people', async () => {
    const world = createWorld();
    await world.fill([delivery()]);
    expect(await world.earshot([...toTheEnd, '--from', 'start'])).toMatchObject({
      code: 0,
      out: '2026-05-02 11:00:00  created   S2A_ONE.SAFE\n',
      err: '',
    });
  });
});

describe('a named reader', () => {
  const reader = [...toTheEnd, '--reader', 'downloads'];

  it('goes on where it stopped', async () => {
    const world = createWorld();
    await world.fill(numbered(1, 2));
    expect(await world.positions([...reader, '--from', 'start'])).toEqual([1, 2]);
    expect(await world.positions(reader)).toEqual([]);
    await world.fill(numbered(3, 5));
    expect(await world.positions(reader)).toEqual([3, 4, 5]);
    expect(await world.positions(reader)).toEqual([]);
  });

  it('that is new starts at the end, and stores that', async () => {
    const world = createWorld();
    await world.fill(numbered(1, 2));
    expect(await world.positions(reader)).toEqual([]);
    await world.fill(numbered(3, 3));
    expect(await world.positions(reader)).toEqual([3]);
  });

  it('can be sent back', async () => {
    const world = createWorld();
    await world.fill(numbered(1, 3));
    expect(await world.positions([...reader, '--from', 'start'])).toEqual([1, 2, 3]);
    expect(await world.positions([...reader, '--from', '1'])).toEqual([2, 3]);
    expect(await world.positions(reader)).toEqual([]);
  });

  it('does not move another one', async () => {
    const world = createWorld();
    await world.fill(numbered(1, 2));
    const other = [...toTheEnd, '--reader', 'other', '--from'];
    expect(await world.positions([...other, '0'])).toEqual([1, 2]);
    expect(await world.positions([...reader, '--from', '1'])).toEqual([2]);
    await withStore(world.dataDir, async (store) => {
      expect([await store.cursor('other'), await store.cursor('downloads')]).toEqual([2, 2]);
      expect(await store.cursor('nobody')).toBeNull();
    });
  });

  it('gets all rows of a long log', async () => {
    const world = createWorld();
    await withStore(world.dataDir, (store) =>
      Promise.all(numbered(1, 2300).map((each) => store.accept(each))),
    );
    expect(await world.positions([...reader, '--from', 'start'])).toHaveLength(2300);
    expect(await world.positions(reader)).toEqual([]);
  });

  it('does not make a data directory where there is none', async () => {
    const world = createWorld();
    const dataDir = `${world.dataDir}/mistyped`;
    const { code, err } = await world.earshot(reader, { env: { EARSHOT_DATA_DIR: dataDir } });
    expect(code).toBe(2);
    expect(err).toContain(`There is no database in ${dataDir}.`);
  });
});

describe('tail that follows', () => {
  it.each([['--from start'], ['--from start --reader downloads']])(
    '%s prints what arrives, until it is stopped',
    async (line) => {
      const world = createWorld();
      await world.fill(numbered(1, 1));
      await withStore(world.dataDir, async (store) => {
        const tail = world.start(['tail', '--output', 'ndjson', ...line.split(' ')]);
        await vi.waitUntil(() => tail.out().includes('"ack-1"'), 10_000);
        for (const each of numbered(2, 3)) await store.accept(each);
        await vi.waitUntil(() => tail.out().includes('"ack-3"'), 10_000);
        tail.stop();
        const { code, out, err } = await tail.ended;
        expect({ code, err }).toEqual({ code: 0, err: '' });
        const lines = out.trimEnd().split('\n');
        expect(lines.map((each) => JSON.parse(each).ackId)).toEqual(['ack-1', 'ack-2', 'ack-3']);
      });
    },
  );

  it('with a name has stored what it printed when it is stopped', async () => {
    const world = createWorld();
    await world.fill(numbered(1, 3));
    const tail = world.start(['tail', '--reader', 'downloads', '--from', '1']);
    await vi.waitUntil(() => tail.out().split('\n').length === 3, 10_000);
    tail.stop();
    expect((await tail.ended).code).toBe(0);
    await world.fill(numbered(4, 4));
    expect(await world.positions([...toTheEnd, '--reader', 'downloads'])).toEqual([4]);
  });

  it('with a name stores its position as soon as it has caught up', async () => {
    const world = createWorld();
    await world.fill(numbered(1, 3));
    const tail = world.start(['tail', '--reader', 'downloads', '--from', 'start']);
    await withStore(world.dataDir, (store) =>
      vi.waitFor(async () => expect(await store.cursor('downloads')).toBe(3), 10_000),
    );
    tail.stop();
    expect((await tail.ended).code).toBe(0);
  });

  it('with a name goes on with the very next row when it was stopped half-way', async () => {
    const world = createWorld();
    await world.fill(numbered(1, 5));
    const argv = ['tail', '--reader', 'downloads', '--from', 'start'];
    const { code, out } = await world.earshot(argv, { stopAfterChunks: 2 });
    expect({ code, lines: out.trimEnd().split('\n').length }).toEqual({ code: 0, lines: 2 });
    expect(await world.positions([...toTheEnd, '--reader', 'downloads'])).toEqual([3, 4, 5]);
  });

  it('ends at once when it was stopped before it began', async () => {
    const world = createWorld();
    await world.fill(numbered(1, 1));
    const tail = world.start(['tail', '--from', 'start']);
    tail.stop();
    expect(await tail.ended).toMatchObject({ code: 0, out: '', err: '' });
  });
});
