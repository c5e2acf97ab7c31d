/** Plans: managed subscriptions, the steps to the desired state, their order, and the limits. */
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

/** Managed names with their Ids, and the Ids of unmanaged subscriptions. */
function sort(listed: FakeSubscription[], known: Partial<Parameters<typeof sortAccount>[1]> = {}) {
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations: [], ...known });
  const names = [...managed].map(([name, some]) => [name, ...some.map(({ id }) => id)]);
  return { managed: names, unmanaged: unmanaged.map(({ id }) => id) };
}

const alpsManaged = { managed: [['alps', 'id-alps']], unmanaged: [] };
const alpsUnmanaged = { managed: [], unmanaged: ['id-alps'] };

describe('an endpoint', () => {
  it('under the public URL is managed, any other is not', () => {
    expect(sort([managed()])).toEqual(alpsManaged);
    expect(sort([managed({ endpoint: `${publicUrl}/notifications/alps/more` })])).toEqual(
      alpsUnmanaged,
    );
  });

  it('is missing in a pull subscription, which is unmanaged', () => {
    expect(sort([pull()])).toEqual({ managed: [], unmanaged: ['id-pull'] });
  });
});

describe('an Id', () => {
  it('in a registration is managed at any endpoint', () => {
    const registrations = [registrationOf()];
    expect(sort([unmanaged({ id: 'id-alps' })], { registrations })).toEqual(alpsManaged);
  });

  it('in a registration keeps the name of the registration', () => {
    const registrations = [registrationOf()];
    const endpoint = `${publicUrl}/notifications/baltic`;
    expect(sort([managed({ endpoint })], { registrations })).toEqual(alpsManaged);
  });

  it('that is null in a registration matches no subscription', () => {
    const registrations = [registrationOf({ subscriptionId: null })];
    expect(sort([unmanaged(), pull()], { registrations })).toEqual({
      managed: [],
      unmanaged: ['id-unmanaged', 'id-pull'],
    });
  });
});

describe('an endpoint under an earlier public URL', () => {
  const moved = managed({ endpoint: `${earlierUrl}/notifications/alps` });

  it('is unmanaged by default', () => {
    expect(sort([moved])).toEqual(alpsUnmanaged);
  });

  it('is managed when the user names it', () => {
    expect(sort([moved], { movedFrom: earlierUrl })).toEqual(alpsManaged);
  });

  it('is managed in addition to subscriptions under the new URL', () => {
    const fresh = managed({ id: 'id-new' });
    expect(sort([moved, fresh], { movedFrom: earlierUrl }).managed).toEqual([
      ['alps', 'id-alps', 'id-new'],
    ]);
  });

  it('makes no other subscription managed', () => {
    expect(sort([unmanaged(), pull()], { movedFrom: earlierUrl }).managed).toEqual([]);
  });
});

describe('a status', () => {
  it('of `cancelled` excludes the subscription', () => {
    const cancelled = [managed({ status: 'cancelled' }), unmanaged({ status: 'cancelled' })];
    expect(sort(cancelled)).toEqual({ managed: [], unmanaged: [] });
  });

  it.each(['paused', 'suspended'])('of `%s` does not matter', (status) => {
    expect(sort([managed({ status })])).toEqual(alpsManaged);
  });
});

function plan(input: Partial<PlanInput>) {
  return makePlan({
    desired: [desiredState()],
    listed: [],
    registrations: [],
    publicUrl,
    adoptsPull: true,
    prune: false,
    hasCredentials: ({ credentialsDigest }) => credentialsDigest === digest,
    ...input,
  });
}

const inSync = { listed: [managed()], registrations: [registrationOf()] };

describe('for a desired subscription, the plan', () => {
  it('has no steps when it exists and is registered', () => {
    expect(plan(inSync)).toMatchObject({ steps: [], unchanged: ['alps'], obsolete: [] });
  });

  it('creates it when the account does not contain it', () => {
    const { steps, unchanged } = plan({ listed: [unmanaged(), pull()] });
    expect(steps).toEqual([{ kind: 'create', desired: desiredState() }]);
    expect(unchanged).toEqual([]);
  });

  it('creates it again when the registered one is gone or cancelled', () => {
    const { registrations } = inSync;
    const listed = [managed({ status: 'cancelled' })];
    expect(plan({ registrations }).steps).toMatchObject([{ kind: 'create' }]);
    expect(plan({ registrations, listed }).steps).toMatchObject([{ kind: 'create' }]);
  });

  it('ignores the order of events, and spaces around filters', () => {
    const desired = [desiredState({ events: ['modified', 'created'] })];
    const { filter } = desiredState();
    const listed = [managed({ events: ['created', 'modified'], filter: ` ${filter} ` })];
    const registrations = [registrationOf({ events: ['created', 'modified'] })];
    expect(plan({ desired, listed, registrations }).steps).toEqual([]);
  });

  it('ignores the case of host names in endpoints', () => {
    const listed = [managed({ endpoint: 'HTTPS://Earshot.Example.org:8443/notifications/alps' })];
    expect(plan({ ...inSync, listed }).steps).toEqual([]);
  });
});

describe('for editable fields, the plan', () => {
  it.each([
    ['resumes', 'paused', 'running'],
    ['resumes', 'suspended', 'running'],
    ['pauses', 'running', 'paused'],
  ] as const)('%s a subscription that is %s and should be %s', (_, status, should) => {
    const desired = [desiredState({ status: should })];
    const { steps } = plan({ ...inSync, desired, listed: [managed({ status })] });
    expect(steps).toMatchObject([{ kind: 'edit', edit: { status: should }, adopted: false }]);
  });

  it('restores an endpoint that a person changed', () => {
    const endpoint = 'https://elsewhere.example.org/notifications/alps';
    const { steps } = plan({ ...inSync, listed: [managed({ endpoint })] });
    expect(steps).toMatchObject([
      { kind: 'edit', edit: { endpoint: `${publicUrl}/notifications/alps` } },
    ]);
  });

  it('sends the credentials when the catalogue has other or unknown ones', () => {
    for (const credentialsDigest of [otherDigest, null]) {
      const registrations = [registrationOf({ credentialsDigest })];
      const { steps } = plan({ ...inSync, registrations });
      expect(steps).toMatchObject([{ kind: 'edit', edit: { credentials: true } }]);
    }
  });

  it('combines all changes in one step', () => {
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

describe('for fields that are not editable, the plan', () => {
  it.each([
    ['filter', [desiredState({ filter: otherFilter })]],
    ['filter', [desiredState({ filter: '' })]],
    ['events', [desiredState({ events: ['created', 'deleted'] })]],
  ] as const)('replaces the subscription for another %s', (what, desired) => {
    const { steps } = plan({ ...inSync, desired });
    expect(steps).toMatchObject([
      { kind: 'replace', differs: [what], old: [{ id: 'id-alps' }], ready: null },
    ]);
  });

  it('continues an interrupted replacement without a third subscription', () => {
    const desired = [desiredState({ filter: otherFilter })];
    const listed = [managed(), managed({ id: 'id-new', filter: otherFilter })];
    const { steps } = plan({ ...inSync, desired, listed });
    expect(steps.map(({ kind }) => kind)).toEqual(['edit', 'replace']);
    expect(steps[1]).toMatchObject({ ready: { id: 'id-new' }, old: [{ id: 'id-alps' }] });
  });

  it('keeps, of several, the matching one with a registration', () => {
    const listed = ['id-a', 'id-alps', 'id-b'].map((id) => managed({ id }));
    const { steps } = plan({ ...inSync, listed });
    expect(steps).toMatchObject([
      { kind: 'replace', ready: { id: 'id-alps' }, old: [{ id: 'id-a' }, { id: 'id-b' }] },
    ]);
  });

  it('keeps, of several without a registration, the running one, else the oldest', () => {
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

describe('a subscription with an unknown Id', () => {
  it('is adopted, and receives the credentials because its own are unknown', () => {
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

describe('a difference between store and account', () => {
  it.each([
    ['an unfinished flag', { unfinished: true }],
    ['another status', { status: 'paused' as const }],
    ['another filter', { filter: otherFilter }],
    ['other events', { events: ['deleted' as const] }],
  ])('causes an adopt step: %s', (_, fields) => {
    const { steps } = plan({ ...inSync, registrations: [registrationOf(fields)] });
    expect(steps).toMatchObject([{ kind: 'adopt', current: { id: 'id-alps' } }]);
  });
});

describe('an obsolete subscription', () => {
  const desired = [desiredState({ name: 'baltic' })];
  const both = {
    listed: [managed(), managed({ name: 'baltic' })],
    registrations: [registrationOf(), registrationOf({ name: 'baltic' })],
  };

  it('is reported and kept', () => {
    expect(plan({ ...both, desired })).toMatchObject({ steps: [], obsolete: ['alps'] });
  });

  it('is deleted with its registration when pruned, with all subscriptions of its path', () => {
    const listed = [...both.listed, managed({ id: 'id-double' }), unmanaged()];
    const { steps } = plan({ ...both, listed, desired, prune: true });
    expect(steps).toMatchObject([
      { kind: 'delete', name: 'alps', current: { id: 'id-alps' } },
      { kind: 'delete', name: 'alps', current: { id: 'id-double' } },
      { kind: 'forget', name: 'alps' },
    ]);
  });

  it('only loses its registration when it is gone', () => {
    const { steps } = plan({ registrations: both.registrations, desired: [], prune: true });
    expect(steps.map(({ kind }) => kind)).toEqual(['forget', 'forget']);
  });

  it('is never an unmanaged one', () => {
    const others = plan({ listed: [unmanaged(), pull()], desired: [], prune: true });
    expect(others).toMatchObject({ steps: [], obsolete: [] });
    expect(others.unmanaged.map(({ id }) => id)).toEqual(['id-unmanaged', 'id-pull']);
  });
});

it('counts managed and unmanaged subscriptions, except cancelled ones', () => {
  const listed = [
    managed(),
    unmanaged(),
    pull({ status: 'paused' }),
    pull({ status: 'cancelled' }),
  ];
  expect(plan({ listed }).counts).toEqual({ running: 2, total: 3 });
});

/** The plan for an account without registrations, fitted to the limits. */
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
    adoptsPull: true,
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
  it('overlaps within the limits, up to the last place', () => {
    expect(wayOf([changed], [managed()])).toEqual(['overlap']);
    expect(wayOf([changed], [managed(), ...others(8, { status: 'paused' })])).toEqual(['overlap']);
  });

  it('switches when one more may exist, but not run', () => {
    expect(wayOf([changed], [managed(), unmanaged()])).toEqual(['switch']);
    expect(wayOf([changed], [managed(), pull()])).toEqual(['switch']);
    expect(wayOf([changed], [managed()], { runningMax: 1, totalMax: 2 })).toEqual(['switch']);
  });

  it('deletes first when no more may exist', () => {
    const full = [managed(), ...others(9, { status: 'paused' })];
    expect(wayOf([changed], full)).toEqual(['delete-first']);
    expect(wayOf([{ ...changed, status: 'paused' }], full)).toEqual(['delete-first']);
    expect(wayOf([changed], [managed()], { runningMax: 1, totalMax: 1 })).toEqual(['delete-first']);
  });

  it('overlaps when the old or the new one is paused', () => {
    const paused = managed({ status: 'paused' });
    expect(wayOf([changed], [paused, unmanaged()])).toEqual(['overlap']);
    expect(wayOf([{ ...changed, status: 'paused' }], [managed(), unmanaged()])).toEqual([
      'overlap',
    ]);
  });

  it('continues with the new one after an interruption', () => {
    const ready = (status: string) => managed({ id: 'id-new', filter: otherFilter, status });
    const limits = { runningMax: 1, totalMax: 2 };
    expect(wayOf([changed], [managed(), ready('paused')], limits)).toEqual(['switch']);
    expect(wayOf([changed], [managed({ status: 'paused' }), ready('paused')], limits)).toEqual([
      'overlap',
    ]);
    expect(wayOf([changed], [managed(), ready('running')])).toEqual(['overlap']);
  });

  it('overlaps when an earlier step frees the capacity', () => {
    const desired = [changed, desiredState({ name: 'baltic', status: 'paused' })];
    expect(wayOf(desired, [managed(), managed({ name: 'baltic' })])).toEqual(['overlap']);
    expect(wayOf([changed], [managed(), managed({ name: 'baltic' })], usualLimits, true)).toEqual([
      'overlap',
    ]);
  });
});

describe('the steps', () => {
  it('that free capacity precede those that need it', () => {
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
  ])('stay within the limits in any order of names (%s, %s)', (first, second) => {
    // The replacement of "two" frees a place, which that of "one" needs.
    const listed = [
      managed({ name: 'one', status: 'paused' }),
      managed({ name: 'two' }),
      managed({ name: 'two', id: 'id-double' }),
    ];
    const desired = [first, second].map((name) => desiredState({ name, filter: otherFilter }));
    expect(fitted(desired, listed, { runningMax: 2, totalMax: 4 }).limitErrors).toEqual([]);
  });

  it('send credentials to the new one before they delete the old one', () => {
    const ready = managed({ id: 'id-new', filter: otherFilter, status: 'paused' });
    for (const status of ['running', 'paused'] as const) {
      const { plan } = fitted([{ ...changed, status }], [managed(), ready]);
      expect(plan.steps.map(({ kind }) => kind)).toEqual(['edit', 'replace']);
    }
  });
});

describe('the check of the limits', () => {
  it('rejects a third running one, whether the others are managed or not', () => {
    for (const listed of [
      others(2),
      [unmanaged(), pull()],
      [managed({ name: 'kept' }), unmanaged()],
    ]) {
      const { limitErrors } = fitted([desiredState()], listed);
      expect(limitErrors).toEqual([
        'With "alps", 3 subscriptions would be running; the maximum is 2.',
      ]);
    }
  });

  it('rejects the resumption of a paused one', () => {
    expect(
      fitted([desiredState()], [managed({ status: 'paused' }), ...others(2)]).limitErrors,
    ).toHaveLength(1);
    expect(
      fitted([changed], [managed({ status: 'paused' }), ...others(2)]).limitErrors,
    ).toHaveLength(1);
  });

  it('rejects an eleventh, even a paused one', () => {
    const { limitErrors } = fitted(
      [desiredState({ status: 'paused' })],
      others(10, { status: 'paused' }),
    );
    expect(limitErrors).toEqual([
      'With "alps", the account would have 11 subscriptions; the maximum is 10.',
    ]);
  });

  it('names each subscription beyond the limits', () => {
    const desired = ['alps', 'baltic', 'crete'].map((name) => desiredState({ name }));
    expect(fitted(desired, [unmanaged()]).limitErrors).toEqual([
      expect.stringContaining('"baltic"'),
      expect.stringContaining('"crete"'),
    ]);
  });

  it('accepts existing subscriptions and their replacements', () => {
    const crowd = [managed(), ...others(11)];
    expect(fitted([desiredState({ status: 'paused' })], crowd).limitErrors).toEqual([]);
    expect(fitted([desiredState()], crowd).limitErrors).toEqual([]);
  });

  it('uses the configured limits', () => {
    const desired = ['alps', 'baltic', 'crete'].map((name) => desiredState({ name }));
    expect(fitted(desired, [], { runningMax: 3, totalMax: 3 }).limitErrors).toEqual([]);
    expect(fitted(desired, [], { runningMax: 3, totalMax: 2 }).limitErrors).toHaveLength(1);
    expect(fitted(desired, [], { runningMax: 1, totalMax: 10 }).limitErrors).toHaveLength(2);
  });
});
