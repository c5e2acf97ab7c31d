/** Applying plans: a creation whose answer is lost, replacements, and complete registrations. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { applyPlan, type PlanOptions, preparePlan } from '../../src/admin/apply-plan.ts';
import { createOnce } from '../../src/admin/create-once.ts';
import type { ProbeReport } from '../../src/admin/endpoint-probe.ts';
import { maintain } from '../../src/admin/maintain.ts';
import {
  type AccountContext,
  digestCredentials,
  isDigestOf,
} from '../../src/admin/plan-context.ts';
import type { SubscriptionClient } from '../../src/admin/subscription-client.ts';
import { AppError } from '../../src/domain/app-error.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';
import { expectNoEventLost, expectSettled } from './expect-settled.ts';
import {
  credentials,
  dayUs,
  desiredState,
  digest,
  managed,
  otherFilter,
  publicUrl,
  registrationOf,
  startUs,
  unmanaged,
} from './samples.ts';
import { type AccountSetUp, openAccount, openSetUp, type Situation } from './set-up.ts';

type Create = SubscriptionClient['create'];

const noAnswer = () => new AppError('unavailable', 'No answer came.');

/** Creates through a client that treats each attempt as the test specifies. */
async function startCreation(
  tries: ((create: Create) => Create)[],
  { situation = {}, listDelayMs = 0 }: { situation?: Situation; listDelayMs?: number } = {},
) {
  const planned = await openAccount(situation);
  onTestFinished(planned.close);
  const setUp = { ...planned.context(), listDelayMs };
  const calls: string[] = [];
  const client: SubscriptionClient = {
    ...planned.catalogue.client,
    list: () => {
      calls.push('list');
      return planned.catalogue.client.list();
    },
    create: (subscription) => {
      calls.push('create');
      const attempt = tries[calls.filter((word) => word === 'create').length - 1];
      const real = planned.catalogue.client.create;
      return attempt === undefined ? real(subscription) : attempt(real)(subscription);
    },
  };
  const listed = await planned.catalogue.client.list();
  const about = {
    credentialsDigest: digest,
    actor: 'register',
    listed,
    listedAtUs: setUp.nowUs(),
  } as const;
  return {
    planned,
    calls,
    create: () => createOnce(desiredState(), { ...setUp, ...about, client }),
  };
}

/** Creates the subscription, but loses the answer. */
const loseAnswer = (create: Create): Create => {
  return async (subscription) => {
    await create(subscription);
    throw noAnswer();
  };
};
/** Loses the request. */
const loseRequest = (): Create => () => Promise.reject(noAnswer());

describe('a creation', () => {
  it('is requested once when it is answered', async () => {
    const { planned, calls, create } = await startCreation([]);
    const made = await create();
    expect(planned.catalogue.subscriptions()).toMatchObject([{ id: made.id, status: 'running' }]);
    expect(calls).toEqual(['create']);
  });

  it('that succeeded without an answer is found, and not requested again', async () => {
    const { planned, calls, create } = await startCreation([loseAnswer]);
    const made = await create();
    expect(planned.catalogue.subscriptions().map(({ id }) => id)).toEqual([made.id]);
    expect(calls).toEqual(['create', 'list']);
  });

  it('whose answer cannot be read is found', async () => {
    const unreadable = (create: Create): Create => {
      return async (subscription) => {
        await create(subscription);
        return null;
      };
    };
    const { planned, calls, create } = await startCreation([unreadable]);
    const made = await create();
    expect(planned.catalogue.subscriptions().map(({ id }) => id)).toEqual([made.id]);
    expect(calls).toEqual(['create', 'list']);
  });

  it('that never arrived is requested again, after a check of the list', async () => {
    const { planned, calls, create } = await startCreation([loseRequest, loseRequest]);
    const made = await create();
    expect(planned.catalogue.subscriptions().map(({ id }) => id)).toEqual([made.id]);
    expect(calls).toEqual(['create', 'list', 'create', 'list', 'create']);
  });

  it('that takes effect late is found, because the check waits for it', async () => {
    const late = (create: Create): Create => {
      return async (subscription) => {
        setTimeout(() => void create(subscription), 10);
        throw noAnswer();
      };
    };
    const { planned, calls, create } = await startCreation([late], { listDelayMs: 200 });
    const made = await create();
    expect(planned.catalogue.subscriptions().map(({ id }) => id)).toEqual([made.id]);
    expect(calls).toEqual(['create', 'list']);
  });

  it('that is refused because the first attempt took the last place is found', async () => {
    let makeLate = () => Promise.resolve();
    const late = (create: Create): Create => {
      return (subscription) => {
        makeLate = async () => void (await create(subscription));
        return Promise.reject(noAnswer());
      };
    };
    const afterwards = (create: Create): Create => {
      return async (subscription) => {
        await makeLate();
        return create(subscription);
      };
    };
    const situation = { subscriptions: [unmanaged()] };
    const { planned, calls, create } = await startCreation([late, afterwards], { situation });
    const made = await create();
    expect(planned.catalogue.subscriptions().map(({ id }) => id)).toEqual([
      'id-unmanaged',
      made.id,
    ]);
    expect(calls).toEqual(['create', 'list', 'create', 'list']);
  });

  it('that is refused at a repetition, and is not in the list, fails', async () => {
    const refuse = (): Create => () => Promise.reject(new AppError('invalid', 'No.'));
    const { calls, create } = await startCreation([loseRequest, refuse]);
    await expect(create()).rejects.toMatchObject({ code: 'invalid' });
    expect(calls).toEqual(['create', 'list', 'create', 'list']);
  });

  it('fails after three attempts, with the reason of the last', async () => {
    const { planned, calls, create } = await startCreation([loseRequest, loseRequest, loseRequest]);
    await expect(create()).rejects.toMatchObject({ code: 'unavailable' });
    expect(calls.filter((word) => word === 'create')).toHaveLength(3);
    expect(calls.at(-1)).toBe('list');
    expect(planned.catalogue.subscriptions()).toEqual([]);
  });

  it.each(['invalid', 'unauthorized', 'too_many', 'conflict'] as const)(
    'that is refused as %s is not requested again',
    async (code) => {
      const refuse = (): Create => () => Promise.reject(new AppError(code, 'No.'));
      const { calls, create } = await startCreation([refuse]);
      await expect(create()).rejects.toMatchObject({ code });
      expect(calls).toEqual(['create']);
    },
  );
});

describe('the check of the list', () => {
  it('ignores subscriptions that existed before or differ from the request', async () => {
    const { planned, create } = await startCreation([loseRequest], {
      situation: { subscriptions: [managed({ status: 'paused' }), unmanaged()] },
    });
    planned.catalogue.put(
      managed({ id: 'id-another-filter', status: 'paused', filter: otherFilter }),
    );
    planned.catalogue.put(managed({ id: 'id-cancelled', status: 'cancelled' }));
    planned.catalogue.put(managed({ id: 'id-other-name', name: 'baltic', status: 'paused' }));
    const made = await create();
    expect(made.id).toBe('made-1');
  });
});

describe('a first attempt that takes effect after its repetition', () => {
  it('is reduced to one subscription by the next registration', async () => {
    let makeLate = () => Promise.resolve();
    const veryLate = (create: Create): Create => {
      return (subscription) => {
        makeLate = async () => void (await create(subscription));
        return Promise.reject(noAnswer());
      };
    };
    const { planned, create } = await startCreation([veryLate]);
    await create();
    await makeLate();
    expect(planned.catalogue.subscriptions()).toHaveLength(2);
    const options = { desired: [desiredState()] };
    await planned.register(options);
    await expectSettled(planned, options);
  });
});

const options = { desired: [desiredState({ filter: otherFilter })] };
const known = { registrations: [registrationOf()] };

const openKnown = (situation: Situation) => openSetUp({ ...known, ...situation });

/** Successive states of the old and the new subscription: "running -", "running running", … */
function course({ moments }: AccountSetUp): string[] {
  const words = moments.map(({ subscriptions: account }) => {
    const old = account.find(({ id }) => id === 'id-alps')?.status ?? '-';
    const fresh = account.find(({ id }) => id === 'made-1')?.status ?? '-';
    return `${old} ${fresh}`;
  });
  return words.filter((word, index) => word !== words[index - 1]);
}

/** The time range in which no managed subscription ran. */
function silence({ moments }: AccountSetUp) {
  const silent = moments.filter(
    ({ subscriptions: account }) =>
      !account.some(({ id, status }) => id !== 'id-unmanaged' && status === 'running'),
  );
  return { fromUs: silent[0]?.atUs, toUs: silent.at(-1)?.atUs };
}

describe('a replacement', () => {
  it('within the limits starts the new one before it deletes the old one, without a gap', async () => {
    const setUp = await openKnown({ subscriptions: [managed()] });
    await setUp.register(options);
    expect(course(setUp)).toEqual(['running -', 'running running', '- running']);
    expect(await setUp.administration.gaps()).toEqual([]);
  });

  it('at the running limit creates the new one paused, and switches within a gap', async () => {
    const setUp = await openKnown({ subscriptions: [managed(), unmanaged()] });
    await setUp.register(options);
    expect(course(setUp)).toEqual([
      'running -',
      'running paused',
      'paused paused',
      'paused running',
      '- running',
    ]);
    const gaps = await setUp.administration.gaps();
    const { events, filter } = desiredState({ filter: otherFilter });
    expect(gaps).toMatchObject([{ subscription: 'alps', events, filter }]);
    const [gap] = gaps;
    const { fromUs = 0, toUs = Number.POSITIVE_INFINITY } = silence(setUp);
    expect(gap?.fromUs).toBeLessThanOrEqual(fromUs);
    expect(gap?.toUs).toBeGreaterThanOrEqual(toUs);
  });

  it('in a full account deletes first, within a gap', async () => {
    const limits = { runningMax: 2, totalMax: 2 };
    const setUp = await openKnown({ subscriptions: [managed(), unmanaged()], limits });
    await setUp.register(options);
    expect(course(setUp)).toEqual(['running -', '- -', '- running']);
    const gaps = await setUp.administration.gaps();
    // One gap for the old filter and one for the new filter.
    expect(gaps.map(({ filter }) => filter)).toEqual([desiredState().filter, otherFilter]);
    const { fromUs = 0, toUs = Number.POSITIVE_INFINITY } = silence(setUp);
    for (const gap of gaps) {
      expect(gap.fromUs).toBeLessThanOrEqual(fromUs);
      expect(gap.toUs).toBeGreaterThanOrEqual(toUs);
    }
  });

  it('by a paused one records the gap when it runs again', async () => {
    const setUp = await openKnown({ subscriptions: [managed()] });
    await setUp.register({ desired: [desiredState({ filter: otherFilter, status: 'paused' })] });
    expect(course(setUp)).toEqual(['running -', 'running paused', '- paused']);
    setUp.pass(dayUs);
    await setUp.register(options);
    const gaps = await setUp.administration.gaps();
    const versions = [desiredState(), desiredState({ filter: otherFilter })];
    expectNoEventLost(setUp.moments, gaps, { name: 'alps', versions, fromUs: startUs });
  });

  it('of a paused one records a gap since it was last seen running', async () => {
    const runningSeenAtUs = startUs - 3 * dayUs;
    const setUp = await openKnown({
      subscriptions: [managed({ status: 'paused' })],
      registrations: [registrationOf({ runningSeenAtUs, pausedSeenAtUs: startUs - dayUs })],
    });
    await setUp.register(options);
    expect(await setUp.administration.gaps()).toMatchObject([
      { fromUs: runningSeenAtUs, toUs: expect.any(Number), filter: otherFilter },
    ]);
  });

  it('is recorded in the history, with the reason and the deleted subscription', async () => {
    const setUp = await openKnown({ subscriptions: [managed(), unmanaged()] });
    await setUp.register(options);
    expect(await setUp.administration.history({ limit: 10 })).toMatchObject([
      {
        subscription: 'alps',
        subscriptionId: 'made-1',
        action: 'replaced',
        actor: 'register',
        reason: expect.stringMatching(/changed filter.*deleted id-alps.*gap/),
      },
    ]);
  });
});

describe('a refusal of the catalogue', () => {
  /** Makes the catalogue refuse the calls that `refuses` selects. */
  function refusing(setUp: AccountSetUp, refuses: (call: string) => boolean): void {
    const { client } = setUp.catalogue;
    const { create, edit } = client;
    const refuse = (call: string) => {
      if (refuses(call)) throw new AppError('invalid', 'The filter is incorrect.');
    };
    client.create = async (given) => {
      refuse(`create ${given.filter}`);
      return create(given);
    };
    client.edit = async (id, changes) => {
      refuse(`edit ${id} ${changes.status}`);
      return edit(id, changes);
    };
  }

  it.each([
    ['within the limits', [managed()], 10],
    ['at the running limit', [managed(), unmanaged()], 10],
  ])('of a filter leaves the old subscription unchanged (%s)', async (_, account, totalMax) => {
    const setUp = await openKnown({ subscriptions: account, limits: { runningMax: 2, totalMax } });
    refusing(setUp, (call) => call.startsWith('create'));
    await expect(setUp.register(options)).rejects.toMatchObject({ code: 'invalid' });
    expect(setUp.catalogue.subscriptions()).toEqual(account);
    expect(await setUp.administration.registrations()).toEqual([registrationOf()]);
    expect((await setUp.plan({ desired: [desiredState()] })).plan.steps).toEqual([]);
  });

  it('of a filter after the deletion of the old one is repaired by maintenance, with the old filter', async () => {
    const limits = { runningMax: 1, totalMax: 1 };
    const setUp = await openKnown({ subscriptions: [managed()], limits });
    refusing(setUp, (call) => call.includes(otherFilter));
    await expect(setUp.register(options)).rejects.toMatchObject({ code: 'invalid' });
    await maintain({ inFile: null }, setUp.context());
    await expectSettled(setUp, { desired: [desiredState()] });
    const gaps = await setUp.administration.gaps();
    const versions = [desiredState(), desiredState({ filter: otherFilter })];
    expectNoEventLost(setUp.moments, gaps, { name: 'alps', versions, fromUs: startUs });
  });

  it('of an edit leaves the desired state unchanged', async () => {
    const account = [managed({ status: 'paused' })];
    const setUp = await openKnown({ subscriptions: account });
    refusing(setUp, (call) => call.startsWith('edit'));
    await expect(setUp.register({ desired: [desiredState()] })).rejects.toThrow('incorrect');
    expect(setUp.catalogue.subscriptions()).toEqual(account);
    expect(await setUp.administration.registrations()).toEqual([registrationOf()]);
  });

  it('of a creation leaves nothing to finish', async () => {
    const setUp = await openKnown({ registrations: [] });
    refusing(setUp, (call) => call.startsWith('create'));
    await expect(setUp.register({ desired: [desiredState()] })).rejects.toThrow('incorrect');
    expect(await setUp.administration.registrations()).toEqual([]);
  });

  it('of a start of the new one resumes the old one', async () => {
    const setUp = await openKnown({ subscriptions: [managed(), unmanaged()] });
    refusing(setUp, (call) => call === 'edit made-1 running');
    await expect(setUp.register(options)).rejects.toThrow('incorrect');
    const account = setUp.catalogue.subscriptions();
    expect(account.find(({ id }) => id === 'id-alps')).toMatchObject({ status: 'running' });
    expect(account.find(({ id }) => id === 'made-1')).toMatchObject({ status: 'paused' });
    const versions = [desiredState()];
    const gaps = await setUp.administration.gaps();
    expectNoEventLost(setUp.moments, gaps, { name: 'alps', versions, fromUs: startUs });
  });

  it('of every start is reported with the first reason', async () => {
    const setUp = await openKnown({ subscriptions: [managed(), unmanaged()] });
    refusing(setUp, (call) => call.endsWith(' running'));
    await expect(setUp.register(options)).rejects.toThrow('incorrect');
    const gaps = await setUp.administration.gaps();
    expect(gaps).toMatchObject([{ subscription: 'alps', toUs: null }]);
  });
});

const well: ProbeReport = { fault: null, status: 200, tls: null };
const endpoint = `${publicUrl}/notifications/alps`;

/** An account with a store on disk; `answers` returns the report of the probe. */
async function openOnDisk(
  situation: Situation = {},
  answers: (url: string) => ProbeReport = () => well,
) {
  const { store, dataDir, reopen } = await openSqliteStore();
  const planned = await openAccount(situation, store.administration);
  const probed: unknown[] = [];
  const setUp: AccountContext = {
    ...planned.context(),
    probe: async (url, given) => {
      probed.push({ url, given, writes: planned.catalogue.writes.length });
      return answers(url);
    },
  };
  const register = async (options: PlanOptions, how: { skipProbe?: boolean } = {}) => {
    const steps: string[] = [];
    const prepared = await preparePlan(options, setUp);
    const onStep = (step: { kind: string }) => void steps.push(step.kind);
    await applyPlan(prepared, setUp, { actor: 'register', onStep, ...how });
    return steps;
  };
  return { ...planned, setUp, probed, register, dataDir, reopen };
}

describe('a registration', () => {
  it('reaches the desired state at first, when repeated, and with another filter', async () => {
    const { register, catalogue, administration } = await openOnDisk({
      subscriptions: [unmanaged()],
    });
    expect(await register({ desired: [desiredState()] })).toEqual(['create']);
    expect(await register({ desired: [desiredState()] })).toEqual([]);
    const changed = desiredState({ filter: otherFilter, events: ['created', 'modified'] });
    expect(await register({ desired: [changed] })).toEqual(['replace']);
    expect(await register({ desired: [changed] })).toEqual([]);
    const [others, ours] = catalogue.subscriptions();
    expect(others).toEqual(unmanaged());
    expect(ours).toMatchObject({ filter: otherFilter, status: 'running', endpoint, credentials });
    expect(await administration.gaps()).toMatchObject([{ filter: otherFilter }]);
    const history = await administration.history({ limit: 10 });
    expect(history.map(({ action, actor }) => `${action} ${actor}`)).toEqual([
      'replaced register',
      'created register',
    ]);
  });

  it('is visible to the next program that opens the store', async () => {
    const { register, reopen, catalogue } = await openOnDisk();
    await register({ desired: [desiredState()] });
    const { administration } = await reopen();
    const [made] = catalogue.subscriptions();
    expect(await administration.registrations()).toMatchObject([
      { ...desiredState(), subscriptionId: made?.id, unfinished: false },
    ]);
    expect(await administration.history({ limit: 10 })).toHaveLength(1);
  });

  it('leaves no password in the data directory', async () => {
    const { register, dataDir } = await openOnDisk();
    await register({ desired: [desiredState()] });
    const files = readdirSync(dataDir);
    expect(files).not.toEqual([]);
    const encoded = Buffer.from(`${credentials.username}:${credentials.password}`);
    for (const file of files) {
      const text = readFileSync(join(dataDir, file), 'latin1');
      expect(text.includes(credentials.password), file).toBe(false);
      expect(text.includes(encoded.toString('base64')), file).toBe(false);
    }
  });
});

describe('the endpoint', () => {
  const fault = { stage: 'answer', message: 'it answers 401.', advice: 'Restart it.' } as const;
  const unwell = (): ProbeReport => ({ fault, status: 401, tls: null });

  it('is probed with the credentials before anything is created', async () => {
    const { register, probed } = await openOnDisk();
    await register({ desired: [desiredState()] });
    expect(probed).toEqual([{ url: endpoint, given: credentials, writes: 0 }]);
  });

  it('that fails the probe stops the registration, with the reason and the advice', async () => {
    const baltic = desiredState({ name: 'baltic', status: 'paused' });
    const situation = {
      subscriptions: [managed({ name: 'baltic' })],
      registrations: [registrationOf({ name: 'baltic' })],
    };
    const { register, catalogue, administration } = await openOnDisk(situation, unwell);
    const refused = register({ desired: [baltic, desiredState()] });
    await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
    await expect(refused).rejects.toThrow(`the check of ${endpoint} failed`);
    await expect(refused).rejects.toThrow('it answers 401.');
    await expect(refused).rejects.toMatchObject({
      details: [fault.advice, expect.stringContaining('--skip-probe')],
    });
    expect(catalogue.writes).toEqual([]);
    expect(await administration.registrations()).toEqual(situation.registrations);
    expect(await administration.history({ limit: 10 })).toEqual([]);
  });

  it('is not probed with `skipProbe`', async () => {
    const { register, probed, catalogue } = await openOnDisk({}, unwell);
    await register({ desired: [desiredState()] }, { skipProbe: true });
    expect(probed).toEqual([]);
    expect(catalogue.subscriptions()).toHaveLength(1);
  });

  it.each([
    ['a replacement', managed({ filter: otherFilter }), 1],
    ['other credentials', managed({ id: 'id-by-hand' }), 1],
    ['another endpoint', managed({ endpoint: 'https://elsewhere.example.org/' }), 1],
    ['a resumption', managed({ status: 'paused' }), 0],
    ['nothing to do', managed(), 0],
  ])('is probed only when a step needs it: %s', async (_, there, times) => {
    const situation = { subscriptions: [there], registrations: [registrationOf()] };
    const { register, probed } = await openOnDisk(situation);
    await register({ desired: [desiredState()] });
    expect(probed).toHaveLength(times);
  });
});

describe('a plan beyond the limits', () => {
  it('is refused before any change, with the subscriptions beyond the limits and the advice', async () => {
    const account = [unmanaged(), unmanaged({ id: 'id-another' })];
    const { register, catalogue, probed } = await openOnDisk({ subscriptions: account });
    const refused = register({ desired: [desiredState()] });
    await expect(refused).rejects.toMatchObject({
      code: 'conflict',
      details: [
        expect.stringContaining('3 subscriptions would be running'),
        expect.stringContaining('paused'),
      ],
    });
    expect(probed).toEqual([]);
    expect(catalogue.writes).toEqual([]);
  });
});

describe('the account listed again', () => {
  it('must match the plan, even if every step succeeded', async () => {
    const { register, catalogue } = await openOnDisk({
      subscriptions: [managed({ status: 'paused' })],
      registrations: [registrationOf()],
    });
    // The specification does not define the answer to a resumption beyond the limit.
    catalogue.client.edit = async () => undefined;
    const refused = register({ desired: [desiredState()] });
    await expect(refused).rejects.toMatchObject({
      code: 'conflict',
      details: [expect.stringContaining('Subscriptions that differ: alps')],
    });
  });
});

const pair = { username: 'catalogue', password: 'a long password, ü : %' };
const knownDigest = digestCredentials(pair, 'salt');

describe('the digest of a pair', () => {
  it('matches its credentials', () => {
    expect(isDigestOf(knownDigest, pair)).toBe(true);
    expect(isDigestOf(digestCredentials(pair, 'another'), pair)).toBe(true);
  });

  it.each([
    ['another user', { ...pair, username: 'catalogu' }],
    ['another password', { ...pair, password: `${pair.password} ` }],
    ['no credentials', { username: '', password: '' }],
    ['user name and password swapped', { username: pair.password, password: pair.username }],
  ])('does not match %s', (_, other) => {
    expect(isDigestOf(knownDigest, other)).toBe(false);
  });

  it('differs by salt, so that equal credentials are not recognizable', () => {
    expect(digestCredentials(pair, 'another')).not.toBe(knownDigest);
  });

  it('contains neither the user name nor the password', () => {
    expect(knownDigest).not.toContain(pair.username);
    expect(knownDigest).not.toContain(pair.password);
    expect(knownDigest).toMatch(/^scrypt:salt:[0-9a-f]{64}$/);
  });

  it('is slow to compute', () => {
    const began = performance.now();
    digestCredentials(pair, 'salt');
    expect(performance.now() - began).toBeGreaterThan(1);
  });

  it('matches exactly its credentials, for any credentials and any salt', () => {
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 });
    const username = text.filter((word) => !word.includes(':'));
    const credentials = fc.record({ username, password: text });
    const salt = fc.base64String({ minLength: 4, maxLength: 40 });
    fc.assert(
      fc.property(credentials, credentials, salt, (one, other, salted) => {
        const made = digestCredentials(one, salted);
        expect(isDigestOf(made, one)).toBe(true);
        const same = one.username === other.username && one.password === other.password;
        expect(isDigestOf(made, other)).toBe(same);
      }),
      { numRuns: 40 },
    );
  });
});

describe('an invalid digest', () => {
  it.each([
    null,
    '',
    'scrypt',
    'scrypt:',
    'scrypt:salt',
    'scrypt:salt:',
    knownDigest.slice(0, -1),
    `${knownDigest}0`,
  ])('matches no pair: %s', (text) => {
    expect(isDigestOf(text, pair)).toBe(false);
  });
});
