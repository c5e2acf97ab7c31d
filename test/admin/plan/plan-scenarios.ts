/** Accounts and wishes for tests that cut the way from the one to the other. */
import type { Held } from './fake-catalogue.ts';
import {
  credentials,
  dayUs,
  earlierUrl,
  held,
  minuteUs,
  otherCredentials,
  otherDigest,
  otherFilter,
  pull,
  registrationOf,
  startUs,
  stranger,
  wanted,
} from './plan-samples.ts';
import type { RegisterOptions, Situation } from './plan-world.ts';

export interface Scenario {
  title: string;
  situation: Situation;
  options: RegisterOptions;
  /** What must be as before. */
  others?: readonly Held[];
  /** What must not be lost on the way, and since when; null where nothing ran that is still wanted. */
  events: { fromUs: number; ids?: readonly string[] } | null;
}

const two = { runningMax: 2, totalMax: 10 };
const newFilter = wanted({ filter: otherFilter });
const runningSeenUs = startUs - dayUs;
const gone = registrationOf({ subscriptionId: 'id-gone', runningSeenAtUs: runningSeenUs });
const pausedByService = held({ status: 'paused', lastNotificationAtUs: runningSeenUs });
const seenLongAgo = registrationOf({ runningSeenAtUs: runningSeenUs, pausedSeenAtUs: startUs });
const lastingGap = {
  subscription: 'alps',
  events: ['created'],
  filter: '',
  fromUs: startUs - dayUs,
  reason: 'paused by command',
};
const drifted = held({ endpoint: 'https://elsewhere.example.org/notifications/alps' });
const atEarlierUrl = held({ endpoint: `${earlierUrl}/notifications/alps` });

const creations: Scenario[] = [
  {
    title: 'a creation',
    situation: { held: [stranger()] },
    options: { desired: [wanted()] },
    others: [stranger()],
    events: null,
  },
  {
    title: 'a creation as paused, in an account where two run',
    situation: { held: [stranger(), pull()] },
    options: { desired: [wanted({ status: 'paused' })] },
    others: [stranger(), pull()],
    events: null,
  },
  {
    title: 'a creation anew of what is gone',
    situation: { registrations: [gone] },
    options: { desired: [wanted()] },
    events: { fromUs: runningSeenUs },
  },
];

const edits: Scenario[] = [
  {
    title: 'a resumption',
    situation: { held: [pausedByService], registrations: [seenLongAgo] },
    options: { desired: [wanted()] },
    events: { fromUs: runningSeenUs },
  },
  {
    title: 'a resumption after a pause by command',
    situation: {
      held: [held({ status: 'paused' })],
      registrations: [registrationOf({ heldBy: 'command', runningSeenAtUs: runningSeenUs })],
      gaps: [lastingGap],
    },
    options: { desired: [wanted()] },
    events: { fromUs: startUs - dayUs },
  },
  {
    title: 'a resumption of one that was never registered here',
    situation: { held: [pausedByService] },
    options: { desired: [wanted()] },
    events: { fromUs: runningSeenUs },
  },
  {
    title: 'a pause',
    situation: { held: [held()], registrations: [registrationOf()] },
    options: { desired: [wanted({ status: 'paused' })] },
    events: { fromUs: startUs },
  },
  {
    title: 'a change of endpoint and credentials',
    situation: {
      held: [{ ...drifted, credentials: otherCredentials }],
      registrations: [registrationOf({ credentialsDigest: otherDigest })],
    },
    options: { desired: [wanted()] },
    events: { fromUs: startUs, ids: ['id-alps'] },
  },
  {
    title: 'an adoption of one with unknown credentials',
    situation: {
      held: [held({ id: 'id-by-hand', credentials: otherCredentials })],
      registrations: [gone],
    },
    options: { desired: [wanted()] },
    events: { fromUs: startUs },
  },
];

const replacements: Scenario[] = [
  {
    title: 'a replacement with room to overlap',
    situation: { held: [held(), stranger()], registrations: [registrationOf()], limits: two },
    options: { desired: [newFilter] },
    others: [stranger()],
    events: { fromUs: startUs },
  },
  {
    title: 'a replacement by changing places',
    situation: {
      held: [held(), stranger()],
      registrations: [registrationOf()],
      limits: { runningMax: 2, totalMax: 3 },
    },
    options: { desired: [{ ...newFilter, events: ['created', 'modified'] }] },
    others: [stranger()],
    events: { fromUs: startUs },
  },
  {
    title: 'a replacement where only one may run',
    situation: {
      held: [held()],
      registrations: [registrationOf()],
      limits: { runningMax: 1, totalMax: 10 },
    },
    options: { desired: [newFilter] },
    events: { fromUs: startUs },
  },
  {
    title: 'a replacement that deletes first',
    situation: {
      held: [held(), stranger(), pull({ status: 'paused' })],
      registrations: [registrationOf()],
      limits: { runningMax: 2, totalMax: 3 },
    },
    options: { desired: [newFilter] },
    others: [stranger(), pull({ status: 'paused' })],
    events: { fromUs: startUs },
  },
  {
    title: 'a replacement by a paused one, in a full account',
    situation: {
      held: [held()],
      registrations: [registrationOf()],
      limits: { runningMax: 1, totalMax: 1 },
    },
    options: { desired: [{ ...newFilter, status: 'paused' }] },
    events: null,
  },
  {
    title: 'a replacement of a paused one by one that runs',
    situation: { held: [pausedByService], registrations: [seenLongAgo] },
    options: { desired: [newFilter] },
    events: { fromUs: runningSeenUs },
  },
  {
    title: 'a replacement with new credentials and an endpoint changed by somebody',
    situation: {
      held: [{ ...drifted, credentials: otherCredentials }],
      registrations: [registrationOf({ credentialsDigest: otherDigest })],
    },
    options: { desired: [newFilter] },
    events: { fromUs: startUs, ids: ['id-alps'] },
  },
  {
    title: 'one of two kept',
    situation: {
      held: [held(), held({ id: 'id-double', credentials: otherCredentials })],
      registrations: [registrationOf()],
    },
    options: { desired: [wanted()] },
    events: { fromUs: startUs },
  },
  {
    title: 'one of two kept, which is to run now',
    situation: {
      held: [held({ status: 'paused' }), held({ id: 'id-double' })],
      registrations: [registrationOf({ status: 'paused', runningSeenAtUs: null })],
      limits: { runningMax: 1, totalMax: 10 },
    },
    options: { desired: [wanted()] },
    events: { fromUs: startUs },
  },
];

const removalsAndMoves: Scenario[] = [
  {
    title: 'a deletion of what is no longer wanted',
    situation: {
      held: [held({ status: 'paused' }), held({ name: 'baltic' })],
      registrations: [registrationOf(), registrationOf({ name: 'baltic' })],
      gaps: [lastingGap],
    },
    options: { desired: [wanted({ name: 'baltic' })], prune: true },
    events: null,
  },
  {
    title: 'a move from an earlier public URL',
    situation: { held: [atEarlierUrl, stranger()] },
    options: { desired: [wanted()], movedFrom: earlierUrl },
    others: [stranger()],
    events: { fromUs: startUs },
  },
  {
    title: 'a move from an earlier public URL with another filter',
    situation: {
      held: [{ ...atEarlierUrl, credentials: otherCredentials }, stranger()],
      limits: { runningMax: 2, totalMax: 3 },
    },
    options: { desired: [newFilter], movedFrom: earlierUrl },
    others: [stranger()],
    events: { fromUs: startUs },
  },
  {
    title: 'several steps at once in an account that is full',
    situation: {
      held: [
        held({ credentials: otherCredentials }),
        held({ name: 'baltic', credentials }),
        held({ name: 'crete', status: 'paused', submittedAtUs: startUs - minuteUs }),
      ],
      registrations: [
        registrationOf({ credentialsDigest: otherDigest }),
        registrationOf({ name: 'baltic' }),
        registrationOf({ name: 'crete', status: 'paused', runningSeenAtUs: null }),
      ],
      limits: { runningMax: 2, totalMax: 3 },
    },
    options: {
      desired: [newFilter, wanted({ name: 'baltic', status: 'paused' }), wanted({ name: 'delta' })],
      prune: true,
    },
    events: { fromUs: startUs },
  },
];

export const scenarios: readonly Scenario[] = [
  ...creations,
  ...edits,
  ...replacements,
  ...removalsAndMoves,
];
