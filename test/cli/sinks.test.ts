/** `earshot sinks`: how far each is, dead letters, and what becomes of them. */
import { describe, expect, it } from 'vitest';
import { sinkReader } from '../../src/domain/sinks.ts';
import { nowUs } from './fake-io.ts';
import { hourUs, withStore } from './filled-store.ts';
import { createSinkCommandWorld } from './sink-world.ts';

const two = `{ bus: { webhook: 'https://bus.example.org/hook' }, act: { command: ['act'] } }`;
const refusal = 'it answered 422: the column `cloud` does not exist in the table of products';

/** Of four notifications, `bus` has taken one, refused two, and has one waiting; `act` never began. */
async function openWorld() {
  const world = createSinkCommandWorld(two);
  await world.fillNames(['S2A_1', 'S2A_2', 'S1A_3', 'S2B_4', 'S2B_5']);
  await withStore(world.dataDir, async ({ sinks }) => {
    const items = [1, 2, 3, 4].map((position) => ({ position, productId: `product-${position}` }));
    const stream = { sink: 'bus', replayId: null, after: 0, upTo: 4 };
    await sinks.enqueue({ ...stream, items, atUs: nowUs - hourUs });
    const due = await sinks.due({ sink: 'bus', nowUs, limit: 9 });
    await sinks.settle(
      due.slice(0, 3).map(({ id }) => {
        if (id === due[0]?.id) return { id, outcome: 'taken' } as const;
        return { id, outcome: 'dead', error: refusal } as const;
      }),
    );
  });
  const counts = async () => (await withStore(world.dataDir, ({ sinks }) => sinks.counts()))[0];
  return { ...world, counts };
}

describe('earshot sinks list', () => {
  it('says where there are none', async () => {
    const { dataDir, earshot } = createSinkCommandWorld('{}');
    await withStore(dataDir, async () => undefined);
    const { code, out, err } = await earshot(['sinks', 'list']);
    expect({ code, out }).toEqual({ code: 0, out: '' });
    expect(err).toBe('There are no sinks. docs/sinks.md shows how one is written.\n');
  });

  it('shows how far each is, within 80 columns, and below why the last try failed', async () => {
    const { earshot } = await openWorld();
    const { out } = await earshot(['sinks', 'list'], {
      isTTY: true,
      columns: 80,
      env: { NO_COLOR: '1' },
    });
    const [title, act, bus, blank, ...why] = out.trimEnd().split('\n');
    expect(title).toBe('sink  target   behind  waiting  dead  replays  oldest (UTC)');
    expect(act).toBe('act   command       -        0     0        0  -');
    expect(bus).toBe('bus   webhook       1        1     2        0  2026-05-02 11:00');
    expect(blank).toBe('');
    expect(why.join(' ').replaceAll(/\s+/g, ' ')).toBe(` bus does not take it: ${refusal}`);
    expect(Math.max(...out.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80);
  });

  it('--json has every field, and sinks that the file no longer has', async () => {
    const { dataDir, earshot } = await openWorld();
    await withStore(dataDir, (store) => store.moveCursor(sinkReader('old'), 2, nowUs));
    const { out } = await earshot(['sinks', 'list', '--json']);
    const idle = { waiting: 0, dead: 0, oldestWaiting: null, error: null, replays: 0 };
    expect(JSON.parse(out)).toEqual([
      { sink: 'act', target: 'command', behind: null, ...idle },
      {
        sink: 'bus',
        target: 'webhook',
        behind: 1,
        waiting: 1,
        dead: 2,
        oldestWaiting: '2026-05-02T11:00:00.000000Z',
        error: refusal,
        replays: 0,
      },
      { sink: 'old', target: null, behind: 3, ...idle },
    ]);
  });

  it('tells a fault of the file with its place', async () => {
    const { earshot } = createSinkCommandWorld(
      `{ bus: { filter: "Naem eq 'x'", command: ['a'] } }`,
    );
    const { code, err } = await earshot(['sinks', 'list']);
    expect(code).toBe(2);
    expect(err).toMatch(/sinks\.bus\.filter: [\s\S]*Naem eq 'x'\n +\^{4}/);
  });
});

describe('earshot sinks dead', () => {
  it('shows each with its reason whole, newest first', async () => {
    const { earshot } = await openWorld();
    const { code, out, err } = await earshot(['sinks', 'dead']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toBe(
      [3, 2]
        .map((n) => `${n}  bus  product-${n}  1 try, queued 2026-05-02 11:00\n    ${refusal}\n`)
        .join(''),
    );
    expect((await earshot(['sinks', 'dead', 'bus', '--limit', '1'])).out).not.toContain('ct-2');
    const none = await earshot(['sinks', 'dead', 'act']);
    expect(none).toMatchObject({ code: 0, out: '', err: 'There are no dead letters of act.\n' });
  });

  it('--json has every field', async () => {
    const { earshot } = await openWorld();
    const { out } = await earshot(['sinks', 'dead', 'bus', '--json', '--limit', '1']);
    expect(JSON.parse(out)).toEqual([
      {
        id: 3,
        sink: 'bus',
        position: 3,
        productId: 'product-3',
        replay: null,
        attempts: 1,
        error: refusal,
        queuedAt: '2026-05-02T11:00:00.000000Z',
      },
    ]);
  });
});

describe('earshot sinks retry and drop', () => {
  it('set named dead letters, or all, to wait again', async () => {
    const { earshot, counts } = await openWorld();
    const one = await earshot(['sinks', 'retry', 'bus', '2']);
    expect(one).toMatchObject({ code: 0, out: '' });
    expect(one.err).toBe('1 dead letter of bus will be handed over again.\n');
    expect(await counts()).toMatchObject({ waiting: 2, dead: 1 });
    expect((await earshot(['sinks', 'retry', 'bus', '--all'])).code).toBe(0);
    expect(await counts()).toMatchObject({ waiting: 3, dead: 0 });
    const none = await earshot(['sinks', 'retry', 'bus', '--all']);
    expect(none).toMatchObject({ code: 1, err: expect.stringContaining('earshot sinks dead bus') });
  });

  it('want ids or --all, not both, and ids that are numbers', async () => {
    const { earshot, counts } = await openWorld();
    for (const words of [
      ['retry', 'bus'],
      ['retry', 'bus', '2', '--all'],
      ['drop', 'bus'],
    ]) {
      const { code, err } = await earshot(['sinks', ...words]);
      expect(code).toBe(2);
      expect(err).toContain('--all');
    }
    expect((await earshot(['sinks', 'retry', 'bus', '2,x'])).code).toBe(2);
    expect((await earshot(['sinks', 'drop', 'bus', '2', '--waiting', '--yes'])).code).toBe(2);
    expect(await counts()).toMatchObject({ waiting: 1, dead: 2 });
  });

  it('drop asks first, and without a terminal wants --yes', async () => {
    const { earshot, counts } = await openWorld();
    expect((await earshot(['sinks', 'drop', 'bus', '--all'])).code).toBe(2);
    const no = await earshot(['sinks', 'drop', 'bus', '--all'], { answers: ['n'] });
    expect(no.err).toContain('Forget all dead letters of bus? The notifications stay in the log.');
    expect(no.code).toBe(1);
    expect(await counts()).toMatchObject({ waiting: 1, dead: 2 });
    const one = await earshot(['sinks', 'drop', 'bus', '3', '--yes']);
    expect(one).toMatchObject({ code: 0, err: 'Forgotten: 1 dead letter of bus.\n' });
    const waiting = await earshot(['sinks', 'drop', 'bus', '--waiting'], { answers: ['yes'] });
    expect(waiting.err).toContain('Forgotten: 1 waiting item of bus.');
    expect(await counts()).toMatchObject({ waiting: 0, dead: 1 });
  });
});
