/** `earshot sinks list`, `dead` and `test`: progress, dead letters, and a marked sample. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sinkReader } from '../../src/domain/sinks.ts';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { startHook } from '../sinks/hook-server.ts';
import { expectEnd, nowUs, printedJson, runCommand } from './fake-io.ts';
import { hourUs, withStore } from './filled-store.ts';
import { createSinkCommandContext, openRefusedContext, refusal } from './sink-context.ts';

describe('earshot sinks list', () => {
  it('reports that there are none', async () => {
    const { dataDir, earshot } = createSinkCommandContext('{}');
    await withStore(dataDir, async () => undefined);
    const { code, out, err } = await earshot('sinks list');
    expect({ code, out }).toEqual({ code: 0, out: '' });
    expect(err).toBe('No sinks. See docs/sinks.md to add one.\n');
  });

  it('shows progress within 80 columns, and refused notifications below', async () => {
    const { earshot } = await openRefusedContext();
    const { out } = await earshot('sinks list', {
      isTTY: true,
      columns: 80,
      env: { NO_COLOR: '1' },
    });
    const [title, act, bus, blank, ...why] = out.trimEnd().split('\n');
    expect(title).toBe(
      'sink  target   behind  waiting  dead  replays  lag (s)  delivered  last (UTC)',
    );
    expect(act).toBe('act   command       -        0     0        0        -          0  -');
    expect(bus).toBe(
      'bus   webhook       1        1     2        0    3,600          1  05-02 11:00',
    );
    expect(blank).toBe('');
    expect(why.join(' ').replaceAll(/\s+/g, ' ')).toBe(
      ` bus has 2 dead letters. Last error: ${refusal}. To list: \`earshot sinks dead bus\`.`,
    );
    expect(Math.max(...out.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80);
  });

  it('--json has every field, and sinks that are no longer in the file', async () => {
    const { dataDir, earshot } = await openRefusedContext();
    await withStore(dataDir, (store) => store.moveCursor(sinkReader('old'), 2, nowUs));
    const { out } = await earshot('sinks list --json');
    const idle = {
      ...{ waiting: 0, failed: 0, dead: 0, oldestWaiting: null, error: null, replays: 0 },
      ...{ failingSince: null, trouble: null },
      ...{ delivered: 0, lastDelivery: null, problems: [] },
    };
    expect(JSON.parse(out)).toEqual([
      { sink: 'act', target: 'command', behind: null, lag: null, ...idle },
      {
        sink: 'bus',
        target: 'webhook',
        behind: 1,
        waiting: 1,
        failed: 0,
        dead: 2,
        oldestWaiting: '2026-05-02T11:00:00.000000Z',
        error: refusal,
        failingSince: null,
        trouble: null,
        delivered: 1,
        lastDelivery: '2026-05-02T11:00:00.000000Z',
        lag: 3_600,
        replays: 0,
        problems: [],
      },
      { sink: 'old', target: null, behind: 3, lag: 10_800, ...idle },
    ]);
  });

  it('shows why a notification is queued, separate from the permanently refused ones', async () => {
    const { dataDir, earshot } = await openRefusedContext();
    await withStore(dataDir, async ({ sinks }) => {
      const [item] = await sinks.due({ sink: 'bus', nowUs, limit: 1 });
      const failed = { outcome: 'postponed', error: 'it is away', counts: false } as const;
      await sinks.settle([{ ...failed, id: item?.id ?? 0, nextAttemptAtUs: nowUs + 1 }]);
    });
    const { out } = await earshot('sinks list');
    expect(out).toMatch(
      / {2}bus: failing since 2026-05-02 \d\d:00 UTC, 1 queued, last error: it is away\.\n/,
    );
    expect(out).toContain(`  bus has 2 dead letters. Last error: ${refusal}. To list`);
  });

  it('shows at once that nothing was delivered yet', async () => {
    const { dataDir, earshot } = createSinkCommandContext("{ bus: { command: ['a'] } }");
    await withStore(dataDir, async ({ sinks }) => {
      const from = { sink: 'bus', replayId: null, after: 0, upTo: 1 };
      const items = [{ position: 1, productId: 'product-1' }];
      await sinks.enqueue({ ...from, items, atUs: nowUs - hourUs });
    });
    expect((await earshot('sinks list')).out).toContain(
      '  bus: nothing delivered yet, 1 queued.\n',
    );
  });

  it('reports that no receiver delivers, until one does', async () => {
    const { dataDir, earshot } = await openRefusedContext();
    const note = 'No receiver is delivering to sinks. Start the receiver: `earshot start`.';
    expect((await earshot('sinks list')).err).toContain(note);
    const release = await createAcquireLock(dataDir)('sinks', { waitMs: 0 });
    onTestFinished(release);
    expect((await earshot('sinks list')).err).toBe('');
    release();
    expect((await earshot('sinks list')).err).toContain(note);
  });

  it('names unknown subscriptions', async () => {
    const { earshot, fillNames } = createSinkCommandContext(
      "{ bus: { command: ['a'], subscriptions: ['alsp'] } }",
    );
    await fillNames(['S2A_1']);
    const warning = 'sinks.bus.subscriptions: unknown subscription alsp.';
    expect((await earshot('sinks list')).err).toContain(warning);
    const replay = await earshot('replay --sink bus --dry-run');
    expect(replay.err).toContain(`Warning: ${warning} No subscription is known yet.`);
  });

  it('groups digits of thousands, and says how to remove the rest of a removed sink', async () => {
    const { dataDir, earshot, workingDir } = await openRefusedContext();
    await withStore(dataDir, async ({ sinks }) => {
      const items = Array.from({ length: 1_288 }, () => ({ position: 5, productId: 'product-5' }));
      const stream = { sink: 'old', replayId: null, after: 0, upTo: 5 };
      await sinks.enqueue({ ...stream, items, atUs: nowUs - hourUs });
    });
    const { out } = await earshot('sinks list');
    expect(out).toMatch(/^old +gone +0 +1,288 /m);
    expect(out).toContain(
      'old is no longer in earshot.config.ts. To drop its queue: `earshot sinks drop old --waiting`.',
    );
    expect(out).not.toContain('bus is no longer');
    rmSync(join(workingDir, 'earshot.config.ts'));
    const elsewhere = await earshot('sinks list');
    expect(elsewhere.err).toContain(`There is no earshot.config.ts in ${workingDir}.`);
    expect(elsewhere.out).not.toContain('is no longer');
  });

  it('shows valid sinks next to faulty ones, and faults with their position', async () => {
    const { dataDir, earshot } = createSinkCommandContext(
      `{ bus: { filter: "Naem eq 'x'", command: ['a'] }, act: { command: ['a'] } }`,
    );
    await withStore(dataDir, (store) => store.moveCursor(sinkReader('bus'), 0, nowUs));
    const { out } = await expectEnd(earshot('sinks list'), 0);
    expect(out).toMatch(/^act +command +- /m);
    expect(out).toMatch(/^bus +faulty +0 /m);
    expect(out).toContain(
      '  bus has faults and is not started. Fix the sink in earshot.config.ts:',
    );
    expect(out).toMatch(/^ {4}sinks\.bus\.filter: .*\n[\s\S]*Naem eq 'x'\n {6}\^{4}\n/m);
    expect(await printedJson(earshot('sinks list --json'))).toMatchObject([
      { sink: 'act', target: 'command', problems: [] },
      { sink: 'bus', target: 'faulty', problems: [expect.stringContaining('sinks.bus.filter')] },
    ]);
  });

  it('prints the faults of an unreadable file next to the sinks of the data directory', async () => {
    const { dataDir, earshot } = createSinkCommandContext(`[{ name: 'bus', command: ['a'] }]`);
    expect(await earshot('sinks list')).toMatchObject({ code: 2, out: '' });
    await withStore(dataDir, async () => undefined);
    const form = '  - sinks: must be an object with a name for each sink, such as { archive: ';
    const empty = await earshot('sinks list');
    expect(empty).toMatchObject({ code: 0, out: '', err: expect.stringContaining(form) });
    expect(empty.err).toContain('The data directory has no sinks.');
    await withStore(dataDir, (store) => store.moveCursor(sinkReader('old'), 0, nowUs));
    const { code, out, err } = await earshot('sinks');
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^old +unknown +0 /m) });
    expect(err).toContain(form);
    const json = await earshot('sinks list --json');
    expect(JSON.parse(json.out)).toMatchObject([{ sink: 'old', target: 'unknown' }]);
    expect(json.err).toContain(form);
  });
});

describe('earshot sinks dead', () => {
  it('shows each with its event, product and full reason, newest first, and the next step', async () => {
    const { earshot } = await openRefusedContext();
    const { out } = await expectEnd(earshot('sinks dead'), 0, '`earshot sinks retry <sink> --all`');
    expect(out.split('\n')).toEqual([
      'id  sink  queued (UTC)      attempts  event    product       reason',
      ...[3, 2].map(
        (n) => ` ${n}  bus   2026-05-02 11:00         1  created  S2A_ONE.SAFE  ${refusal}`,
      ),
      '',
    ]);
    const one = await earshot('sinks dead bus --limit 1');
    expect(one.out.split('\n')).toEqual([
      'id  queued (UTC)      attempts  event    product       reason',
      ` 3  2026-05-02 11:00         1  created  S2A_ONE.SAFE  ${refusal}`,
      '',
    ]);
    expect(one.err).toContain('The newest 1 of 2 dead letters. All: --limit 2');
    expect(one.err).toContain('`earshot sinks retry bus --all`');
    const none = await earshot('sinks dead act');
    expect(none).toMatchObject({ code: 0, out: '', err: 'No dead letters of act.\n' });
  });

  it('shows 50 by default, and all as JSON', async () => {
    const { dataDir, earshot } = await openRefusedContext();
    await withStore(dataDir, async ({ sinks }) => {
      const items = Array.from({ length: 60 }, () => ({ position: 5, productId: 'product-5' }));
      await sinks.enqueue({ sink: 'act', replayId: null, after: 0, upTo: 5, items, atUs: 0 });
      const ids: number[] = [];
      for await (const { id } of sinks.items({ sink: 'act', state: 'waiting' })) ids.push(id);
      await sinks.settle(ids.map((id) => ({ id, outcome: 'dead', error: 'no' })));
    });
    const { out, err } = await earshot('sinks dead act');
    expect(out.trimEnd().split('\n')).toHaveLength(51);
    expect(err).toContain('The newest 50 of 60 dead letters.');
    expect(await printedJson(earshot('sinks dead act --json'))).toHaveLength(60);
  });

  it('--json has every field', async () => {
    const { earshot } = await openRefusedContext();
    expect(await printedJson(earshot('sinks dead bus --json --limit 1'))).toEqual([
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

describe('an unknown sink name', () => {
  it.each([['dead'], ['retry', '--all'], ['drop', '--all'], ['drop', '--waiting', '--yes']])(
    'is refused by %s with the known names, before any question',
    async (command, ...flags) => {
      const { dataDir, earshot, counts } = await openRefusedContext();
      await withStore(dataDir, (store) => store.moveCursor(sinkReader('old'), 2, nowUs));
      const { code, out, err } = await earshot(['sinks', command, 'bsu', ...flags], {
        answers: [],
      });
      expect({ code, out }).toEqual({ code: 2, out: '' });
      expect(err).toBe(
        'earshot: There is no sink bsu. Did you mean bus? Known sinks: act, bus, old.\n',
      );
      expect(await counts()).toMatchObject({ waiting: 1, dead: 2 });
    },
  );

  it('is distinguished from a faulty sink, and from one that was removed from the file', async () => {
    const { dataDir, earshot } = createSinkCommandContext(
      "{ odd: { webhook: 'https://a.example', secretFile: 'gone' } }",
    );
    await withStore(dataDir, (store) => store.moveCursor(sinkReader('old'), 2, nowUs));
    for (const sink of ['odd', 'old']) {
      expect(await earshot(['sinks', 'dead', sink])).toMatchObject({
        code: 0,
        err: `No dead letters of ${sink}.\n`,
      });
    }
    const list = await earshot('sinks list');
    expect(list).toMatchObject({ code: 0, out: expect.stringContaining('sinks.odd.secretFile') });
  });

  it('is refused with a hint when there are no sinks at all', async () => {
    const { dataDir, earshot } = createSinkCommandContext('{}');
    await withStore(dataDir, async () => undefined);
    const { err } = await earshot('sinks retry bus --all');
    expect(err).toBe('earshot: No sinks are configured. See docs/sinks.md to add a sink.\n');
  });

  it.each([
    ['in the folder of a receiver', { EARSHOT_INDEX: 'on' }, ''],
    ['elsewhere', {}, 'Run the command in the folder of the receiver. '],
  ])('is refused without a file %s', async (_, env, where) => {
    const workingDir = temporaryDirectory();
    const { code, err } = await runCommand('sinks test hook', { workingDir, env });
    expect(code).toBe(2);
    expect(err).toContain(
      `earshot: No sinks are configured. There is no earshot.config.ts in ${workingDir}. ${where}See docs/sinks.md`,
    );
  });
});

describe('earshot sinks test', () => {
  it('delivers the newest matching notification, marked, and moves no cursor', async () => {
    const hook = await startHook();
    const { earshot, fillNames, dataDir } = createSinkCommandContext(
      `{ hook: { webhook: '${hook.url}', filter: "startswith(Name,'S2A')" } }`,
    );
    await fillNames(['S2A_1', 'S2A_2', 'S2B_3']);
    expect(await earshot('sinks test hook')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^hook acknowledged the test delivery test_\S+\.\n$/),
    });
    const [received] = hook.received;
    expect(received?.data).toMatchObject({ test: true, position: 2, value: { Name: 'S2A_2' } });
    expect(received?.headers['webhook-id']).toMatch(/^test_/);
    const cursor = await withStore(dataDir, (store) => store.cursor('sink:hook'));
    expect(cursor).toBeNull();
  });

  it('delivers a built-in sample without a log, and exits 1 with the answer of a refusing sink', async () => {
    const hook = await startHook({
      answer: (_hooked, response) => void response.writeHead(422).end('no such table'),
    });
    const { earshot } = createSinkCommandContext(
      `{ hook: { webhook: '${hook.url}' }, act: { command: ['sh', '-c', 'echo hello'] } }`,
    );
    const refused = await earshot('sinks test hook');
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain('hook did not acknowledge the test delivery: it answered 422');
    expect(hook.received[0]?.data).toMatchObject({ test: true, subscription: 'test' });
    const acted = await earshot('sinks test act');
    expect(acted).toMatchObject({ code: 0, err: expect.stringContaining('  stdout: hello\n') });
    expect((await earshot('sinks test hok')).err).toContain('Did you mean hook?');
  });
});
