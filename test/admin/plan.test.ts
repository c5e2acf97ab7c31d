/** Plans: which subscriptions are ours, the steps from an account to what is requested, their order and the limits. */
import { describe, expect, it } from 'vitest';
import {
  type AccountLimits,
  fitPlan,
  makePlan,
  type PlanInput,
  type PlanStep,
  sortAccount,
} from '../../src/admin/plan.ts';
import type { DesiredSubscription } from '../../src/domain/subscription.ts';
import type { FakeSubscription } from './fake-catalogue.ts';
import {
  desiredState,
  digest,
  earlierUrl,
  managed,
  otherDigest,
  otherFilter,
  publicUrl,
  pull,
  registrationOf,
  unmanaged,
} from './samples.ts';
import { usualLimits } from './set-up.ts';

/** The names that are found, and the Ids of what belongs to others. */
function sort(listed: FakeSubscription[], known: Partial<Parameters<typeof sortAccount>[1]> = {}) {
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations: [], ...known });
  const names = [...managed].map(([name, some]) => [name, ...some.map(({ id }) => id)]);
  return { managed: names, unmanaged: unmanaged.map(({ id }) => id) };
}

const alpsManaged = { managed: [['alps', 'id-alps']], unmanaged: [] };
const alpsUnmanaged = { managed: [], unmanaged: ['id-alps'] };

describe('an endpoint', () => {
  it('under the public URL is ours, any other is not', () => {
    expect(sort([managed()])).toEqual(alpsManaged);
    expect(sort([managed({ endpoint: `${publicUrl}/notifications/alps/more` })])).toEqual(
      alpsUnmanaged,
    );
  });

  it('is that of a pull subscription when there is none', () => {
    expect(sort([pull()])).toEqual({ managed: [], unmanaged: ['id-pull'] });
  });
});

describe('an Id', () => {
  it('that is remembered is ours wherever it delivers to', () => {
    const registrations = [registrationOf()];
    expect(sort([unmanaged({ id: 'id-alps' })], { registrations })).toEqual(alpsManaged);
  });

  it('that is remembered keeps the name that it is remembered by', () => {
    const registrations = [registrationOf()];
    const endpoint = `${publicUrl}/notifications/baltic`;
    expect(sort([managed({ endpoint })], { registrations })).toEqual(alpsManaged);
  });

  it('is nobody when a registration knows of none', () => {
    const registrations = [registrationOf({ subscriptionId: null })];
    expect(sort([unmanaged(), pull()], { registrations })).toEqual({
      managed: [],
      unmanaged: ['id-unmanaged', 'id-pull'],
    });
  });
});

describe('an earlier public URL', () => {
  const moved = managed({ endpoint: `${earlierUrl}/notifications/alps` });

  it('is a stranger by itself', () => {
    expect(sort([moved])).toEqual(alpsUnmanaged);
  });

  it('makes it ours when the user names it', () => {
    expect(sort([moved], { movedFrom: earlierUrl })).toEqual(alpsManaged);
  });

  it('makes it ours beside what is under the new one already', () => {
    const fresh = managed({ id: 'id-new' });
    expect(sort([moved, fresh], { movedFrom: earlierUrl }).managed).toEqual([
      ['alps', 'id-alps', 'id-new'],
    ]);
  });

  it('makes nothing else ours', () => {
    expect(sort([unmanaged(), pull()], { movedFrom: earlierUrl }).managed).toEqual([]);
  });
});

describe('a status', () => {
  it('of a cancelled one leaves it out altogether', () => {
    const cancelled = [managed({ status: 'cancelled' }), unmanaged({ status: 'cancelled' })];
    expect(sort(cancelled)).toEqual({ managed: [], unmanaged: [] });
  });

  it.each(['paused', 'suspended'])('%s does not matter', (status) => {
    expect(sort([managed({ status })])).toEqual(alpsManaged);
  });
});

function plan(input: Partial<PlanInput>) {
  return makePlan({
    desired: [desiredState()],
    listed: [],
    registrations: [],
    publicUrl,
    prune: false,
    hasCredentials: ({ credentialsDigest }) => credentialsDigest === digest,
    ...input,
  });
}

const inSync = { listed: [managed()], registrations: [registrationOf()] };

describe('for one that is wanted, the plan', () => {
  it('has nothing to do when it is there and known', () => {
    expect(plan(inSync)).toMatchObject({ steps: [], unchanged: ['alps'], obsolete: [] });
  });

  it('creates it when the account has nothing of it', () => {
    const { steps, unchanged } = plan({ listed: [unmanaged(), pull()] });
    expect(steps).toEqual([{ kind: 'create', desired: desiredState() }]);
    expect(unchanged).toEqual([]);
  });

  it('creates it anew when the one that is remembered is gone or cancelled', () => {
    const { registrations } = inSync;
    const listed = [managed({ status: 'cancelled' })];
    expect(plan({ registrations }).steps).toMatchObject([{ kind: 'create' }]);
    expect(plan({ registrations, listed }).steps).toMatchObject([{ kind: 'create' }]);
  });

  it('knows equal events in any order, and equal filters within any spaces', () => {
    const desired = [desiredState({ events: ['modified', 'created'] })];
    const { filter } = desiredState();
    const listed = [managed({ events: ['created', 'modified'], filter: ` ${filter} ` })];
    const registrations = [registrationOf({ events: ['created', 'modified'] })];
    expect(plan({ desired, listed, registrations }).steps).toEqual([]);
  });

  it('knows equal endpoints in any writing', () => {
    const listed = [managed({ endpoint: 'HTTPS://Earshot.Example.org:8443/notifications/alps' })];
    expect(plan({ ...inSync, listed }).steps).toEqual([]);
  });
});

describe('where something can be edited, the plan', () => {
  it.each([
    ['resumes', 'paused', 'running'],
    ['resumes', 'suspended', 'running'],
    ['pauses', 'running', 'paused'],
  ] as const)('%s one that is %s and should be %s', (_, status, should) => {
    const desired = [desiredState({ status: should })];
    const { steps } = plan({ ...inSync, desired, listed: [managed({ status })] });
    expect(steps).toMatchObject([{ kind: 'edit', edit: { status: should }, adopted: false }]);
  });

  it('changes an endpoint that somebody has changed', () => {
    const endpoint = 'https://elsewhere.example.org/notifications/alps';
    const { steps } = plan({ ...inSync, listed: [managed({ endpoint })] });
    expect(steps).toMatchObject([
      { kind: 'edit', edit: { endpoint: `${publicUrl}/notifications/alps` } },
    ]);
  });

  it('gives the credentials when the catalogue has others, or none that are known', () => {
    for (const credentialsDigest of [otherDigest, null]) {
      const registrations = [registrationOf({ credentialsDigest })];
      const { steps } = plan({ ...inSync, registrations });
      expect(steps).toMatchObject([{ kind: 'edit', edit: { credentials: true } }]);
    }
  });

  it('does all of it in one step', () => {
    const endpoint = `${earlierUrl}/notifications/alps`;
    const { steps } = plan({
      listed: [managed({ status: 'paused', endpoint })],
      registrations: [registrationOf({ credentialsDigest: otherDigest })],
    });
    expect(steps).toMatchObject([
      { edit: { status: 'running', credentials: true, endpoint: expect.any(String) } },
    ]);
  });
});

describe('where something cannot be edited, the plan', () => {
  it.each([
    ['filter', [desiredState({ filter: otherFilter })]],
    ['filter', [desiredState({ filter: '' })]],
    ['events', [desiredState({ events: ['created', 'deleted'] })]],
  ] as const)('replaces for another %s', (what, desired) => {
    const { steps } = plan({ ...inSync, desired });
    expect(steps).toMatchObject([
      { kind: 'replace', differs: [what], old: [{ id: 'id-alps' }], ready: null },
    ]);
  });

  it('goes on with a replacement that was cut, and makes no third one', () => {
    const desired = [desiredState({ filter: otherFilter })];
    const listed = [managed(), managed({ id: 'id-new', filter: otherFilter })];
    const { steps } = plan({ ...inSync, desired, listed });
    expect(steps.map(({ kind }) => kind)).toEqual(['edit', 'replace']);
    expect(steps[1]).toMatchObject({ ready: { id: 'id-new' }, old: [{ id: 'id-alps' }] });
  });

  it('keeps of several the one that fits and is remembered', () => {
    const listed = ['id-a', 'id-alps', 'id-b'].map((id) => managed({ id }));
    const { steps } = plan({ ...inSync, listed });
    expect(steps).toMatchObject([
      { kind: 'replace', ready: { id: 'id-alps' }, old: [{ id: 'id-a' }, { id: 'id-b' }] },
    ]);
  });

  it('keeps of several that nobody remembers the one that runs, else the oldest', () => {
    const at = (id: string, submittedAtUs: number | null, status = 'paused') =>
      managed({ id, submittedAtUs, status });
    const kept = (listed: ReturnType<typeof managed>[]) => {
      const { steps } = plan({ listed });
      return steps.map((step) => (step.kind === 'replace' ? step.ready?.id : null)).at(-1);
    };
    expect(kept([at('id-old', 1), at('id-runs', 2, 'running')])).toBe('id-runs');
    expect(kept([at('id-young', 2), at('id-old', 1)])).toBe('id-old');
  });
});

describe('one that is not known by its Id', () => {
  it('is adopted, and given the credentials, as nobody knows which it has', () => {
    const listed = [managed({ id: 'id-by-hand' })];
    for (const registrations of [[], [registrationOf()]]) {
      expect(plan({ listed, registrations }).steps).toMatchObject([
        { kind: 'edit', edit: { credentials: true }, adopted: true },
      ]);
    }
  });

  it('is adopted from an earlier public URL only when that is named', () => {
    const listed = [managed({ endpoint: `${earlierUrl}/notifications/alps` })];
    expect(plan({ listed }).steps).toMatchObject([{ kind: 'create' }]);
    expect(plan({ listed, movedFrom: earlierUrl }).steps).toMatchObject([
      { kind: 'edit', adopted: true, edit: { endpoint: `${publicUrl}/notifications/alps` } },
    ]);
  });
});

describe('what the store has to learn', () => {
  it.each([
    ['a change that is finished', { unfinished: true }],
    ['another status', { status: 'paused' as const }],
    ['another filter', { filter: otherFilter }],
    ['other events', { events: ['deleted' as const] }],
  ])('is a step when it is %s', (_, fields) => {
    const { steps } = plan({ ...inSync, registrations: [registrationOf(fields)] });
    expect(steps).toMatchObject([{ kind: 'adopt', current: { id: 'id-alps' } }]);
  });
});

describe('what is no longer wanted', () => {
  const desired = [desiredState({ name: 'baltic' })];
  const both = {
    listed: [managed(), managed({ name: 'baltic' })],
    registrations: [registrationOf(), registrationOf({ name: 'baltic' })],
  };

  it('is reported and kept', () => {
    expect(plan({ ...both, desired })).toMatchObject({ steps: [], obsolete: ['alps'] });
  });

  it('is deleted and forgotten when pruned, with all that deliver to its path', () => {
    const listed = [...both.listed, managed({ id: 'id-double' }), unmanaged()];
    const { steps } = plan({ ...both, listed, desired, prune: true });
    expect(steps).toMatchObject([
      { kind: 'delete', name: 'alps', current: { id: 'id-alps' } },
      { kind: 'delete', name: 'alps', current: { id: 'id-double' } },
      { kind: 'forget', name: 'alps' },
    ]);
  });

  it('is only forgotten when it is gone', () => {
    const { steps } = plan({ registrations: both.registrations, desired: [], prune: true });
    expect(steps.map(({ kind }) => kind)).toEqual(['forget', 'forget']);
  });

  it('is never what others made', () => {
    const others = plan({ listed: [unmanaged(), pull()], desired: [], prune: true });
    expect(others).toMatchObject({ steps: [], obsolete: [] });
    expect(others.unmanaged.map(({ id }) => id)).toEqual(['id-unmanaged', 'id-pull']);
  });
});

it('counts everything in the account, whosever it is, that is not cancelled', () => {
  const listed = [
    managed(),
    unmanaged(),
    pull({ status: 'paused' }),
    pull({ status: 'cancelled' }),
  ];
  expect(plan({ listed }).counts).toEqual({ running: 2, total: 3 });
});

/** The plan for an account in which each of ours is known by its Id. */
function fitted(
  desired: DesiredSubscription[],
  listed: FakeSubscription[],
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

const changed = desiredState({ filter: otherFilter });
const waysOf = (steps: readonly PlanStep[]) =>
  steps.flatMap((step) => (step.kind === 'replace' ? [step.way] : []));
const wayOf = (...given: Parameters<typeof fitted>) => {
  const { plan, limitErrors } = fitted(...given);
  expect(limitErrors).toEqual([]);
  return waysOf(plan.steps);
};
const others = (count: number, fields: Partial<FakeSubscription> = {}) =>
  Array.from({ length: count }, (_, index) => unmanaged({ id: `id-other-${index}`, ...fields }));

describe('a replacement', () => {
  it('overlaps within the running limit, up to the last place', () => {
    expect(wayOf([changed], [managed()])).toEqual(['overlap']);
    expect(wayOf([changed], [managed(), ...others(8, { status: 'paused' })])).toEqual(['overlap']);
  });

  it('changes places where one more may be there, but not run', () => {
    expect(wayOf([changed], [managed(), unmanaged()])).toEqual(['switch']);
    expect(wayOf([changed], [managed(), pull()])).toEqual(['switch']);
    expect(wayOf([changed], [managed()], { runningMax: 1, totalMax: 2 })).toEqual(['switch']);
  });

  it('deletes first where nothing more may be there', () => {
    const full = [managed(), ...others(9, { status: 'paused' })];
    expect(wayOf([changed], full)).toEqual(['delete-first']);
    expect(wayOf([{ ...changed, status: 'paused' }], full)).toEqual(['delete-first']);
    expect(wayOf([changed], [managed()], { runningMax: 1, totalMax: 1 })).toEqual(['delete-first']);
  });

  it('overlaps where nothing runs that could miss something', () => {
    const paused = managed({ status: 'paused' });
    expect(wayOf([changed], [paused, unmanaged()])).toEqual(['overlap']);
    expect(wayOf([{ ...changed, status: 'paused' }], [managed(), unmanaged()])).toEqual([
      'overlap',
    ]);
  });

  it('that was cut goes on with the new one that is there', () => {
    const ready = (status: string) => managed({ id: 'id-new', filter: otherFilter, status });
    const limits = { runningMax: 1, totalMax: 2 };
    expect(wayOf([changed], [managed(), ready('paused')], limits)).toEqual(['switch']);
    expect(wayOf([changed], [managed({ status: 'paused' }), ready('paused')], limits)).toEqual([
      'overlap',
    ]);
    expect(wayOf([changed], [managed(), ready('running')])).toEqual(['overlap']);
  });

  it('overlaps where another step makes the room first', () => {
    const desired = [changed, desiredState({ name: 'baltic', status: 'paused' })];
    expect(wayOf(desired, [managed(), managed({ name: 'baltic' })])).toEqual(['overlap']);
    expect(wayOf([changed], [managed(), managed({ name: 'baltic' })], usualLimits, true)).toEqual([
      'overlap',
    ]);
  });
});

describe('the steps', () => {
  it('that make room come before those that need it', () => {
    const desired = [
      desiredState({ name: 'new', filter: otherFilter }),
      desiredState({ name: 'resting', status: 'paused' }),
      desiredState({ name: 'other', status: 'paused' }),
    ];
    const listed = [managed({ name: 'other' }), managed({ name: 'obsolete' })];
    const { plan, limitErrors } = fitted(desired, listed, { runningMax: 2, totalMax: 3 }, true);
    const words = plan.steps.map((step) =>
      `${step.kind} ${'name' in step ? step.name : ''}`.trim(),
    );
    expect(words).toEqual(['delete obsolete', 'edit', 'create', 'create']);
    expect(plan.steps.at(-1)).toMatchObject({ desired: { name: 'new' } });
    expect(limitErrors).toEqual([]);
  });

  it.each([
    ['one', 'two'],
    ['two', 'one'],
  ])('find room whichever name comes first (%s, %s)', (first, second) => {
    // The replacement of "two" gives a place back, which that of "one" needs.
    const listed = [
      managed({ name: 'one', status: 'paused' }),
      managed({ name: 'two' }),
      managed({ name: 'two', id: 'id-double' }),
    ];
    const desired = [first, second].map((name) => desiredState({ name, filter: otherFilter }));
    expect(fitted(desired, listed, { runningMax: 2, totalMax: 4 }).limitErrors).toEqual([]);
  });

  it('give credentials to a new one before the old one goes', () => {
    const ready = managed({ id: 'id-new', filter: otherFilter, status: 'paused' });
    for (const status of ['running', 'paused'] as const) {
      const { plan } = fitted([{ ...changed, status }], [managed(), ready]);
      expect(plan.steps.map(({ kind }) => kind)).toEqual(['edit', 'replace']);
    }
  });
});

describe('beyond the limits', () => {
  it('goes a third that would run, whosever the others are', () => {
    for (const listed of [
      others(2),
      [unmanaged(), pull()],
      [managed({ name: 'kept' }), unmanaged()],
    ]) {
      const { limitErrors } = fitted([desiredState()], listed);
      expect(limitErrors).toEqual([
        '"alps" would be running subscription number 3; the maximum is 2.',
      ]);
    }
  });

  it('goes a paused one that is to run', () => {
    expect(
      fitted([desiredState()], [managed({ status: 'paused' }), ...others(2)]).limitErrors,
    ).toHaveLength(1);
    expect(
      fitted([changed], [managed({ status: 'paused' }), ...others(2)]).limitErrors,
    ).toHaveLength(1);
  });

  it('goes an eleventh, also a paused one', () => {
    const { limitErrors } = fitted(
      [desiredState({ status: 'paused' })],
      others(10, { status: 'paused' }),
    );
    expect(limitErrors).toEqual([
      '"alps" would be subscription number 11 of the account; the maximum is 10.',
    ]);
  });

  it('is told for each that has no room', () => {
    const desired = ['alps', 'baltic', 'crete'].map((name) => desiredState({ name }));
    expect(fitted(desired, [unmanaged()]).limitErrors).toEqual([
      expect.stringContaining('"baltic"'),
      expect.stringContaining('"crete"'),
    ]);
  });

  it('is nothing that is there already, nor what takes its place', () => {
    const crowd = [managed(), ...others(11)];
    expect(fitted([desiredState({ status: 'paused' })], crowd).limitErrors).toEqual([]);
    expect(fitted([desiredState()], crowd).limitErrors).toEqual([]);
  });

  it('follows the limits that are configured', () => {
    const desired = ['alps', 'baltic', 'crete'].map((name) => desiredState({ name }));
    expect(fitted(desired, [], { runningMax: 3, totalMax: 3 }).limitErrors).toEqual([]);
    expect(fitted(desired, [], { runningMax: 3, totalMax: 2 }).limitErrors).toHaveLength(1);
    expect(fitted(desired, [], { runningMax: 1, totalMax: 10 }).limitErrors).toHaveLength(2);
  });
});
