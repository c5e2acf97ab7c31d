/** The order of the doctor: what follows from a check that failed. */
import { describe, expect, it } from 'vitest';
import { runSteps, type Step } from '../../src/cli/doctor/steps.ts';
import { AppError } from '../../src/domain/app-error.ts';
import type { Finding } from '../../src/domain/finding.ts';

const running = new AbortController().signal;

/** A step that finds things in these states. */
function step(name: string, needs: string[], ...states: Finding['state'][]): Step {
  return {
    name,
    needs,
    run: async () => states.map((state) => ({ check: name, state, message: state })),
  };
}

async function statesOf(steps: Step[]) {
  const findings: Finding[] = [];
  for await (const finding of runSteps(steps, running)) findings.push(finding);
  return findings.map(({ check, state, message }) => [check, state, message]);
}

describe('a step', () => {
  it('runs after what it needs has passed or warned, in order, with all its findings', async () => {
    const steps = [
      step('one', [], 'pass', 'warn'),
      step('two', ['one']),
      step('three', ['one', 'two'], 'pass'),
    ];
    expect(await statesOf(steps)).toEqual([
      ['one', 'pass', 'pass'],
      ['one', 'warn', 'warn'],
      ['three', 'pass', 'pass'],
    ]);
  });

  it('is skipped after a failure, with the first cause named all along the chain', async () => {
    const steps = [
      step('one', [], 'pass', 'fail'),
      step('two', ['one'], 'pass'),
      step('three', ['two'], 'pass'),
      step('four', [], 'pass'),
    ];
    const because = 'Not checked, as "one" failed.';
    expect(await statesOf(steps)).toEqual([
      ['one', 'pass', 'pass'],
      ['one', 'fail', 'fail'],
      ['two', 'skipped', because],
      ['three', 'skipped', because],
      ['four', 'pass', 'pass'],
    ]);
  });

  it('is skipped after one that skipped itself', async () => {
    expect(await statesOf([step('one', [], 'skipped'), step('two', ['one'], 'pass')])).toEqual([
      ['one', 'skipped', 'skipped'],
      ['two', 'skipped', 'Not checked, as "one" was skipped.'],
    ]);
  });

  it.each([
    [
      'at once',
      () => {
        throw new AppError('unavailable', 'No way.', { advice: 'Try again.' });
      },
    ],
    [
      'later',
      () => Promise.reject(new AppError('unavailable', 'No way.', { advice: 'Try again.' })),
    ],
  ])('that throws %s is a failure, and the others go on', async (_when, run) => {
    const findings: Finding[] = [];
    const steps = [{ name: 'one', needs: [], run }, step('two', [], 'pass')];
    for await (const finding of runSteps(steps, running)) findings.push(finding);
    expect(findings).toEqual([
      { check: 'one', state: 'fail', message: 'No way.', advice: 'Try again.' },
      { check: 'two', state: 'pass', message: 'pass' },
    ]);
  });

  it('does not begin when the program is asked to end', async () => {
    const stopping = new AbortController();
    const seen: string[] = [];
    const steps = [step('one', [], 'pass'), step('two', [], 'pass')];
    for await (const { check } of runSteps(steps, stopping.signal)) {
      seen.push(check);
      stopping.abort();
    }
    expect(seen).toEqual(['one']);
  });
});
