/** Registrations interrupted at every call, before and after its effect: a repetition has the same result. */

import { describe, expect, it } from 'vitest';
import { maintain } from '../../src/admin/maintain.ts';
import { isThorough } from '../helpers/thorough.ts';
import { expectNoEventLost, expectSettled } from './expect-settled.ts';
import type { FakeSubscription } from './fake-catalogue.ts';
import {
  credentials,
  dayUs,
  desiredState,
  earlierUrl,
  managed,
  minuteUs,
  otherCredentials,
  otherDigest,
  otherFilter,
  pull,
  registrationOf,
  startUs,
  unmanaged,
} from './samples.ts';
import {
  type AccountSetUp,
  type Cut,
  openAccount,
  type RegisterOptions,
  type Situation,
} from './set-up.ts';

interface Scenario {
  title: string;
  situation: Situation;
  options: RegisterOptions;
  /** Subscriptions that must not change. */
  others?: readonly FakeSubscription[];
  /** Start of the range without lost events; null when no subscription ran that is still desired. */
  events: { fromUs: number; ids?: readonly string[] } | null;
}

const two = { runningMax: 2, totalMax: 10 };
const newFilter = desiredState({ filter: otherFilter });
const runningSeenUs = startUs - dayUs;
const gone = registrationOf({ subscriptionId: 'id-gone', runningSeenAtUs: runningSeenUs });
const pausedByService = managed({ status: 'paused', lastNotificationAtUs: runningSeenUs });
const seenLongAgo = registrationOf({ runningSeenAtUs: runningSeenUs, pausedSeenAtUs: startUs });
const lastingGap = {
  subscription: 'alps',
  events: ['created'],
  filter: '',
  fromUs: startUs - dayUs,
  reason: 'paused by command',
};
const drifted = managed({ endpoint: 'https://elsewhere.example.org/notifications/alps' });
const atEarlierUrl = managed({ endpoint: `${earlierUrl}/notifications/alps` });

const creations: Scenario[] = [
  {
    title: 'a creation',
    situation: { subscriptions: [unmanaged()] },
    options: { desired: [desiredState()] },
    others: [unmanaged()],
    events: null,
  },
  {
    title: 'a creation as paused, at the running limit',
    situation: { subscriptions: [unmanaged(), pull()] },
    options: { desired: [desiredState({ status: 'paused' })] },
    others: [unmanaged(), pull()],
    events: null,
  },
  {
    title: 'a second creation of a deleted subscription',
    situation: { registrations: [gone] },
    options: { desired: [desiredState()] },
    events: { fromUs: runningSeenUs },
  },
];

const edits: Scenario[] = [
  {
    title: 'a resumption',
    situation: { subscriptions: [pausedByService], registrations: [seenLongAgo] },
    options: { desired: [desiredState()] },
    events: { fromUs: runningSeenUs },
  },
  {
    title: 'a resumption after a pause by command',
    situation: {
      subscriptions: [managed({ status: 'paused' })],
      registrations: [registrationOf({ heldBy: 'command', runningSeenAtUs: runningSeenUs })],
      gaps: [lastingGap],
    },
    options: { desired: [desiredState()] },
    events: { fromUs: startUs - dayUs },
  },
  {
    title: 'a resumption of a subscription without a registration',
    situation: { subscriptions: [pausedByService] },
    options: { desired: [desiredState()] },
    events: { fromUs: runningSeenUs },
  },
  {
    title: 'a pause',
    situation: { subscriptions: [managed()], registrations: [registrationOf()] },
    options: { desired: [desiredState({ status: 'paused' })] },
    events: { fromUs: startUs },
  },
  {
    title: 'a change of endpoint and credentials',
    situation: {
      subscriptions: [{ ...drifted, credentials: otherCredentials }],
      registrations: [registrationOf({ credentialsDigest: otherDigest })],
    },
    options: { desired: [desiredState()] },
    events: { fromUs: startUs, ids: ['id-alps'] },
  },
  {
    title: 'an adoption of a subscription with unknown credentials',
    situation: {
      subscriptions: [managed({ id: 'id-by-hand', credentials: otherCredentials })],
      registrations: [gone],
    },
    options: { desired: [desiredState()] },
    events: { fromUs: startUs },
  },
];

const replacements: Scenario[] = [
  {
    title: 'a replacement with an overlap',
    situation: {
      subscriptions: [managed(), unmanaged()],
      registrations: [registrationOf()],
      limits: two,
    },
    options: { desired: [newFilter] },
    others: [unmanaged()],
    events: { fromUs: startUs },
  },
  {
    title: 'a replacement by a switch',
    situation: {
      subscriptions: [managed(), unmanaged()],
      registrations: [registrationOf()],
      limits: { runningMax: 2, totalMax: 3 },
    },
    options: { desired: [{ ...newFilter, events: ['created', 'modified'] }] },
    others: [unmanaged()],
    events: { fromUs: startUs },
  },
  {
    title: 'a replacement with a running limit of one',
    situation: {
      subscriptions: [managed()],
      registrations: [registrationOf()],
      limits: { runningMax: 1, totalMax: 10 },
    },
    options: { desired: [newFilter] },
    events: { fromUs: startUs },
  },
  {
    title: 'a replacement that deletes first',
    situation: {
      subscriptions: [managed(), unmanaged(), pull({ status: 'paused' })],
      registrations: [registrationOf()],
      limits: { runningMax: 2, totalMax: 3 },
    },
    options: { desired: [newFilter] },
    others: [unmanaged(), pull({ status: 'paused' })],
    events: { fromUs: startUs },
  },
  {
    title: 'a replacement by a paused one, in a full account',
    situation: {
      subscriptions: [managed()],
      registrations: [registrationOf()],
      limits: { runningMax: 1, totalMax: 1 },
    },
    options: { desired: [{ ...newFilter, status: 'paused' }] },
    events: null,
  },
  {
    title: 'a replacement of a paused one by a running one',
    situation: { subscriptions: [pausedByService], registrations: [seenLongAgo] },
    options: { desired: [newFilter] },
    events: { fromUs: runningSeenUs },
  },
  {
    title: 'a replacement with new credentials and an endpoint changed by a person',
    situation: {
      subscriptions: [{ ...drifted, credentials: otherCredentials }],
      registrations: [registrationOf({ credentialsDigest: otherDigest })],
    },
    options: { desired: [newFilter] },
    events: { fromUs: startUs, ids: ['id-alps'] },
  },
  {
    title: 'a reduction of two to one',
    situation: {
      subscriptions: [managed(), managed({ id: 'id-double', credentials: otherCredentials })],
      registrations: [registrationOf()],
    },
    options: { desired: [desiredState()] },
    events: { fromUs: startUs },
  },
  {
    title: 'a reduction of two to one that must be resumed',
    situation: {
      subscriptions: [managed({ status: 'paused' }), managed({ id: 'id-double' })],
      registrations: [registrationOf({ status: 'paused', runningSeenAtUs: null })],
      limits: { runningMax: 1, totalMax: 10 },
    },
    options: { desired: [desiredState()] },
    events: { fromUs: startUs },
  },
];

const removalsAndMoves: Scenario[] = [
  {
    title: 'a deletion of an obsolete subscription',
    situation: {
      subscriptions: [managed({ status: 'paused' }), managed({ name: 'baltic' })],
      registrations: [registrationOf(), registrationOf({ name: 'baltic' })],
      gaps: [lastingGap],
    },
    options: { desired: [desiredState({ name: 'baltic' })], prune: true },
    events: null,
  },
  {
    title: 'a move from an earlier public URL',
    situation: { subscriptions: [atEarlierUrl, unmanaged()] },
    options: { desired: [desiredState()], movedFrom: earlierUrl },
    others: [unmanaged()],
    events: { fromUs: startUs },
  },
  {
    title: 'a move from an earlier public URL with another filter',
    situation: {
      subscriptions: [{ ...atEarlierUrl, credentials: otherCredentials }, unmanaged()],
      limits: { runningMax: 2, totalMax: 3 },
    },
    options: { desired: [newFilter], movedFrom: earlierUrl },
    others: [unmanaged()],
    events: { fromUs: startUs },
  },
  {
    title: 'several steps in a full account',
    situation: {
      subscriptions: [
        managed({ credentials: otherCredentials }),
        managed({ name: 'baltic', credentials }),
        managed({ name: 'crete', status: 'paused', submittedAtUs: startUs - minuteUs }),
      ],
      registrations: [
        registrationOf({ credentialsDigest: otherDigest }),
        registrationOf({ name: 'baltic' }),
        registrationOf({ name: 'crete', status: 'paused', runningSeenAtUs: null }),
      ],
      limits: { runningMax: 2, totalMax: 3 },
    },
    options: {
      desired: [
        newFilter,
        desiredState({ name: 'baltic', status: 'paused' }),
        desiredState({ name: 'delta' }),
      ],
      prune: true,
    },
    events: { fromUs: startUs },
  },
];

const scenarios: readonly Scenario[] = [
  ...creations,
  ...edits,
  ...replacements,
  ...removalsAndMoves,
];

/** Lists the cuts of a scenario: four for each call of an uninterrupted run; by default two, of different kinds. */
async function cutsOf({ situation, options }: Scenario): Promise<Cut[]> {
  const setUp = await openAccount(situation);
  await setUp.register(options);
  const calls = setUp.calls().length;
  setUp.close();
  expect(calls).toBeGreaterThan(2);
  return Array.from({ length: calls }, (_, call) => call).flatMap((call) =>
    (['before', 'after'] as const).flatMap((when, i) =>
      (['killed', 'unavailable'] as const)
        .filter((_, kind) => isThorough || (call + i + kind) % 2 === 0)
        .map((how) => ({ call, when, how })),
    ),
  );
}

async function expectEnded(
  setUp: AccountSetUp,
  { options, others = [], situation, events }: Scenario,
): Promise<void> {
  await expectSettled(setUp, options, others);
  const gaps = await setUp.administration.gaps();
  const lasting = gaps.filter(({ toUs }) => toUs === null).map(({ subscription }) => subscription);
  const paused = options.desired.filter(({ status }) => status === 'paused');
  expect(paused.map(({ name }) => name)).toEqual(expect.arrayContaining(lasting));
  if (events === null) return;
  const before = situation.subscriptions?.find(({ id }) => id === 'id-alps');
  const after = options.desired.find(({ name }) => name === 'alps');
  const versions: { events: readonly string[]; filter: string }[] = [];
  for (const version of [before, after]) if (version !== undefined) versions.push(version);
  expectNoEventLost(setUp.moments, gaps, { name: 'alps', versions, ...events });
}

/** For each cut: opens an account, calls `disturb`, registers, and expects the result of the scenario. */
async function expectNoFailure(
  scenario: Scenario,
  disturb: (setUp: AccountSetUp, cut: Cut) => Promise<void>,
): Promise<void> {
  const failures: string[] = [];
  for (const cut of await cutsOf(scenario)) {
    const setUp = await openAccount(scenario.situation);
    await disturb(setUp, cut);
    const cutAt = setUp.calls()[cut.call];
    // A failed request may be repeated and refused.
    setUp.catalogue.refusals.length = 0;
    try {
      expect((await setUp.register(scenario.options)).limitErrors).toEqual([]);
      await expectEnded(setUp, scenario);
    } catch (error) {
      failures.push(`${cut.how} ${cut.when} ${cut.call} ${cutAt}: ${error}`);
    }
    setUp.close();
  }
  expect(failures).toEqual([]);
}

describe.each(scenarios)('$title', (scenario) => {
  const { situation, options } = scenario;

  it('reaches the desired state without an interruption', async () => {
    const setUp = await openAccount(situation);
    const { limitErrors } = await setUp.register(options);
    expect(limitErrors).toEqual([]);
    await expectEnded(setUp, scenario);
    const { length } = setUp.catalogue.writes;
    await setUp.register(options);
    expect(setUp.catalogue.writes).toHaveLength(length);
    expect(new Set(setUp.catalogue.writes).size).toBe(length);
    setUp.close();
  });

  it('has the same result when it is cut at any call and repeated', async () => {
    await expectNoFailure(scenario, async (setUp, cut) => {
      await setUp.register(options, cut).catch(() => undefined);
      setUp.pass(dayUs / 24);
    });
  });

  it('has the same result when it is cut twice at the same call', async () => {
    await expectNoFailure(scenario, async (setUp, cut) => {
      await setUp.register(options, cut).catch(() => undefined);
      setUp.pass(minuteUs);
      await setUp.register(options, cut).catch(() => undefined);
      setUp.pass(minuteUs);
    });
  });

  it('has the same result with a maintenance round after a cut', async () => {
    await expectNoFailure(scenario, async (setUp, cut) => {
      await setUp.register(options, cut).catch(() => undefined);
      setUp.pass(dayUs / 24);
      await maintain({ inFile: null }, setUp.context());
    });
  });

  it('is finished by maintenance alone after the first change', async () => {
    if (options.prune || options.movedFrom !== undefined) return;
    for (const cut of await cutsOf(scenario)) {
      const setUp = await openAccount(situation);
      await setUp.register(options, cut).catch(() => undefined);
      if (setUp.catalogue.writes.length > 0) {
        await maintain({ inFile: null }, setUp.context());
        setUp.catalogue.refusals.length = 0;
        await expectEnded(setUp, scenario);
      }
      setUp.close();
    }
  });
});
