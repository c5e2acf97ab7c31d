/** Reviews of a subscription: its lifetime, changes by the service or a person, and the file. */
import { describe, expect, it } from 'vitest';
import { lifetimeOf } from '../../src/admin/review.ts';
import {
  dayUs,
  desiredState,
  managed,
  otherFilter,
  publicUrl,
  registrationOf,
  startUs,
} from './samples.ts';
import { outcomeOf, type ReviewCase, reviewOf } from './set-up.ts';

type Known = Parameters<typeof lifetimeOf>[0];

const ago = (days: number) => startUs - days * dayUs;
const unseen = managed({ submittedAtUs: null, lastNotificationAtUs: null });
const unknown: Known = {
  listed: undefined,
  registration: undefined,
  lastDeliveryAtUs: null,
  nowUs: startUs,
};
const lifetime = (known: Partial<Known>) => lifetimeOf({ ...unknown, ...known });

describe('the last notification', () => {
  const submitted = { submittedAtUs: ago(100) };

  it.each<[string, Partial<Known>, number]>([
    [
      'is the one that the catalogue shows',
      { listed: managed({ ...submitted, lastNotificationAtUs: ago(3) }) },
      3,
    ],
    [
      'is the recorded delivery when the catalogue shows none',
      { listed: managed({ ...submitted, lastNotificationAtUs: null }), lastDeliveryAtUs: ago(4) },
      4,
    ],
    [
      'is the one that the catalogue shows, not a later delivery, which anyone may have sent',
      { listed: managed({ ...submitted, lastNotificationAtUs: ago(5) }), lastDeliveryAtUs: ago(4) },
      5,
    ],
    [
      'is the recorded one when the catalogue no longer shows any',
      { listed: unseen, registration: registrationOf({ notifiedAtUs: ago(6) }) },
      6,
    ],
    [
      'is the creation when there is none',
      { listed: managed({ ...submitted, lastNotificationAtUs: null }) },
      100,
    ],
    [
      'is the creation, not an older notification of an earlier subscription',
      {
        listed: managed({ submittedAtUs: ago(2), lastNotificationAtUs: null }),
        registration: registrationOf({ notifiedAtUs: ago(90) }),
      },
      2,
    ],
    ['is now when no date is known', { listed: unseen }, 0],
  ])('%s', (_, known, days) => {
    expect(lifetime(known).lastNotificationAtUs).toBe(ago(days));
  });
});

describe('the last sign of activity', () => {
  it('is the last notification, or a resumption after it', () => {
    const listed = managed({ lastNotificationAtUs: ago(50), submittedAtUs: ago(80) });
    const resumed = registrationOf({ activityAtUs: ago(9), notifiedAtUs: ago(50) });
    const before = registrationOf({ activityAtUs: ago(70), notifiedAtUs: ago(70) });
    expect(lifetime({ listed, registration: resumed }).lastActivityAtUs).toBe(ago(9));
    expect(lifetime({ listed, registration: before }).lastActivityAtUs).toBe(ago(50));
  });
});

describe('the next pause and deletion', () => {
  it('come 60 days after the last activity, and 365 days after the last notification', () => {
    const registration = registrationOf({ activityAtUs: ago(10), notifiedAtUs: ago(40) });
    const { pausesAtUs, cancelsAtUs } = lifetime({ listed: unseen, registration });
    expect(pausesAtUs).toBe(startUs + 50 * dayUs);
    expect(cancelsAtUs).toBe(startUs + 325 * dayUs);
  });
});

/** The last notification came at the start; all other dates are older. */
const old = startUs - 100 * dayUs;
const ownRecords = { notifiedAtUs: old, activityAtUs: old, runningSeenAtUs: startUs };
const shown: ReviewCase = {
  listed: { submittedAtUs: old, lastNotificationAtUs: startUs },
  registration: ownRecords,
};
/** Three sources for the date of the last notification, each the only one. */
const sources: [string, ReviewCase][] = [
  ['the catalogue shows', shown],
  [
    'was delivered here',
    {
      listed: { submittedAtUs: old, lastNotificationAtUs: null },
      registration: ownRecords,
      lastDeliveryAtUs: startUs,
    },
  ],
  [
    'was remembered',
    {
      listed: { submittedAtUs: null, lastNotificationAtUs: null },
      registration: { ...ownRecords, notifiedAtUs: startUs },
    },
  ],
];

const withStatus = (
  { listed, ...input }: ReviewCase,
  status: string,
  days: number,
  us = 0,
): ReviewCase => ({
  ...input,
  listed: { ...listed, status },
  nowUs: startUs + days * dayUs + us,
});
const gone = (input: ReviewCase, days: number, us = 0): ReviewCase => ({
  ...input,
  listed: null,
  nowUs: startUs + days * dayUs + us,
});

describe.each(sources)('counted from the notification that %s', (_, known) => {
  it('a pause is undone from the 60th day on, and reported before', () => {
    expect(outcomeOf(withStatus(known, 'paused', 60, -1))).toBe('- paused-by-person');
    expect(outcomeOf(withStatus(known, 'paused', 60))).toBe('resume');
    expect(outcomeOf(withStatus(known, 'paused', 61))).toBe('resume');
  });

  it('a note announces the pause two weeks before', () => {
    expect(outcomeOf(withStatus(known, 'running', 46, -1))).toBe('-');
    expect(outcomeOf(withStatus(known, 'running', 46))).toBe('- pause-ahead');
    expect(outcomeOf(withStatus(known, 'running', 59))).toBe('- pause-ahead');
  });

  it('a note announces the deletion a month before, running or paused', () => {
    const resumed: ReviewCase = {
      ...known,
      registration: { ...known.registration, activityAtUs: startUs + 330 * dayUs },
    };
    const registeredAsPaused: ReviewCase = {
      ...known,
      registration: { ...known.registration, status: 'paused' },
    };
    for (const [input, status] of [
      [resumed, 'running'],
      [registeredAsPaused, 'paused'],
    ] as const) {
      expect(outcomeOf(withStatus(input, status, 335, -1))).toBe('-');
      expect(outcomeOf(withStatus(input, status, 335))).toBe('- deletion-ahead');
      expect(outcomeOf(withStatus(input, status, 364))).toBe('- deletion-ahead');
    }
  });

  it('a missing subscription is recreated from the 365th day on, and reported before', () => {
    // Earlier rounds recorded the date.
    const registration = { ...known.registration, notifiedAtUs: startUs };
    const remembered = { ...known, registration };
    expect(outcomeOf(gone(remembered, 365, -1))).toBe('- gone');
    expect(outcomeOf(gone(remembered, 365))).toBe('recreate');
    expect(outcomeOf(gone(remembered, 500))).toBe('recreate');
  });
});

describe('a warning', () => {
  const textAt = (status: string, days: number) =>
    reviewOf(withStatus(shown, status, days))
      .notes.map(({ message }) => message)
      .join(' ');

  it('contains the date and the remaining days', () => {
    expect(textAt('running', 50)).toMatch(/since 2026-05-01: .* pause the subscription in 10 days/);
    expect(textAt('running', 60)).toContain('at any time');
  });

  it('announces a deletion and gives a possible reason', () => {
    const pausedState = {
      ...shown,
      registration: { ...shown.registration, status: 'paused' as const },
    };
    const [note] = reviewOf(withStatus(pausedState, 'paused', 355)).notes;
    expect(note?.message).toMatch(/since 2026-05-01: .* delete the subscription in 10 days/);
    expect(note?.advice).toContain('filter');
  });

  it('is reported in addition to a note about a kept pause', () => {
    const left = { ...shown.registration, heldBy: 'command' as const };
    expect(outcomeOf(withStatus({ ...shown, registration: left }, 'paused', 340))).toBe(
      '- paused-by-command deletion-ahead',
    );
  });
});

describe('the time of a pause', () => {
  it('is the first observation, independent of later reviews', () => {
    const registration = { ...shown.registration, pausedSeenAtUs: startUs + 30 * dayUs };
    expect(outcomeOf(withStatus({ ...shown, registration }, 'paused', 90))).toBe(
      '- paused-by-person',
    );
    const late = { ...shown.registration, pausedSeenAtUs: startUs + 60 * dayUs };
    expect(outcomeOf(withStatus({ ...shown, registration: late }, 'paused', 90))).toBe('resume');
  });

  it('is recorded at the first observation, and cleared when the subscription runs', () => {
    const seen = reviewOf(withStatus(shown, 'paused', 30)).observed;
    expect(seen.pausedSeenAtUs).toBe(startUs + 30 * dayUs);
    const again = reviewOf({ ...withStatus(shown, 'paused', 31), registration: seen }).observed;
    expect(again.pausedSeenAtUs).toBe(startUs + 30 * dayUs);
    const runs = reviewOf({ ...withStatus(shown, 'running', 32), registration: again }).observed;
    expect(runs).toMatchObject({ pausedSeenAtUs: null, runningSeenAtUs: startUs + 32 * dayUs });
  });

  it('is compared with a resumption after the last notification', () => {
    const registration = { ...shown.registration, activityAtUs: startUs + 61 * dayUs };
    const input = { ...shown, registration };
    expect(outcomeOf(withStatus(input, 'paused', 121, -1))).toBe('- paused-by-person');
    expect(outcomeOf(withStatus(input, 'paused', 121))).toBe('resume');
  });
});

describe('an action', () => {
  it('has a reason for the history', () => {
    expect(reviewOf(withStatus(shown, 'paused', 60)).reason).toContain('60 days');
    const notified = { ...shown, registration: { ...shown.registration, notifiedAtUs: startUs } };
    expect(reviewOf(gone(notified, 365)).reason).toContain('365 days');
    expect(reviewOf(withStatus(shown, 'running', 1)).reason).toBe('');
  });

  it('recreates the subscription as registered, even paused', () => {
    const registration = { status: 'paused' as const, notifiedAtUs: startUs };
    expect(outcomeOf(gone({ registration }, 365))).toBe('recreate');
  });

  it.each(sources)('records the notification that %s', (_, known) => {
    const { observed } = reviewOf(withStatus(known, 'running', 10));
    expect(observed).toMatchObject({ notifiedAtUs: startUs, activityAtUs: startUs });
  });
});

const yearLater = startUs + 400 * dayUs;

describe('a subscription as registered', () => {
  it('causes no action and no note', () => {
    expect(outcomeOf({})).toBe('-');
    expect(outcomeOf({ listed: { status: 'paused' }, registration: { status: 'paused' } })).toBe(
      '-',
    );
  });
});

describe('a paused subscription', () => {
  it('that our command did not pause counts as paused by a person permanently', () => {
    const { observed, notes } = reviewOf({ listed: { status: 'paused' } });
    expect(observed.heldBy).toBe('person');
    expect(notes[0]?.advice).toContain('earshot register');
    const later = reviewOf({
      listed: { status: 'paused' },
      registration: observed,
      nowUs: startUs + 200 * dayUs,
    });
    expect(later).toMatchObject({ action: null, observed: { heldBy: 'person' } });
  });

  it('that our command paused is kept, even after 60 days', () => {
    const registration = { heldBy: 'command', pausedSeenAtUs: startUs + 70 * dayUs } as const;
    const input = { listed: { status: 'paused' }, registration, nowUs: startUs + 90 * dayUs };
    expect(outcomeOf(input)).toBe('- paused-by-command');
    expect(reviewOf(input).observed.heldBy).toBe('command');
  });

  it('that a person paused is kept, even if first observed after 60 days', async () => {
    const registration = { heldBy: 'person', pausedSeenAtUs: startUs + 70 * dayUs } as const;
    const input = { listed: { status: 'paused' }, registration, nowUs: startUs + 90 * dayUs };
    expect(outcomeOf(input)).toBe('- paused-by-person');
  });

  it('that runs again is maintained again', () => {
    for (const heldBy of ['person', 'command'] as const) {
      expect(reviewOf({ registration: { heldBy } })).toMatchObject({
        action: null,
        notes: [],
        observed: { heldBy: null, pausedSeenAtUs: null },
      });
    }
  });
});

describe('a subscription registered as paused', () => {
  it('that runs is kept running, and reported', () => {
    const input = { registration: { status: 'paused' } } as const;
    expect(outcomeOf(input)).toBe('- resumed-elsewhere');
    expect(reviewOf(input).observed.heldBy).toBe('person');
  });

  it('that is paused needs no action', () => {
    const listed = { status: 'paused', lastNotificationAtUs: startUs - 70 * dayUs };
    expect(outcomeOf({ listed, registration: { status: 'paused' } })).toBe('-');
  });
});

describe('a missing subscription', () => {
  it('that the service cannot have deleted is never recreated', () => {
    const first = reviewOf({ listed: null });
    expect(first).toMatchObject({ action: null, observed: { heldBy: 'person' } });
    expect(first.notes).toMatchObject([{ code: 'gone' }]);
    expect(outcomeOf({ listed: null, registration: first.observed, nowUs: yearLater })).toBe(
      '- gone',
    );
  });

  it('that our command paused is not recreated', () => {
    const registration = { heldBy: 'command' } as const;
    expect(outcomeOf({ listed: null, registration, nowUs: yearLater })).toBe('- gone');
    expect(reviewOf({ listed: null, registration }).observed.heldBy).toBe('command');
  });
});

describe('drift', () => {
  it.each([
    ['the filter', { filter: otherFilter }, 'drift-filter'],
    ['the events', { events: ['deleted'] }, 'drift-events'],
    ['an endpoint', { endpoint: 'https://elsewhere.example.org/alps' }, 'drift-endpoint'],
    [
      'all of them',
      { filter: '', events: ['deleted'], endpoint: 'https://elsewhere.example.org/alps' },
      'drift-events-filter-endpoint',
    ],
  ])('in %s is reported and kept', (_, listed, code) => {
    expect(outcomeOf({ listed })).toBe(`- ${code}`);
  });

  it('in a filter does not prevent a resumption', () => {
    const listed = { status: 'paused', filter: otherFilter };
    expect(outcomeOf({ listed, nowUs: startUs + 61 * dayUs })).toBe('resume drift-filter');
  });

  it('is not reported for equivalent notations', () => {
    const { filter } = managed();
    const endpoint = 'https://EARSHOT.example.org:8443/notifications/alps';
    expect(outcomeOf({ listed: { filter: `${filter} `, endpoint } })).toBe('-');
  });

  it('includes several subscriptions with one path', () => {
    const input = { more: [managed({ id: 'id-double' })] };
    expect(outcomeOf(input)).toBe('- several');
    expect(reviewOf(input).current?.id).toBe('id-alps');
  });

  it('includes another Id, whose credentials are unknown', () => {
    const input = { listed: { id: 'id-by-hand' } };
    expect(outcomeOf(input)).toBe('- other-id');
    expect(reviewOf(input).observed).toMatchObject({
      subscriptionId: 'id-by-hand',
      credentialsDigest: null,
    });
  });
});

describe('an unknown status', () => {
  it('is reported with its text, and kept', () => {
    const { action, notes } = reviewOf({ listed: { status: 'suspended' } });
    expect(action).toBe(null);
    expect(notes).toMatchObject([
      { code: 'unknown-status', message: expect.stringContaining('suspended') },
    ]);
  });
});

describe('an interrupted change', () => {
  it.each([
    ['is there', {}],
    ['is paused', { status: 'paused' }],
    ['is gone', null],
  ])('is finished when the subscription %s', (_, listed) => {
    expect(outcomeOf({ listed, registration: { unfinished: true } })).toBe('finish');
  });

  it('is not reported as drift', () => {
    const input = {
      listed: { filter: otherFilter },
      more: [managed({ id: 'id-new' })],
      registration: { unfinished: true },
    };
    expect(outcomeOf(input)).toBe('finish');
  });
});

describe('the observation', () => {
  it('changes only the observed fields of a registration', () => {
    const listed = { lastNotificationAtUs: startUs - 5 };
    expect(reviewOf({ listed }).observed).toEqual(
      registrationOf({
        notifiedAtUs: startUs - 5,
        activityAtUs: startUs - 5,
        runningSeenAtUs: startUs,
      }),
    );
  });

  it('never replaces a time by an earlier one', () => {
    const listed = { lastNotificationAtUs: startUs - 50 * dayUs };
    const { observed } = reviewOf({ listed });
    expect(observed.notifiedAtUs).toBe(registrationOf().notifiedAtUs);
  });

  it('uses the registered Id, of several', () => {
    const input = {
      listed: { status: 'paused' },
      more: [managed({ id: 'id-double', endpoint: `${publicUrl}/notifications/alps` })],
    };
    expect(reviewOf(input).observed).toMatchObject({
      subscriptionId: 'id-alps',
      pausedSeenAtUs: startUs,
    });
  });
});

const pausedByService = { listed: { status: 'paused' }, nowUs: startUs + 61 * dayUs };
const deletedByService = { listed: null, nowUs: startUs + 400 * dayUs };

describe('a configuration file', () => {
  it('equal to the registration changes nothing', () => {
    expect(outcomeOf({ inFile: desiredState() })).toBe('-');
    expect(outcomeOf({ ...pausedByService, inFile: desiredState() })).toBe('resume');
    expect(outcomeOf({ ...deletedByService, inFile: desiredState() })).toBe('recreate');
  });

  it('without the subscription stops its maintenance, and is reported', () => {
    expect(outcomeOf({ inFile: null })).toBe('- unwanted');
    expect(outcomeOf({ ...pausedByService, inFile: null })).toBe('- unwanted');
    expect(outcomeOf({ ...deletedByService, inFile: null })).toBe('- unwanted');
    expect(reviewOf({ inFile: null }).notes[0]?.advice).toContain('--prune');
  });

  it.each([
    ['another filter', desiredState({ filter: otherFilter })],
    ['other events', desiredState({ events: ['deleted'] })],
    ['another status', desiredState({ status: 'paused' })],
  ])('with %s is reported, not applied', (_, inFile) => {
    expect(outcomeOf({ inFile })).toBe('- file-changed');
    expect(reviewOf({ inFile }).notes[0]?.advice).toContain('earshot register');
  });

  it('with a new status of paused prevents a resumption or a recreation', () => {
    const inFile = desiredState({ status: 'paused' });
    expect(outcomeOf({ ...pausedByService, inFile })).toBe('- file-changed');
    expect(outcomeOf({ ...deletedByService, inFile })).toBe('- file-changed');
  });

  it('with a registered status of paused allows a recreation as paused', () => {
    const inFile = desiredState({ status: 'paused' });
    const registration = { status: 'paused' } as const;
    expect(outcomeOf({ ...deletedByService, registration, inFile })).toBe('recreate');
  });

  it('gives no reason without an action', () => {
    expect(reviewOf({ ...pausedByService, inFile: null }).reason).toBe('');
  });
});

describe('without a file', () => {
  it('the registered subscription is maintained', () => {
    expect(outcomeOf({ ...pausedByService, inFile: undefined })).toBe('resume');
    expect(outcomeOf({ ...deletedByService, inFile: undefined })).toBe('recreate');
  });
});
