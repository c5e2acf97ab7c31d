/** `earshot sinks list`, `dead` and `test`: progress, dead letters, and a marked sample. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sinkReader } from '../../../src/features/sinks/terms.ts';
import { createAcquireLock } from '../../../src/store/engine/locks.ts';
import { expectEnd, nowUs, printedJson, runCommand } from '../../helpers/fake-io.ts';
import { hourUs, withStore } from '../../helpers/filled-store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { createSinkCommandContext, openRefusedContext, refusal } from './command-context.ts';
import { startHook } from './hook-server.ts';

describe('earshot sinks list', () => {
  it('reports that there are none', async () => {
    const { dataDir, earshot } = createSinkCommandContext('{}');
    await withStore(dataDir, async () => undefined);
    const { code, out, err } = await earshot('sinks list');
    expect({ code, out }).toEqual({ code: 0, out: '' });
    expect(err).toMatch(/^No sinks\. .* See docs\/sinks\.md to add one/);
  });

  it('shows the state within 80 columns, and the problems below', async () => {
    const { earshot } = await openRefusedContext();
    const { out } = await earshot('sinks list', {
      isTTY: true,
      columns: 80,
      env: { NO_COLOR: '1' },
    });
    const [title, act, bus, blank, ...why] = out.trimEnd().split('\n');
    expect(title).toBe('sink  state    target   waiting  dead     lag  delivered  last (UTC)');
    expect(act).toBe('act   ok       command        0     0       -          0  -');
    expect(bus).toBe('bus   warning  webhook        1     2  60 min          1  2026-05-02 11:00');
    expect(blank).toBe('');
    expect(why.join(' ').replaceAll(/\s+/g, ' ')).toMatch(
      /^! bus The sink bus does not deliver: 1 notification waits, .* \(and 1 more\) - .*Next: .*drop bus --waiting/,
    );
    expect(Math.max(...out.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80);
  });

  it('--json has every field, and sinks that are no longer in the file', async () => {
    const { dataDir, earshot } = await openRefusedContext();
    await withStore(dataDir, (store) => store.moveCursor(sinkReader('old'), 2, nowUs));
    const queued = '2026-05-02T11:00:00.000000Z';
    expect(await printedJson(earshot('sinks list --json'))).toMatchObject([
      {
        ...{ name: 'act', target: 'command', isSetUp: true, position: null, behind: null },
        evaluation: { level: 'ok', text: 'not started', evidence: [], nextStep: null },
      },
      {
        ...{ name: 'bus', target: 'webhook', isSetUp: true, position: 4, behind: 1 },
        ...{ waiting: 1, failed: 0, dead: 2, replays: 0, delivered: 1 },
        ...{ lastDeliveredAt: queued, oldestWaitingAt: queued, oldestLiveWaitingAt: queued },
        ...{ oldestUndeliveredAt: queued, failingSince: null, lastError: refusal, fault: null },
        evaluation: { level: 'warning' },
      },
      {
        ...{ name: 'old', target: null, isSetUp: false, position: 2, behind: 3 },
        evaluation: { level: 'ok', text: 'delivering' },
      },
    ]);
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
    const replay = await earshot('sinks replay --sink bus --dry-run');
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
    expect(out).toMatch(/^old +warning +gone +0 +1,288 /m);
    expect(out).toContain('`earshot sinks drop old --waiting`');
    rmSync(join(workingDir, 'earshot.config.ts'));
    const elsewhere = await earshot('sinks list');
    expect(elsewhere.err).toContain(`There is no earshot.config.ts in ${workingDir}.`);
    expect(elsewhere.out).not.toContain('no longer configured');
  });

  it('shows valid sinks next to faulty ones, and faults with their position', async () => {
    const { dataDir, earshot } = createSinkCommandContext(
      `{ bus: { filter: "Naem eq 'x'", command: ['a'] }, act: { command: ['a'] } }`,
    );
    await withStore(dataDir, (store) => store.moveCursor(sinkReader('bus'), 0, nowUs));
    const { out } = await expectEnd(earshot('sinks list'), 0);
    expect(out).toMatch(/^act +ok +command +- /m);
    expect(out).toMatch(/^bus +warning +- +0 /m);
    expect(out).toContain('Nothing is delivered to the sink bus.');
    expect(out).toMatch(/- sinks\.bus\.filter: .*\n[\s\S]*Naem eq 'x'\n +\^{4}\n/m);
    expect(await printedJson(earshot('sinks list --json'))).toMatchObject([
      { name: 'act', fault: null },
      { name: 'bus', fault: expect.stringContaining('sinks.bus.filter') },
    ]);
  });

  it('shows the fault of an unreadable file next to the sinks of the data directory', async () => {
    const { dataDir, earshot } = createSinkCommandContext(`[{ name: 'bus', command: ['a'] }]`);
    await withStore(dataDir, (store) => store.moveCursor(sinkReader('old'), 0, nowUs));
    const form = 'sinks: must be an object with a name for each sink, such as { archive: ';
    const { code, out } = await earshot('sinks');
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^old +ok +- +0 /m) });
    expect(out.replaceAll(/\s+/g, ' ')).toContain(form);
    const json = await earshot('sinks list --json');
    expect(JSON.parse(json.out)).toMatchObject([{ name: 'old', isSetUp: null }]);
    expect(json.err).toContain(form);
  });
});

describe('earshot sinks dead', () => {
  it('shows each with its event, product and full reason, newest first, and the next step', async () => {
    const { earshot } = await openRefusedContext();
    const { out } = await expectEnd(earshot('sinks dead'), 0, '`earshot sinks retry <sink> --all`');
    expect(out.split('\n')).toEqual([
      `id  sink  product       ${'reason'.padEnd(refusal.length)}  queued (UTC)      event    attempts`,
      ...[3, 2].map(
        (n) => ` ${n}  bus   S2A_ONE.SAFE  ${refusal}  2026-05-02 11:00  created         1`,
      ),
      '',
    ]);
    const one = await earshot('sinks dead bus --limit 1');
    expect(one.out).toMatch(
      /^id {2}product +reason .*\n 3 {2}S2A_ONE\.SAFE {2}it answered 422.*\n$/,
    );
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
      expect(err).toBe('earshot: There is no sink bsu. Did you mean bus? Known: act, bus, old.\n');
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
