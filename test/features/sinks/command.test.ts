import { describe, expect, it } from 'vitest';
import { renderReport } from '../../../src/core/page/render-report.ts';
import { situationAt } from '../../../src/core/terms/evaluation.ts';
import { evaluateSink, readSinks, sinkSection } from '../../../src/features/sinks/report.ts';
import { sinkReader } from '../../../src/features/sinks/terms.ts';
import { expectEnd, nowUs, printedJson, runCommand } from '../../helpers/fake-io.ts';
import { withStore } from '../../helpers/filled-store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { createSinkCommandContext, openRefusedContext, refusal } from './command-context.ts';
import { startHook } from './hook-server.ts';

/** Lets a sink appear in the data directory. */
const begin = (dataDir: string, sink: string, position = 2) =>
  withStore(dataDir, (store) => store.moveCursor(sinkReader(sink), position, nowUs));

describe('earshot sinks list', () => {
  it('shows the state within 80 columns, and the problems below', async () => {
    const { earshot } = await openRefusedContext();
    const terminal = { isTTY: true, columns: 80, env: { NO_COLOR: '1' } };
    const { out } = await earshot('sinks list', terminal);
    expect(out.replace(/notification waits[\s\S]*/, '…')).toMatchInlineSnapshot(`
      "sink  state    target   waiting  dead     lag  delivered  last (UTC)
      act   ok       command        0     0       -          0  -
      bus   warning  webhook        1     2  60 min          1  2026-05-02 11:00

      !  bus  The sink bus does not deliver: 1 …"
    `);
    expect(out.replaceAll(/\s+/g, ' ')).toMatch(/\(and 1 more\) - .*Next: .*drop bus --waiting/);
    expect(Math.max(...out.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80);
  });

  it('--json has every field, and sinks that are no longer in the file', async () => {
    const { dataDir, earshot } = await openRefusedContext();
    await begin(dataDir, 'old');
    const queued = '2026-05-02T11:00:00.000000Z';
    expect(await printedJson(earshot('sinks list --json'))).toMatchObject([
      {
        ...{ name: 'act', target: 'command', isSetUp: true, position: null, behind: null },
        evaluation: { level: 'ok', text: 'not started', evidence: [], nextStep: null },
      },
      {
        ...{ name: 'bus', target: 'webhook', isSetUp: true, position: 4, behind: 1 },
        ...{ waiting: 1, failed: 0, dead: 2, isReplaying: false, delivered: 1, tooOld: 7 },
        ...{ lastDeliveredAt: queued, oldestWaitingAt: queued },
        ...{ oldestUndeliveredAt: queued, failingSince: null, lastError: refusal, fault: null },
        deadError: refusal,
        evaluation: { level: 'warning' },
      },
      {
        ...{ name: 'old', target: null, isSetUp: false, position: 2, behind: 3 },
        evaluation: { level: 'ok', text: 'delivering' },
      },
    ]);
  });

  it('has the number of notifications that were left out, as the status and the page do', async () => {
    const { earshot, dataDir } = await openRefusedContext();
    const { sinks } = JSON.parse((await earshot('status --json')).out);
    expect(sinks).toMatchObject([{ tooOld: 0 }, { name: 'bus', tooOld: 7 }]);
    const delivery = { names: ['act', 'bus'], fault: null };
    const states = await withStore(dataDir, (store) => readSinks(store, delivery));
    const pages = states.map((sink) => {
      const evaluation = evaluateSink(sink, situationAt(nowUs));
      const section = sinkSection({ ...sink, evaluation }, { failed: [], dead: [] });
      return String(renderReport({ title: 'Sinks', blocks: [section] }, nowUs));
    });
    expect(pages[0]).not.toContain('maxAge');
    expect(pages[1]).toMatch(/too old \(maxAge\)<[^7]*>7</);
  });

  it('reports that there are none, and that no receiver delivers, until one does', async () => {
    const empty = createSinkCommandContext('{}');
    await withStore(empty.dataDir, async () => undefined);
    const none = await expectEnd(empty.earshot('sinks list'), 0, 'docs/sinks.md to add one');
    expect(none.out).toBe('');
    const { dataDir, earshot } = await openRefusedContext();
    const note = 'No receiver has ever run on this data directory, so nothing is delivered.';
    expect((await earshot('sinks list')).err).toContain(note);
    await withStore(dataDir, ({ completeness }) =>
      completeness.recordUptime({ fromUs: nowUs, toUs: nowUs }),
    );
    expect((await earshot('sinks list')).err).toBe('');
  });
});

describe('earshot sinks dead', () => {
  it('shows each with its event, product and full reason, newest first, and the next step', async () => {
    const { earshot } = await openRefusedContext();
    const { out } = await expectEnd(earshot('sinks dead'), 0, '`earshot sinks retry <sink>`');
    expect(out.split('\n')).toEqual([
      `sink  product       ${'reason'.padEnd(refusal.length)}  queued (UTC)      event    attempts`,
      ...Array(2).fill(`bus   S2A_ONE.SAFE  ${refusal}  2026-05-02 11:00  created         1`),
      '',
    ]);
    const one = await expectEnd(earshot('sinks dead bus --limit 1'), 0, 'retry bus`');
    expect(one.out.trimEnd().split('\n')).toHaveLength(2);
    expect(one.err).toContain('The newest 1 of 2 dead letters. All: --limit 2');
    const none = await earshot('sinks dead act');
    expect(none).toMatchObject({ code: 0, out: '', err: 'No dead letters of act.\n' });
    expect(await printedJson(earshot('sinks dead bus --json --limit 1'))).toEqual([
      {
        ...{ id: 3, sink: 'bus', position: 3, productId: 'product-3', replay: null, attempts: 1 },
        ...{ error: refusal, queuedAt: '2026-05-02T11:00:00.000000Z' },
      },
    ]);
  });
});

describe('a sink name', () => {
  it.each(['dead bsu', 'retry bsu', 'drop bsu', 'drop bsu --waiting --yes'])(
    'that is unknown is refused by `%s` with the known names, before any question',
    async (words) => {
      const { dataDir, earshot, counts } = await openRefusedContext();
      await begin(dataDir, 'old');
      const { code, out, err } = await earshot(`sinks ${words}`, { answers: [] });
      expect({ code, out }).toEqual({ code: 2, out: '' });
      expect(err).toBe('earshot: There is no sink bsu. Did you mean bus? Known: act, bus, old.\n');
      expect(await counts()).toMatchObject({ waiting: 1, dead: 2 });
    },
  );

  it('is known when its sink is faulty, or removed from the file', async () => {
    const { dataDir, earshot } = createSinkCommandContext(
      "{ odd: { webhook: 'https://a.example', secretFile: 'gone' } }",
    );
    await begin(dataDir, 'old');
    for (const sink of ['odd', 'old']) {
      await expectEnd(earshot(`sinks dead ${sink}`), 0, `No dead letters of ${sink}.`);
    }
    const { out } = await expectEnd(earshot('sinks list'), 0);
    expect(out).toMatch(/- sinks\.odd\.secretFile: /);
    const faulty = await expectEnd(earshot('sinks replay --sink odd --yes'), 2);
    expect(faulty.err).toMatch(/sinks\.odd\.secretFile: .*gone/);
    await expectEnd(earshot('sinks replay --sink ood --yes'), 2, 'Did you mean odd?');
  });

  it('is refused with a hint when there are no sinks at all, or no file', async () => {
    const { dataDir, earshot } = createSinkCommandContext('{}');
    await withStore(dataDir, async () => undefined);
    const hint = 'No sinks are configured. See docs/sinks.md to add a sink.';
    await expectEnd(earshot('sinks retry bus'), 2, hint);
    const workingDir = temporaryDirectory();
    const none = `There is no earshot.config.ts in ${workingDir}.`;
    await expectEnd(runCommand('sinks test hook', { workingDir }), 2, none);
  });
});

describe('earshot sinks test', () => {
  it('delivers a marked sample that matches the rules, and moves no cursor', async () => {
    const hook = await startHook();
    const { earshot, dataDir } = createSinkCommandContext(
      `{ hook: { webhook: '${hook.url}', subscriptions: ['alps'], events: ['deleted'] } }`,
    );
    const { out } = await expectEnd(earshot('sinks test hook'), 0);
    expect(out).toMatch(/^hook acknowledged the test delivery test_\S+\.\n$/);
    const [received] = hook.received;
    const rules = { subscription: 'alps', event: 'deleted' };
    expect(received?.data).toMatchObject({ test: true, sink: 'hook', ...rules });
    expect(received?.headers['webhook-id']).toMatch(/^test_/);
    expect(await withStore(dataDir, (store) => store.cursor('sink:hook'))).toBeNull();
  });

  it('exits 1 with the answer of a sink that refuses', async () => {
    const hook = await startHook({
      answer: (_hooked, response) => void response.writeHead(422).end('no such table'),
    });
    const { earshot } = createSinkCommandContext(
      `{ hook: { webhook: '${hook.url}' }, act: { command: ['sh', '-c', 'echo hello'] } }`,
    );
    await expectEnd(
      earshot('sinks test hook'),
      1,
      'hook did not acknowledge the test delivery: it',
    );
    expect(hook.received[0]?.data).toMatchObject({ test: true, subscription: 'test' });
    await expectEnd(earshot('sinks test act'), 0, '  stdout: hello\n');
    expect((await earshot('sinks test hok')).err).toContain('Did you mean hook?');
  });
});
