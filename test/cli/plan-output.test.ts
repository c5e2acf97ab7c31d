/** A plan as text and as JSON: every kind of step, without secrets and control characters. */
import { describe, expect, it } from 'vitest';
import type { Plan, PlanStep } from '../../src/admin/plan.ts';
import type { CatalogueSubscription } from '../../src/admin/subscription-client.ts';
import { painter } from '../../src/cli/output.ts';
import { planText, stepJson } from '../../src/cli/plan-output.ts';
import { writeCredentialsFile } from '../../src/config/endpoint-credentials.ts';
import { account, endpointPair, openAccountContext } from './account-context.ts';
import { expectEnd } from './fake-io.ts';
import {
  current,
  desired,
  empty,
  endpoint,
  publicUrl,
  replacing,
  shownSteps,
} from './plan-samples.ts';

const limits = { runningMax: 2, totalMax: 10 };
/** Adds no colour. */
const plain = (_style: unknown, text: string) => text;

/** Returns the lines of a plan with one step, without the last line (the limits). */
function linesOf(step: PlanStep): string[] {
  const lines = planText({ ...empty, steps: [step] }, limits, plain).split('\n');
  expect(lines.at(-1)).toBe('');
  expect(lines.at(-2)).toMatch(/^ {2}Subscriptions: 0 of 2 running/);
  return lines.slice(0, -2);
}

describe('a step', () => {
  it.each(shownSteps)('%s is shown as text and as JSON', (_title, step, lines, json) => {
    expect(linesOf(step)).toEqual(lines);
    expect(JSON.parse(JSON.stringify(stepJson(step, publicUrl)))).toEqual(json);
  });
});

describe('a plan', () => {
  it('shows its steps in order, then unchanged subscriptions, then the limits', () => {
    const plan: Plan = {
      steps: [
        { kind: 'delete', name: 'old', current },
        { kind: 'forget', name: 'old' },
        { kind: 'create', desired },
      ],
      unchanged: ['sea', 'ice'],
      obsolete: ['old', 'older'],
      unmanaged: [current, current],
      counts: { running: 1, total: 4 },
    };
    const lines = planText(plan, limits, plain).split('\n');
    expect(lines.filter((line) => /^\S/.test(line))).toEqual([
      '- delete    old',
      '- forget    old',
      '+ create    alps',
      '= unchanged: sea, ice',
      '! not configured, kept: older  (to delete: --prune)',
    ]);
    expect(lines.slice(-2)).toEqual([
      '  Subscriptions: 1 of 2 running, 4 of 10 in total; 2 unmanaged (never changed).',
      '',
    ]);
  });

  it('without changes prints only the limits', () => {
    expect(planText(empty, { runningMax: 1, totalMax: 3 }, plain)).toBe(
      '  Subscriptions: 0 of 1 running, 0 of 3 in total.\n',
    );
  });

  it('is coloured on a terminal, with the same text', () => {
    const terminal = { write: () => true, once: () => undefined, isTTY: true };
    const steps: PlanStep[] = [{ kind: 'create', desired }, replacing()];
    const coloured = planText({ ...empty, steps }, limits, painter({ env: {} }, terminal));
    expect(coloured).toContain('\u001b[32m+\u001b[39m');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours consist of them
    const bare = coloured.replaceAll(/\u001b\[\d+m/g, '');
    expect(bare).toBe(planText({ ...empty, steps }, limits, plain));
  });
});

describe('text from the catalogue', () => {
  const nasty = 'a\u001b[2J\r\nb\u0007\u009b1m\u202ec\u2028d';
  const odd: CatalogueSubscription = {
    ...current,
    id: nasty,
    status: nasty,
    events: [nasty],
    filter: nasty,
    endpoint: nasty,
  };
  const edit = { status: 'running', endpoint } as const;

  it.each<[string, PlanStep, number]>([
    ['adopted', { kind: 'adopt', desired, current: odd }, 1],
    ['edited', { kind: 'edit', desired, current: odd, edit, adopted: true }, 3],
    ['replaced', replacing({ old: [odd, odd], ready: odd }), 6],
    ['deleted', { kind: 'delete', name: nasty, current: odd }, 3],
    ['removed', { kind: 'forget', name: nasty }, 1],
  ])(
    'cannot move the cursor, break a line or reverse the text when it is %s',
    (_title, step, count) => {
      const plan = { ...empty, steps: [step], obsolete: [`${nasty}!`] };
      const text = planText(plan, limits, plain);
      expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202a-\u202e\u2028\u2029]/u);
      expect(
        text.split(String.raw`a\u001b[2J\u000d\u000ab\u0007\u009b1m\u202ec\u2028d`),
      ).toHaveLength(count + 2);
    },
  );
});

describe('a secret', () => {
  it('is in no plan: a plan shows that credentials change, without the values', async () => {
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
});
