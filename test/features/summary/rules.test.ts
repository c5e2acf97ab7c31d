import { describe, expect, it } from 'vitest';
import { dayUs } from '../../../src/core/terms/dates.ts';
import { ruleFilterFindings } from '../../../src/features/summary/rules.ts';
import { plainSummaryRule } from '../../../src/features/summary/terms.ts';
import { exporting, loadText, refusalAt } from '../../core/config/load-file.ts';

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

it.each<[unknown, unknown]>([
  ['off', { ...plain, kind: 'off' }],
  ['each', each],
  ['digest', digest],
  [{ each: {} }, each],
  [{ each: { filter } }, { ...each, filter }],
  [{ each: { maxAge: '30d' } }, { ...each, maxAgeUs: 30 * dayUs }],
  [{ digest: {} }, digest],
  [{ digest: { window: 'week', filter } }, { ...digest, window: 'week', filter }],
  [{ digest: { maxAge: '36h' } }, { ...digest, maxAgeUs: 1.5 * dayUs }],
])('a summary rule can be %j', async (rule, expected) => {
  const { rules, subscriptions } = await loadRules({ a: rule });
  expect(rules).toEqual({ a: expected });
  // Registering compares these; the rule has no effect there.
  expect(subscriptions).toEqual([
    { name: 'a', type: 'push', events: ['created'], filter: '', status: 'running' },
  ]);
});

it('has no finding about a filter that is left out', () => {
  const rules = ['each', 'digest'].map((kind) => [kind, plainSummaryRule(kind as 'each')] as const);
  expect(ruleFilterFindings(new Map(rules))).toEqual([]);
});

describe('a summary rule with faults', () => {
  it.each<[rule: unknown, ...problems: string[]]>([
    ['all', ': use off, each, digest, { each: …'],
    [null, ': use off…'],
    [{ eac: {} }, ': unknown field "eac"', ': use off…'],
    [{ each: {}, digest: {} }, ': use off…'],
    [{ each: {}, of: 1 }, ': unknown field "of"'],
    [{ each: true }, ".each: use 'each', or { each: { filter: … } }"],
    [{ digest: 'day' }, ".digest: use 'digest', or { digest: { window: … } }"],
    [{ each: { maxAge: 30 } }, '.each.maxAge: …'],
    [
      { each: { maxAge: '30' } },
      '.each.maxAge: must be an age in hours, days or weeks, such as 36h, 365d or 52w',
    ],
    [{ each: { filtre: '' } }, '.each: unknown field "filtre"'],
    [
      { digest: { window: 1, filter: 1 } },
      '.digest.window: Invalid option…',
      '.digest.filter: must be…',
    ],
  ])('(%j) is refused with place and reason, as the file is', async (rule, ...problems) => {
    const { path, rules, subscriptions } = await loadRules({ a: rule });
    const refusal = refusalAt(path, 'subscriptions.a.summary', problems);
    expect(rules).toEqual(refusal);
    expect(subscriptions).toEqual(refusal);
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
});
