/** Summary rules of `earshot.config.ts`: all forms, and refusals with place and reason. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { subscriptionsFileName } from '../../../src/core/config/subscriptions-file.ts';
import { collection, defineConfig, type EarshotConfig } from '../../../src/index.ts';
import { exporting, loadText, refusalAt } from '../../core/config/load-file.ts';
import { runCommand } from '../../helpers/fake-io.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

/** Loads subscriptions with these rules, by name. */
function loadRules(rules: Record<string, unknown>) {
  const subscriptions = Object.fromEntries(
    Object.entries(rules).map(([name, summary]) => [name, { summary }]),
  );
  return loadText(exporting({ subscriptions }));
}

const plain = { filter: '', window: 'day' };
const each = { ...plain, kind: 'each' };
const digest = { ...plain, kind: 'digest' };
const filter = "startswith(Name,'S2')";

describe('a summary rule', () => {
  it.each<[unknown, unknown]>([
    ['off', { ...plain, kind: 'off' }],
    ['each', each],
    ['digest', digest],
    [{ each: {} }, each],
    [{ each: { filter } }, { ...each, filter }],
    [{ digest: {} }, digest],
    [{ digest: { window: 'week', filter } }, { ...digest, window: 'week', filter }],
  ])('can be %j', async (rule, expected) => {
    const { rules, subscriptions } = await loadRules({ a: rule });
    expect(rules).toEqual({ a: expected });
    // Registering compares these; the rule has no effect there.
    expect(subscriptions).toEqual([
      { name: 'a', type: 'push', events: ['created'], filter: '', status: 'running' },
    ]);
  });

  it('falls back to EARSHOT_SUMMARY where a subscription has none', async () => {
    const text = "export default { subscriptions: { a: {}, b: { summary: 'off' } } };\n";
    const { rules, subscriptions } = await loadText(text);
    expect(rules).toMatchObject({ b: { kind: 'off' } });
    expect(subscriptions).toMatchObject([{ name: 'a' }, { name: 'b' }]);
  });

  it('can contain filters built in code', async () => {
    const { rules } = await loadText(
      `import { and, cloudCover, collection, defineConfig } from 'earshot';
       const clear = and(collection('SENTINEL-2'), cloudCover.lt(20));
       export default defineConfig({
         subscriptions: {
           a: { summary: { each: { filter: clear } } },
           b: { summary: { digest: { filter: collection('SENTINEL-1') } } },
         },
       });\n`,
    );
    expect(rules).toMatchObject({
      a: { filter: expect.stringMatching(/^Collection\/Name eq 'SENTINEL-2' and .*cloudCover/) },
      b: { filter: "Collection/Name eq 'SENTINEL-1'" },
    });
  });

  it('is typed in defineConfig', () => {
    const config: EarshotConfig = {
      subscriptions: {
        a: { summary: 'each' },
        b: { summary: { digest: { window: 'hour', filter: collection('SENTINEL-1') } } },
        c: { summary: { each: { filter: "Name eq 'a'" } } },
      },
    };
    expect(defineConfig(config)).toBe(config);
    // @ts-expect-error: a rule that is none
    defineConfig({ subscriptions: { a: { summary: 'all' } } });
    // @ts-expect-error: a window that is none
    defineConfig({ subscriptions: { a: { summary: { digest: { window: 'month' } } } } });
    // @ts-expect-error: a field that is none
    defineConfig({ subscriptions: { a: { summary: { each: { filtr: '' } } } } });
  });
});

describe('a summary rule with faults', () => {
  it.each<[rule: unknown, ...problems: string[]]>([
    ['all', ': use one of off, each, digest'],
    [1, ': use off, each, digest, { each: …'],
    [null, ': use off…'],
    [{ dayly: {} }, ': "dayly" is not a known field. Use off…'],
    [{ eac: {} }, ': "eac" is not a known field. Did you mean each? Use off…'],
    [{ each: {}, digest: {} }, ': use off…'],
    [{ each: {}, of: 1 }, ': "of" is not a known field. Known fields: each, digest'],
    [{ each: true }, ".each: use 'each', or { each: { filter: … } }"],
    [{ digest: 'day' }, ".digest: use 'digest', or { digest: { window: … } }"],
    [
      { each: { filtre: '' } },
      '.each: "filtre" is not a known field. Did you mean filter? Known fields: filter',
    ],
    [{ each: { filter: 1 } }, '.each.filter: must be…'],
    [{ digest: { window: 'month' } }, '.digest.window: use one of hour, day, week'],
    [
      { digest: { window: 1, filter: 1 } },
      '.digest.window: use one of …',
      '.digest.filter: must be…',
    ],
  ])('(%j) is refused with place and reason, as the file is', async (rule, ...problems) => {
    const { path, rules, subscriptions } = await loadRules({ a: rule });
    const refusal = refusalAt(path, 'subscriptions.a.summary', problems);
    expect(rules).toEqual(refusal);
    expect(subscriptions).toEqual(refusal);
  });

  it('with a wrong field name is refused with the nearest name', async () => {
    const refused = (text: string) => expect.objectContaining({ details: [text] });
    const slip = await loadText("export default { subscriptions: { a: { sumary: 'each' } } };\n");
    expect(slip.rules).toEqual(
      refused(
        'subscriptions.a: "sumary" is not a known field. Did you mean summary? Known fields: type, events, filter, status, summary.',
      ),
    );
    const above = await loadText('export default { subscriptions: {}, zzzzzzzz: {} };\n');
    expect(above.rules).toEqual(
      refused(
        'the default export: "zzzzzzzz" is not a known field. Known fields: subscriptions, sinks.',
      ),
    );
  });

  it('with faulty filters is refused with every place, but does not affect other readers of the file', async () => {
    const { path, rules, subscriptions } = await loadRules({
      a: { each: { filter: 'Nam eq 1 and' } },
      b: { digest: { filter: 'cloudCover lt 5' } },
      c: 'each',
    });
    expect(rules).toMatchObject({
      code: 'configuration',
      message: `${path} is invalid.`,
      details: [
        expect.stringMatching(/^subscriptions\.a\.summary\.each\.filter: error/),
        expect.stringMatching(/^subscriptions\.b\.summary\.digest\.filter: error/),
      ],
    });
    expect(subscriptions).toMatchObject([{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
  });

  it('with faulty filters does not affect a check of the subscription itself', async () => {
    const workingDir = temporaryDirectory();
    const a = { filter: "Name eq 'x'", summary: { each: { filter: 'nonsense' } } };
    const text = `export default ${JSON.stringify({ subscriptions: { a } })};\n`;
    writeFileSync(join(workingDir, subscriptionsFileName), text);
    const ended = await runCommand(['filter', 'check', '--subscription', 'a'], { workingDir });
    expect(ended).toMatchObject({ code: 0, err: expect.stringContaining('is valid') });
  });
});
