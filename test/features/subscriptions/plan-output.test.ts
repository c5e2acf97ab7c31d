/** A plan as text and as JSON: every kind of difference, without secrets and control characters. */
import { describe, expect, it } from 'vitest';
import type { Difference, Plan } from '../../../src/admin/differences.ts';
import type { CatalogueSubscription } from '../../../src/admin/subscription-client.ts';
import { writeCredentialsFile } from '../../../src/core/config/endpoint-credentials.ts';
import { differenceJson, planText } from '../../../src/features/subscriptions/register-command.ts';
import { expectEnd } from '../../helpers/fake-io.ts';
import { account, endpointPair, openAccountContext } from './account-context.ts';
import { creating, current, empty, endpoint, publicUrl, replacing } from './plan-samples.ts';

const limits = { runningMax: 2, totalMax: 10 };
/** Adds no colour. */
const plain = (_style: unknown, text: string) => text;

const paused = { ...current, status: 'paused' };
const elsewhere = { ...current, endpoint: 'https://old.example.org/notifications/alps' };
const removed = { ...creating(), desired: null };

/** Title, difference, facts of its text, and actions of its JSON. */
const shown: [string, Difference, string[], string[]][] = [
  ['creates', creating(), ['+ create', 'created, modified', 'SENTINEL-2'], ['create']],
  ['adopts', { ...creating(), current, adopted: true }, ['~ adopt', 'c06f2e68'], ['adopt']],
  [
    'resumes',
    { ...creating(), current: paused, edit: { status: 'running' } },
    ['~ resume', '- status    paused', '+ status    running'],
    ['resume'],
  ],
  [
    'moves and pauses',
    { ...creating(), current: elsewhere, edit: { status: 'paused', endpoint, credentials: true } },
    ['- endpoint  https://old', `+ endpoint  ${endpoint}`],
    ['pause', 'change endpoint', 'change credentials'],
  ],
  [
    'replaces',
    replacing(),
    ['~ replace', '- events    created', "+ filter    Collection/Name eq 'SENTINEL-2'", 'no gap'],
    ['replace'],
  ],
  ['replaces in a full account', replacing({ way: 'delete-first' }), ['the gap is'], ['replace']],
  ['continues a replacement', replacing({ current: paused }), ['deletes   c06f2e68'], ['replace']],
  ['deletes', { ...removed, old: [current] }, ['- delete', 'c06f2e68'], ['delete']],
  ['removes', removed, ['- remove'], ['remove']],
];

describe('a difference', () => {
  it.each(shown)('that %s is shown as text and as JSON', (_title, difference, facts, actions) => {
    const text = planText({ ...empty, differences: [difference] }, limits, plain);
    for (const fact of facts) expect(text).toContain(fact);
    expect(differenceJson(difference, publicUrl)).toMatchObject({ name: 'alps', actions });
  });
});

it('a plan shows its differences in order, then unchanged subscriptions, then the limits', () => {
  const plan: Plan = {
    ...empty,
    differences: [{ ...removed, name: 'old', old: [current] }, creating()],
    unchanged: ['sea', 'ice'],
    obsolete: ['old', 'older'],
    unmanaged: [current, current],
    counts: { running: 1, total: 4 },
  };
  const lines = planText(plan, limits, plain).split('\n');
  expect(lines.filter((line) => /^\S/.test(line))).toEqual([
    '- delete    old',
    '+ create    alps',
    '= unchanged: sea, ice',
    '! not configured, kept: older  (to delete: --prune)',
  ]);
  expect(lines.slice(-2)).toEqual([
    '  Subscriptions: 1 of 2 running, 4 of 10 in total; 2 unmanaged (never changed).',
    '',
  ]);
});

describe('text from the catalogue', () => {
  const nasty = 'a\u001b[2J\r\nb\u0007\u009b1m\u202ec\u2028d';
  const odd: CatalogueSubscription = {
    ...{ ...current, id: nasty, status: nasty, events: [nasty], filter: nasty, endpoint: nasty },
  };
  const edit = { status: 'running', endpoint } as const;

  it.each<[string, Difference]>([
    ['adopted', { ...creating(), current: odd, adopted: true }],
    ['edited', { ...creating(), current: odd, edit, adopted: true }],
    ['replaced', replacing({ old: [odd, odd], current: odd })],
    ['deleted', { ...removed, name: nasty, old: [odd] }],
    ['removed', { ...removed, name: nasty }],
  ])(
    'cannot move the cursor, break a line or reverse the text when it is %s',
    (_title, difference) => {
      const plan = { ...empty, differences: [difference], obsolete: [`${nasty}!`] };
      const text = planText(plan, limits, plain);
      expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202a-\u202e\u2028\u2029]/u);
    },
  );
});

it('a secret is in no plan: a plan shows that credentials change, without the values', async () => {
  const { dataDir, run } = await openAccountContext();
  const register = ['register', '--event', 'created'];
  const created = await expectEnd(run([...register, '--yes']), 0);
  const next = { username: 'earshot-next', password: 'the-next-endpoint-password' };
  await writeCredentialsFile(dataDir, [endpointPair, next]);
  const shown = await run([...register, '--dry-run']);
  expect(shown.out).toContain('~ change credentials default');
  const json = await run([...register, '--dry-run', '--json']);
  expect(JSON.parse(json.out).changes).toMatchObject([{ actions: ['change credentials'] }]);
  for (const { out, err } of [created, shown, json]) {
    for (const pair of [endpointPair, next, account]) {
      expect(out + err).not.toContain(pair.password);
      expect(out + err).not.toContain(pair.username);
    }
  }
});
