/** Random accounts, registrations and desired states, within the account's limits, for property tests. */
import fc from 'fast-check';
import { countsOf } from '../../src/admin/differences.ts';
import type { DesiredSubscription } from '../../src/core/terms/subscription.ts';
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
import type { Cut } from './set-up.ts';

export type RandomAccount = ReturnType<typeof accountOf>;

/** A call that fails, among this number of calls. */
export const arbitraryCut = (callsMax: number): fc.Arbitrary<Cut> =>
  fc.record<Cut>({
    call: fc.nat(callsMax),
    when: fc.constantFrom('before', 'after'),
    how: fc.constantFrom('killed', 'unavailable'),
  });

const name = fc.constantFrom('alps', 'baltic', 'crete');
const version = {
  events: fc.constantFrom<DesiredSubscription['events']>(
    ['created'],
    ['created', 'modified'],
    ['deleted'],
  ),
  filter: fc.constantFrom('', otherFilter, "contains(Name,'S2')"),
};
const desiredStatus = fc.constantFrom<DesiredSubscription['status']>('running', 'paused');

/** Fields of a subscription in the catalogue. */
const subscription = {
  events: version.events.map((events) => [...events]),
  filter: version.filter,
  status: fc.constantFrom('running', 'running', 'paused', 'paused', 'cancelled', 'suspended'),
  submittedAtUs: fc.integer({ min: 1, max: 50 }).map((days) => startUs - days * dayUs),
  lastNotificationAtUs: fc.constantFrom(null, startUs - minuteUs),
};

const drawn = fc.record({
  ours: fc.array(
    fc.record({
      name,
      /** The last two are managed only by their id. */
      place: fc.constantFrom(
        ...[publicUrl, publicUrl, `${publicUrl}/`, earlierUrl, 'https://elsewhere.example.org'],
      ),
      isRemembered: fc.boolean(),
      fields: fc.record({
        ...subscription,
        credentials: fc.constantFrom(credentials, otherCredentials),
      }),
    }),
    { maxLength: 5 },
  ),
  unmanaged: fc.array(
    fc.record({
      ...subscription,
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
    }),
    { maxLength: 3 },
  ),
  registrations: fc.uniqueArray(
    fc.record({
      ...{ ...version, name, status: desiredStatus },
      unfinished: fc.boolean(),
      changedByPerson: fc.boolean(),
      runningSeenAtUs: fc.constantFrom(null, startUs - dayUs / 4),
      goneId: fc.constantFrom(null, 'id-gone'),
      hasGap: fc.boolean(),
    }),
    { selector: (one) => one.name },
  ),
  desired: fc.uniqueArray(
    fc.record({ ...version, name, type: fc.constant('push' as const), status: desiredStatus }),
    { selector: (one) => one.name },
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
export function randomAccount() {
  return drawn.map(accountOf).filter(({ situation: { subscriptions, limits } }) => {
    const { running, total } = countsOf(subscriptions);
    return running <= limits.runningMax && total <= limits.totalMax;
  });
}

function accountOf({ limits, prune, desired, showsLastNotification, ...raw }: Drawn) {
  const ours = raw.ours.map(({ place, fields, ...one }, i) => {
    // A slash at the end of the endpoint is no difference.
    const endpoint = `${place.replace(/\/$/, '')}/notifications/${one.name}${place.endsWith('/') ? '/' : ''}`;
    const isHere = endpoint.startsWith(publicUrl);
    return { ...one, isHere, subscription: managed({ ...fields, id: `ours-${i}`, endpoint }) };
  });
  const registrations = raw.registrations.map(({ goneId, hasGap: _, ...known }) => {
    const own = ours.find((one) => one.isRemembered && one.name === known.name)?.subscription;
    return registrationOf({
      ...{ ...known, origin: 'file' },
      subscriptionId: own?.id ?? (goneId && `${goneId}-${known.name}`),
      // The digest of the credentials in the catalogue; any value when the subscription is gone.
      credentialsDigest: own?.credentials === otherCredentials ? otherDigest : digest,
    });
  });
  const isManaged = ({ isHere, subscription: { id } }: (typeof ours)[number]) =>
    isHere || registrations.some(({ subscriptionId }) => subscriptionId === id);
  const isOther = (one: (typeof ours)[number]) =>
    !isManaged(one) || (!prune && !desired.some((each) => each.name === one.name));
  const foreign = raw.unmanaged.map((fields, i) =>
    managed({
      ...{ ...fields, id: `unmanaged-${i}`, type: fields.endpoint === null ? 'pull' : 'push' },
      credentials: fields.endpoint === null ? null : otherCredentials,
    }),
  );
  const alive = (all: typeof ours) =>
    [...all.map((one) => one.subscription), ...foreign].filter(
      ({ status }) => status !== 'cancelled',
    );
  const others = alive(ours.filter(isOther));
  const { running, total } = countsOf([...others, ...desired]);
  return {
    situation: {
      ...{ subscriptions: [...ours.map((one) => one.subscription), ...foreign], registrations },
      gaps: raw.registrations
        .filter(({ hasGap, runningSeenAtUs }) => hasGap && runningSeenAtUs !== null)
        .map(({ name: of, events, filter }) => ({
          ...{ subscription: of, events, filter, fromUs: startUs - dayUs, reason: 'paused' },
        })),
      ...{ limits, showsLastNotification },
    },
    options: { desired, prune },
    /** Subscriptions that must not change: unmanaged ones, and obsolete managed ones without pruning. */
    others,
    unmanaged: alive(ours.filter((one) => !isManaged(one))),
    /** True when the desired state and `others` together are within the limits. */
    fits: running <= limits.runningMax && total <= limits.totalMax,
  };
}
