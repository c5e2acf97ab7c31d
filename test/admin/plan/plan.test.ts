/** The steps from an account to what is wanted, one situation at a time. */
import { describe, expect, it } from 'vitest';
import { makePlan, type PlanInput } from '../../../src/admin/plan.ts';
import {
  digest,
  earlierUrl,
  held,
  otherDigest,
  otherFilter,
  publicUrl,
  pull,
  registrationOf,
  stranger,
  wanted,
} from './plan-samples.ts';

function plan(input: Partial<PlanInput>) {
  return makePlan({
    desired: [wanted()],
    listed: [],
    registrations: [],
    publicUrl,
    prune: false,
    hasCredentials: ({ credentialsDigest }) => credentialsDigest === digest,
    ...input,
  });
}

const asWanted = { listed: [held()], registrations: [registrationOf()] };

describe('for one that is wanted, the plan', () => {
  it('has nothing to do when it is there and known', () => {
    expect(plan(asWanted)).toMatchObject({ steps: [], unchanged: ['alps'], unwanted: [] });
  });

  it('creates it when the account has nothing of it', () => {
    const { steps, unchanged } = plan({ listed: [stranger(), pull()] });
    expect(steps).toEqual([{ kind: 'create', desired: wanted() }]);
    expect(unchanged).toEqual([]);
  });

  it('creates it anew when the one that is remembered is gone or cancelled', () => {
    const { registrations } = asWanted;
    const listed = [held({ status: 'cancelled' })];
    expect(plan({ registrations }).steps).toMatchObject([{ kind: 'create' }]);
    expect(plan({ registrations, listed }).steps).toMatchObject([{ kind: 'create' }]);
  });

  it('knows equal events in any order, and equal filters within any spaces', () => {
    const desired = [wanted({ events: ['modified', 'created'] })];
    const { filter } = wanted();
    const listed = [held({ events: ['created', 'modified'], filter: ` ${filter} ` })];
    const registrations = [registrationOf({ events: ['created', 'modified'] })];
    expect(plan({ desired, listed, registrations }).steps).toEqual([]);
  });

  it('knows equal endpoints in any writing', () => {
    const listed = [held({ endpoint: 'HTTPS://Earshot.Example.org:8443/notifications/alps' })];
    expect(plan({ ...asWanted, listed }).steps).toEqual([]);
  });
});

describe('where something can be edited, the plan', () => {
  it.each([
    ['resumes', 'paused', 'running'],
    ['resumes', 'held up', 'running'],
    ['pauses', 'running', 'paused'],
  ] as const)('%s one that is %s and should be %s', (_, status, should) => {
    const desired = [wanted({ status: should })];
    const { steps } = plan({ ...asWanted, desired, listed: [held({ status })] });
    expect(steps).toMatchObject([{ kind: 'edit', edit: { status: should }, adopted: false }]);
  });

  it('changes an endpoint that somebody has changed', () => {
    const endpoint = 'https://elsewhere.example.org/notifications/alps';
    const { steps } = plan({ ...asWanted, listed: [held({ endpoint })] });
    expect(steps).toMatchObject([
      { kind: 'edit', edit: { endpoint: `${publicUrl}/notifications/alps` } },
    ]);
  });

  it('gives the credentials when the catalogue has others, or none that are known', () => {
    for (const credentialsDigest of [otherDigest, null]) {
      const registrations = [registrationOf({ credentialsDigest })];
      const { steps } = plan({ ...asWanted, registrations });
      expect(steps).toMatchObject([{ kind: 'edit', edit: { credentials: true } }]);
    }
  });

  it('does all of it in one step', () => {
    const endpoint = `${earlierUrl}/notifications/alps`;
    const { steps } = plan({
      listed: [held({ status: 'paused', endpoint })],
      registrations: [registrationOf({ credentialsDigest: otherDigest })],
    });
    expect(steps).toMatchObject([
      { edit: { status: 'running', credentials: true, endpoint: expect.any(String) } },
    ]);
  });
});

describe('where something cannot be edited, the plan', () => {
  it.each([
    ['filter', [wanted({ filter: otherFilter })]],
    ['filter', [wanted({ filter: '' })]],
    ['events', [wanted({ events: ['created', 'deleted'] })]],
  ] as const)('replaces for another %s', (what, desired) => {
    const { steps } = plan({ ...asWanted, desired });
    expect(steps).toMatchObject([
      { kind: 'replace', differs: [what], old: [{ id: 'id-alps' }], ready: null },
    ]);
  });

  it('goes on with a replacement that was cut, and makes no third one', () => {
    const desired = [wanted({ filter: otherFilter })];
    const listed = [held(), held({ id: 'id-new', filter: otherFilter })];
    const { steps } = plan({ ...asWanted, desired, listed });
    expect(steps.map(({ kind }) => kind)).toEqual(['edit', 'replace']);
    expect(steps[1]).toMatchObject({ ready: { id: 'id-new' }, old: [{ id: 'id-alps' }] });
  });

  it('keeps of several the one that fits and is remembered', () => {
    const listed = ['id-a', 'id-alps', 'id-b'].map((id) => held({ id }));
    const { steps } = plan({ ...asWanted, listed });
    expect(steps).toMatchObject([
      { kind: 'replace', ready: { id: 'id-alps' }, old: [{ id: 'id-a' }, { id: 'id-b' }] },
    ]);
  });

  it('keeps of several that nobody remembers the one that runs, else the oldest', () => {
    const at = (id: string, submittedAtUs: number | null, status = 'paused') =>
      held({ id, submittedAtUs, status });
    const kept = (listed: ReturnType<typeof held>[]) => {
      const { steps } = plan({ listed });
      return steps.map((step) => (step.kind === 'replace' ? step.ready?.id : null)).at(-1);
    };
    expect(kept([at('id-old', 1), at('id-runs', 2, 'running')])).toBe('id-runs');
    expect(kept([at('id-young', 2), at('id-old', 1)])).toBe('id-old');
  });
});

describe('one that is not known by its Id', () => {
  it('is adopted, and given the credentials, as nobody knows which it has', () => {
    const listed = [held({ id: 'id-by-hand' })];
    for (const registrations of [[], [registrationOf()]]) {
      expect(plan({ listed, registrations }).steps).toMatchObject([
        { kind: 'edit', edit: { credentials: true }, adopted: true },
      ]);
    }
  });

  it('is adopted from an earlier public URL only when that is named', () => {
    const listed = [held({ endpoint: `${earlierUrl}/notifications/alps` })];
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
    const { steps } = plan({ ...asWanted, registrations: [registrationOf(fields)] });
    expect(steps).toMatchObject([{ kind: 'adopt', current: { id: 'id-alps' } }]);
  });
});

describe('what is no longer wanted', () => {
  const desired = [wanted({ name: 'baltic' })];
  const both = {
    listed: [held(), held({ name: 'baltic' })],
    registrations: [registrationOf(), registrationOf({ name: 'baltic' })],
  };

  it('is reported and kept', () => {
    expect(plan({ ...both, desired })).toMatchObject({ steps: [], unwanted: ['alps'] });
  });

  it('is deleted and forgotten when pruned, with all that deliver to its path', () => {
    const listed = [...both.listed, held({ id: 'id-double' }), stranger()];
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
    const others = plan({ listed: [stranger(), pull()], desired: [], prune: true });
    expect(others).toMatchObject({ steps: [], unwanted: [] });
    expect(others.strangers.map(({ id }) => id)).toEqual(['id-stranger', 'id-pull']);
  });
});

it('counts everything in the account, whosever it is, that is not cancelled', () => {
  const listed = [held(), stranger(), pull({ status: 'paused' }), pull({ status: 'cancelled' })];
  expect(plan({ listed }).counts).toEqual({ running: 2, total: 3 });
});
