/** The order of a plan's steps, the ways of its replacements, and what goes beyond the limits. */
import { describe, expect, it } from 'vitest';
import { type AccountLimits, fitPlan, makePlan, type PlanStep } from '../../../src/admin/plan.ts';
import type { DesiredSubscription } from '../../../src/domain/subscription.ts';
import type { Held } from './fake-catalogue.ts';
import { held, otherFilter, publicUrl, pull, stranger, wanted } from './plan-samples.ts';
import { usualLimits } from './plan-world.ts';

/** The plan for an account in which each of ours is known by its Id. */
function fitted(
  desired: DesiredSubscription[],
  listed: Held[],
  limits: AccountLimits = usualLimits,
  prune = false,
) {
  const plan = makePlan({
    desired,
    listed,
    registrations: [],
    publicUrl,
    prune,
    hasCredentials: () => true,
  });
  return fitPlan(plan, limits);
}

const changed = wanted({ filter: otherFilter });
const waysOf = (steps: readonly PlanStep[]) =>
  steps.flatMap((step) => (step.kind === 'replace' ? [step.way] : []));
const wayOf = (...given: Parameters<typeof fitted>) => {
  const { plan, excess } = fitted(...given);
  expect(excess).toEqual([]);
  return waysOf(plan.steps);
};
const others = (count: number, fields: Partial<Held> = {}) =>
  Array.from({ length: count }, (_, index) => stranger({ id: `id-other-${index}`, ...fields }));

describe('a replacement', () => {
  it('overlaps within the running limit, up to the last place', () => {
    expect(wayOf([changed], [held()])).toEqual(['overlap']);
    expect(wayOf([changed], [held(), ...others(8, { status: 'paused' })])).toEqual(['overlap']);
  });

  it('changes places where one more may be there, but not run', () => {
    expect(wayOf([changed], [held(), stranger()])).toEqual(['switch']);
    expect(wayOf([changed], [held(), pull()])).toEqual(['switch']);
    expect(wayOf([changed], [held()], { runningMax: 1, totalMax: 2 })).toEqual(['switch']);
  });

  it('deletes first where nothing more may be there', () => {
    const full = [held(), ...others(9, { status: 'paused' })];
    expect(wayOf([changed], full)).toEqual(['delete-first']);
    expect(wayOf([{ ...changed, status: 'paused' }], full)).toEqual(['delete-first']);
    expect(wayOf([changed], [held()], { runningMax: 1, totalMax: 1 })).toEqual(['delete-first']);
  });

  it('overlaps where nothing runs that could miss something', () => {
    const paused = held({ status: 'paused' });
    expect(wayOf([changed], [paused, stranger()])).toEqual(['overlap']);
    expect(wayOf([{ ...changed, status: 'paused' }], [held(), stranger()])).toEqual(['overlap']);
  });

  it('that was cut goes on with the new one that is there', () => {
    const ready = (status: string) => held({ id: 'id-new', filter: otherFilter, status });
    const limits = { runningMax: 1, totalMax: 2 };
    expect(wayOf([changed], [held(), ready('paused')], limits)).toEqual(['switch']);
    expect(wayOf([changed], [held({ status: 'paused' }), ready('paused')], limits)).toEqual([
      'overlap',
    ]);
    expect(wayOf([changed], [held(), ready('running')])).toEqual(['overlap']);
  });

  it('overlaps where another step makes the room first', () => {
    const desired = [changed, wanted({ name: 'baltic', status: 'paused' })];
    expect(wayOf(desired, [held(), held({ name: 'baltic' })])).toEqual(['overlap']);
    expect(wayOf([changed], [held(), held({ name: 'baltic' })], usualLimits, true)).toEqual([
      'overlap',
    ]);
  });
});

describe('the steps', () => {
  it('that make room come before those that need it', () => {
    const desired = [
      wanted({ name: 'new', filter: otherFilter }),
      wanted({ name: 'resting', status: 'paused' }),
      wanted({ name: 'other', status: 'paused' }),
    ];
    const listed = [held({ name: 'other' }), held({ name: 'unwanted' })];
    const { plan, excess } = fitted(desired, listed, { runningMax: 2, totalMax: 3 }, true);
    const words = plan.steps.map((step) =>
      `${step.kind} ${'name' in step ? step.name : ''}`.trim(),
    );
    expect(words).toEqual(['delete unwanted', 'edit', 'create', 'create']);
    expect(plan.steps.at(-1)).toMatchObject({ desired: { name: 'new' } });
    expect(excess).toEqual([]);
  });

  it.each([
    ['one', 'two'],
    ['two', 'one'],
  ])('find room whichever name comes first (%s, %s)', (first, second) => {
    // The replacement of "two" gives a place back, which that of "one" needs.
    const listed = [
      held({ name: 'one', status: 'paused' }),
      held({ name: 'two' }),
      held({ name: 'two', id: 'id-double' }),
    ];
    const desired = [first, second].map((name) => wanted({ name, filter: otherFilter }));
    expect(fitted(desired, listed, { runningMax: 2, totalMax: 4 }).excess).toEqual([]);
  });

  it('give credentials to a new one before the old one goes', () => {
    const ready = held({ id: 'id-new', filter: otherFilter, status: 'paused' });
    for (const status of ['running', 'paused'] as const) {
      const { plan } = fitted([{ ...changed, status }], [held(), ready]);
      expect(plan.steps.map(({ kind }) => kind)).toEqual(['edit', 'replace']);
    }
  });
});

describe('beyond the limits', () => {
  it('goes a third that would run, whosever the others are', () => {
    for (const listed of [others(2), [stranger(), pull()], [held({ name: 'kept' }), stranger()]]) {
      const { excess } = fitted([wanted()], listed);
      expect(excess).toEqual([
        '"alps" would be running subscription number 3; the catalogue lets 2 run.',
      ]);
    }
  });

  it('goes a paused one that is to run', () => {
    expect(fitted([wanted()], [held({ status: 'paused' }), ...others(2)]).excess).toHaveLength(1);
    expect(fitted([changed], [held({ status: 'paused' }), ...others(2)]).excess).toHaveLength(1);
  });

  it('goes an eleventh, also a paused one', () => {
    const { excess } = fitted([wanted({ status: 'paused' })], others(10, { status: 'paused' }));
    expect(excess).toEqual([
      '"alps" would be subscription number 11; the catalogue allows 10 for an account.',
    ]);
  });

  it('is told for each that has no room', () => {
    const desired = ['alps', 'baltic', 'crete'].map((name) => wanted({ name }));
    expect(fitted(desired, [stranger()]).excess).toEqual([
      expect.stringContaining('"baltic"'),
      expect.stringContaining('"crete"'),
    ]);
  });

  it('is nothing that is there already, nor what takes its place', () => {
    const crowd = [held(), ...others(11)];
    expect(fitted([wanted({ status: 'paused' })], crowd).excess).toEqual([]);
    expect(fitted([wanted()], crowd).excess).toEqual([]);
  });

  it('follows the limits that are configured', () => {
    const desired = ['alps', 'baltic', 'crete'].map((name) => wanted({ name }));
    expect(fitted(desired, [], { runningMax: 3, totalMax: 3 }).excess).toEqual([]);
    expect(fitted(desired, [], { runningMax: 3, totalMax: 2 }).excess).toHaveLength(1);
    expect(fitted(desired, [], { runningMax: 1, totalMax: 10 }).excess).toHaveLength(2);
  });
});
