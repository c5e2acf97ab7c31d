/** Random accounts, registrations and desired states, within the account's limits, for property tests. */
import fc from 'fast-check';
import type { Registration } from '../../src/admin/account.ts';
import type { DesiredSubscription } from '../../src/core/terms/subscription.ts';
import type { FakeSubscription } from './fake-catalogue.ts';
import {
  credentials,
  dayUs,
  digest,
  earlierUrl,
  managed,
  minuteUs,
  otherCredentials,
  otherDigest,
  otherFilter,
  publicUrl,
  registrationOf,
  startUs,
} from './samples.ts';
import type { Cut, RegisterOptions, Situation } from './set-up.ts';

export interface RandomAccount {
  situation: Situation & { subscriptions: FakeSubscription[]; registrations: Registration[] };
  options: RegisterOptions;
  /** Subscriptions that must not change: unmanaged ones, and obsolete managed ones without pruning. */
  others: FakeSubscription[];
  unmanaged: FakeSubscription[];
  /** True when the desired state and `others` together are within the limits. */
  fits: boolean;
}

/** A call that fails, among this number of calls. */
export const arbitraryCut = (callsMax: number): fc.Arbitrary<Cut> =>
  fc.record<Cut>({
    call: fc.nat(callsMax),
    when: fc.constantFrom('before', 'after'),
    how: fc.constantFrom('killed', 'unavailable'),
  });

const names = ['alps', 'baltic', 'crete'] as const;
const what = {
  events: fc.constantFrom<DesiredSubscription['events']>(
    ['created'],
    ['created', 'modified'],
    ['deleted'],
  ),
  filter: fc.constantFrom('', otherFilter, "contains(Name,'S2')"),
};
const desiredStatus = fc.constantFrom<DesiredSubscription['status']>('running', 'paused');

const state = fc.record({
  status: fc.constantFrom('running', 'running', 'paused', 'paused', 'cancelled', 'suspended'),
  ageDays: fc.integer({ min: 1, max: 50 }),
  wasNotified: fc.boolean(),
});

const managedOne = fc.record({
  ...what,
  name: fc.constantFrom(...names),
  place: fc.constantFrom('here', 'here', 'with slash', 'earlier', 'elsewhere'),
  isRemembered: fc.boolean(),
  hasCredentials: fc.boolean(),
  state,
});

const unmanagedOne = fc.record({
  ...what,
  endpoint: fc.constantFrom(
    null,
    'https://others.example.net/notifications/alps',
    'https://earshot.example.org/notifications/alps',
    `${publicUrl}/notifications`,
    `${publicUrl}/notifications/alps/more`,
    `${publicUrl}/notifications/alps?version=2`,
    `${publicUrl}/elsewhere/alps`,
    'not a URL',
  ),
  state,
});

const known = fc.record({
  ...what,
  name: fc.constantFrom(...names),
  status: desiredStatus,
  unfinished: fc.boolean(),
  changedByPerson: fc.boolean(),
  ran: fc.boolean(),
  idWithoutSubscription: fc.constantFrom(null, 'id-gone'),
  hasGap: fc.boolean(),
});

const drawn = fc.record({
  ours: fc.array(managedOne, { maxLength: 5 }),
  unmanaged: fc.array(unmanagedOne, { maxLength: 3 }),
  registrations: fc.uniqueArray(known, { selector: ({ name }) => name }),
  desired: fc.uniqueArray(
    fc.record({
      ...what,
      type: fc.constant('push' as const),
      name: fc.constantFrom(...names),
      status: desiredStatus,
    }),
    { selector: ({ name }) => name },
  ),
  limits: fc.record({
    runningMax: fc.integer({ min: 1, max: 3 }),
    totalMax: fc.integer({ min: 2, max: 7 }),
  }),
  prune: fc.boolean(),
  showsLastNotification: fc.boolean(),
});

type Drawn = typeof drawn extends fc.Arbitrary<infer Value> ? Value : never;

/** Returns accounts within their limits. */
export function randomAccount(): fc.Arbitrary<RandomAccount> {
  return drawn.filter(isWithinLimits).map(accountOf);
}

function isWithinLimits({ ours, unmanaged, limits }: Drawn): boolean {
  const statuses = [...ours, ...unmanaged].map(({ state }) => state.status);
  const running = statuses.filter((status) => status === 'running').length;
  const total = statuses.filter((status) => status !== 'cancelled').length;
  return running <= limits.runningMax && total <= limits.totalMax;
}

function accountOf(raw: Drawn): RandomAccount {
  const { limits, prune, showsLastNotification, desired } = raw;
  const ids = rememberedIds(raw);
  const account = [...raw.ours.map(managedFrom), ...raw.unmanaged.map(unmanagedFrom)];
  const remembered = new Set(ids.values());
  const managedName = ({ id }: FakeSubscription) => {
    const one = raw.ours[Number(/^ours-(\d+)$/.exec(id)?.[1] ?? -1)];
    if (one === undefined) return null;
    const isOurs = remembered.has(id) || one.place === 'here' || one.place === 'with slash';
    return isOurs ? one.name : null;
  };
  const isDesired = (name: string | null) => desired.some((one) => one.name === name);
  const alive = account.filter(({ status }) => status !== 'cancelled');
  const unmanaged = alive.filter((one) => managedName(one) === null);
  const others = alive.filter((one) => {
    const name = managedName(one);
    return name === null || (!isDesired(name) && !prune);
  });
  const running = [...others, ...desired].filter(({ status }) => status === 'running').length;
  const total = others.length + desired.length;
  return {
    situation: {
      subscriptions: account,
      registrations: raw.registrations.map((one) =>
        registrationFrom(one, ids.get(one.name) ?? null, raw),
      ),
      gaps: raw.registrations
        .filter(({ hasGap, ran }) => hasGap && ran)
        .map(({ name, events, filter }) => ({
          subscription: name,
          events,
          filter,
          fromUs: startUs - dayUs,
          reason: 'paused by command',
        })),
      limits,
      showsLastNotification,
    },
    options: { desired, prune },
    others,
    unmanaged,
    fits: running <= limits.runningMax && total <= limits.totalMax,
  };
}

/** Maps names to the Id in their registration: the Id of the first matching managed subscription. */
function rememberedIds({ ours, registrations }: Drawn): Map<string, string> {
  const ids = new Map<string, string>();
  for (const [index, { name, isRemembered }] of ours.entries()) {
    const isKnown = registrations.some((one) => one.name === name);
    if (isRemembered && isKnown && !ids.has(name)) ids.set(name, `ours-${index}`);
  }
  return ids;
}

function registrationFrom(
  { ran, idWithoutSubscription, hasGap: _, ...fields }: Drawn['registrations'][number],
  id: string | null,
  { ours }: Drawn,
): Registration {
  const itself = ours[Number(id?.slice('ours-'.length) ?? -1)];
  return registrationOf({
    ...fields,
    origin: 'file',
    subscriptionId: id ?? (idWithoutSubscription === null ? null : `id-gone-${fields.name}`),
    // The digest of the credentials in the catalogue; any value when the subscription is gone.
    credentialsDigest: itself === undefined || itself.hasCredentials ? digest : otherDigest,
    runningSeenAtUs: ran ? startUs - dayUs / 4 : null,
  });
}

function managedFrom(one: Drawn['ours'][number], index: number): FakeSubscription {
  const { name, place, events, filter, hasCredentials } = one;
  const endpoints: Record<typeof place, string> = {
    here: `${publicUrl}/notifications/${name}`,
    'with slash': `${publicUrl}/notifications/${name}/`,
    earlier: `${earlierUrl}/notifications/${name}`,
    elsewhere: `https://elsewhere.example.org/notifications/${name}`,
  };
  return managed({
    ...stateFields(one.state),
    id: `ours-${index}`,
    events: [...events],
    filter,
    endpoint: endpoints[place],
    credentials: hasCredentials ? credentials : otherCredentials,
  });
}

function unmanagedFrom(
  { events, filter, endpoint, state }: Drawn['unmanaged'][number],
  index: number,
): FakeSubscription {
  return managed({
    ...stateFields(state),
    id: `unmanaged-${index}`,
    type: endpoint === null ? 'pull' : 'push',
    events: [...events],
    filter,
    endpoint,
    credentials: endpoint === null ? null : otherCredentials,
  });
}

function stateFields({ status, ageDays, wasNotified }: Drawn['ours'][number]['state']) {
  const lastNotificationAtUs = wasNotified ? startUs - minuteUs : null;
  return { status, submittedAtUs: startUs - ageDays * dayUs, lastNotificationAtUs };
}
