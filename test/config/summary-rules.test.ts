/** The summary rules of `earshot.config.ts`: every form they take, and what is refused with where and why. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { subscriptionsFileName } from '../../src/config/subscriptions-file.ts';
import { collection, defineConfig, type EarshotConfig } from '../../src/index.ts';
import { runCommand } from '../cli/fake-io.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { exporting, loadText } from './load-file.ts';

/** Loads subscriptions with these rules, by name. */
function loadRules(rules: Record<string, unknown>) {
  const subscriptions = Object.fromEntries(
    Object.entries(rules).map(([name, summary]) => [name, { summary }]),
  );
  return loadText(exporting({ subscriptions }));
}

const everyDay = { kind: 'digest', window: 'day', per: 'all', areas: [] };

describe('a summary rule', () => {
  it.each<[string, unknown, unknown]>([
    ['off', 'off', { kind: 'off' }],
    ['each', 'each', { kind: 'each', filter: '' }],
    ['digest', 'digest', everyDay],
    ['each, in full', { each: {} }, { kind: 'each', filter: '' }],
    [
      'each that matches',
      { each: { filter: "startswith(Name,'S2')" } },
      { kind: 'each', filter: "startswith(Name,'S2')" },
    ],
    ['digest, in full', { digest: {} }, everyDay],
    ['digest of a week', { digest: { window: 'week' } }, { ...everyDay, window: 'week' }],
    [
      'digest of an hour, for each collection',
      { digest: { window: 'hour', per: 'collection' } },
      { ...everyDay, window: 'hour', per: 'collection' },
    ],
    ['digest for all, said so', { digest: { per: 'all' } }, everyDay],
    [
      'digest for areas, in their order',
      { digest: { areas: { 'Tirol & mehr': "startswith(Name,'S2')", all: '' } } },
      {
        ...everyDay,
        areas: [
          { name: 'Tirol & mehr', filter: "startswith(Name,'S2')" },
          { name: 'all', filter: '' },
        ],
      },
    ],
  ])('can be %s', async (_title, rule, expected) => {
    const { rules, subscriptions } = await loadRules({ a: rule });
    expect(rules).toEqual({ a: expected });
    // Registering compares these: the rule is nobody's business there.
    expect(subscriptions).toEqual([
      { name: 'a', events: ['created'], filter: '', status: 'running' },
    ]);
  });

  it('is left to EARSHOT_SUMMARY where a subscription has none', async () => {
    const text = "export default { subscriptions: { a: {}, b: { summary: 'off' } } };\n";
    const { rules, subscriptions } = await loadText(text);
    expect(rules).toEqual({ b: { kind: 'off' } });
    expect(subscriptions).toMatchObject([{ name: 'a' }, { name: 'b' }]);
  });

  it('can hold filters built in code', async () => {
    const { rules } = await loadText(
      `import { and, cloudCover, collection, defineConfig } from 'earshot';
       const clear = and(collection('SENTINEL-2'), cloudCover.lt(20));
       export default defineConfig({
         subscriptions: {
           a: { summary: { each: { filter: clear } } },
           b: { summary: { digest: { areas: { radar: collection('SENTINEL-1') } } } },
         },
       });\n`,
    );
    expect(rules).toMatchObject({
      a: { filter: expect.stringMatching(/^Collection\/Name eq 'SENTINEL-2' and .*cloudCover/) },
      b: { areas: [{ name: 'radar', filter: "Collection/Name eq 'SENTINEL-1'" }] },
    });
  });

  it('is typed in defineConfig', () => {
    const config: EarshotConfig = {
      subscriptions: {
        a: { summary: 'each' },
        b: { summary: { digest: { window: 'hour', areas: { x: collection('SENTINEL-1') } } } },
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
  const place = 'subscriptions\\.a\\.summary';
  const manyAreas = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`${index}`, '']));
  const nameRule = 'an area needs a name of 1 to 60 printable characters';
  it.each<[string, unknown, string[]]>([
    ['another word', 'all', [`${place}: use one of off, each, digest`]],
    ['a number', 1, [`${place}: use off, each, digest, \\{ each: .*`]],
    ['null', null, [`${place}: use off.*`]],
    ['another field', { dayly: {} }, [`${place}: "dayly" is not known here\\. Use off.*`]],
    [
      'a slip in the form',
      { eac: {} },
      [`${place}: "eac" is not known here\\. Did you mean each\\? Use off.*`],
    ],
    ['both forms', { each: {}, digest: {} }, [`${place}: use off.*`]],
    ['another field beside it', { each: {}, of: 1 }, [`${place}: .*"of".* each, digest`]],
    [
      'no object',
      { each: true },
      [`${place}\\.each: use 'each', or \\{ each: \\{ filter: … \\} \\}`],
    ],
    [
      'no object for a digest',
      { digest: 'day' },
      [`${place}\\.digest: use 'digest', or .*window.*`],
    ],
    [
      'an unknown field',
      { each: { filtre: '' } },
      [`${place}\\.each: "filtre" is not known here\\. Did you mean filter\\? Known are: filter`],
    ],
    [
      'an unknown field of a digest',
      { digest: { area: { x: '' } } },
      [
        `${place}\\.digest: "area" is not known here\\. Did you mean areas\\? Known are: window, .*`,
      ],
    ],
    ['a filter that is no text', { each: { filter: 1 } }, [`${place}\\.each\\.filter: must be.*`]],
    [
      'another window',
      { digest: { window: 'month' } },
      [`${place}\\.digest\\.window: use one of hour, day, week`],
    ],
    [
      'another division',
      { digest: { per: 'tile' } },
      [`${place}\\.digest\\.per: use one of all, collection`],
    ],
    [
      'a division and areas',
      { digest: { per: 'all', areas: { x: '' } } },
      [`${place}\\.digest: per and areas exclude each other.*`],
    ],
    ['no area', { digest: { areas: {} } }, [`${place}\\.digest\\.areas: name an area.*`]],
    ['too many', { digest: { areas: manyAreas } }, [`${place}\\.digest\\.areas: .*100 areas.*`]],
    ...['', '  ', 'a\u0007b', 'a\u202eb', 'a'.repeat(61)].map(
      (name): [string, unknown, string[]] => [
        `the area ${JSON.stringify(name)}`,
        { digest: { areas: { [name]: '' } } },
        [`${place}\\.digest\\.areas\\.[^]*: ${nameRule}`],
      ],
    ),
    [
      'several, all told at once',
      { digest: { window: 1, areas: { x: 1 } } },
      [`${place}\\.digest\\.window: .*`, `${place}\\.digest\\.areas\\.x: must be.*`],
    ],
  ])('(%s) is refused with where and why, as the file is', async (_title, rule, details) => {
    const { path, rules, subscriptions } = await loadRules({ a: rule });
    const refusal = {
      name: 'AppError',
      code: 'configuration',
      message: `${path} has faults.`,
      details: details.map((detail) => expect.stringMatching(new RegExp(`^${detail}\\.$`))),
    };
    expect(rules).toEqual(refusal);
    expect(subscriptions).toEqual(refusal);
  });

  it('in the name of its field is refused with the nearest one', async () => {
    const refused = (text: string) => expect.objectContaining({ details: [text] });
    const slip = await loadText("export default { subscriptions: { a: { sumary: 'each' } } };\n");
    expect(slip.rules).toEqual(
      refused(
        'subscriptions.a: "sumary" is not known here. Did you mean summary? Known are: events, filter, status, summary.',
      ),
    );
    const above = await loadText('export default { subscriptions: {}, zzzzzzzz: {} };\n');
    expect(above.rules).toEqual(
      refused('the default export: "zzzzzzzz" is not known here. Known are: subscriptions, sinks.'),
    );
  });

  it('in its filters is refused with every place, while all else can use the file', async () => {
    const { path, rules, subscriptions } = await loadRules({
      a: { each: { filter: 'Nam eq 1 and' } },
      b: { digest: { areas: { good: "Name eq 'x'", bad: 'cloudCover lt 5', none: '' } } },
      c: 'each',
    });
    expect(rules).toMatchObject({
      code: 'configuration',
      message: `${path} has faults.`,
      details: [
        expect.stringMatching(/^subscriptions\.a\.summary\.each\.filter: error/),
        expect.stringMatching(/^subscriptions\.b\.summary\.digest\.areas\.bad: error/),
      ],
    });
    expect(subscriptions).toMatchObject([{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
  });

  it('in its filters is no matter for a check of the subscription itself', async () => {
    const workingDir = temporaryDirectory();
    const a = { filter: "Name eq 'x'", summary: { each: { filter: 'nonsense' } } };
    const text = `export default ${JSON.stringify({ subscriptions: { a } })};\n`;
    writeFileSync(join(workingDir, subscriptionsFileName), text);
    const ended = await runCommand(['filter', 'check', '--subscription', 'a'], { workingDir });
    expect(ended).toMatchObject({ code: 0, err: expect.stringContaining('is valid') });
  });
});
