/** Reviews of a subscription: its lifetime, what the service did, what a person did, and what the file says. */
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
      'is the delivery that came here, when the catalogue shows none',
      { listed: managed({ ...submitted, lastNotificationAtUs: null }), lastDeliveryAtUs: ago(4) },
      4,
    ],
    [
      'is the one that the catalogue shows, whatever came here: anybody may have sent that',
      { listed: managed({ ...submitted, lastNotificationAtUs: ago(5) }), lastDeliveryAtUs: ago(4) },
      5,
    ],
    [
      'is the one that was shown before, when the catalogue shows nothing any more',
      { listed: unseen, registration: registrationOf({ notifiedAtUs: ago(6) }) },
      6,
    ],
    [
      'is the creation when there was none',
      { listed: managed({ ...submitted, lastNotificationAtUs: null }) },
      100,
    ],
    [
      'is the creation of the one that is there, not what an earlier one was sent',
      {
        listed: managed({ submittedAtUs: ago(2), lastNotificationAtUs: null }),
        registration: registrationOf({ notifiedAtUs: ago(90) }),
      },
      2,
    ],
    ['is now when nothing at all is known', { listed: unseen }, 0],
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

describe('the end', () => {
  it('comes 60 days after the last activity, and 365 after the last notification', () => {
    const registration = registrationOf({ activityAtUs: ago(10), notifiedAtUs: ago(40) });
    const { pausesAtUs, cancelsAtUs } = lifetime({ listed: unseen, registration });
    expect(pausesAtUs).toBe(startUs + 50 * dayUs);
    expect(cancelsAtUs).toBe(startUs + 325 * dayUs);
  });
});

/** The last notification came at the start; what else is known is older. */
const old = startUs - 100 * dayUs;
const ownRecords = { notifiedAtUs: old, activityAtUs: old, runningSeenAtUs: startUs };
const shown: ReviewCase = {
  listed: { submittedAtUs: old, lastNotificationAtUs: startUs },
  registration: ownRecords,
};
/** Three ways to know of the last notification, each the only one. */
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
  it('a pause from the 60th day on is undone, an earlier one left and told', () => {
    expect(outcomeOf(withStatus(known, 'paused', 60, -1))).toBe('- paused-by-person');
    expect(outcomeOf(withStatus(known, 'paused', 60))).toBe('resume');
    expect(outcomeOf(withStatus(known, 'paused', 61))).toBe('resume');
  });

  it('the pause is told of two weeks ahead', () => {
    expect(outcomeOf(withStatus(known, 'running', 46, -1))).toBe('-');
    expect(outcomeOf(withStatus(known, 'running', 46))).toBe('- pause-ahead');
    expect(outcomeOf(withStatus(known, 'running', 59))).toBe('- pause-ahead');
  });

  it('the deletion is told of a month ahead, whether it runs or not', () => {
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

  it('one that is gone from the 365th day on is made anew, else it is told', () => {
    // What was shown or delivered was remembered in the rounds before.
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

  it('says since when, and in how many days', () => {
    expect(textAt('running', 50)).toMatch(/since 2026-05-01: .* pause the subscription in 10 days/);
    expect(textAt('running', 60)).toContain('at any time');
  });

  it('says that a deletion comes, and what may be the reason', () => {
    const pausedState = {
      ...shown,
      registration: { ...shown.registration, status: 'paused' as const },
    };
    const [note] = reviewOf(withStatus(pausedState, 'paused', 355)).notes;
    expect(note?.message).toMatch(/since 2026-05-01: .* delete the subscription in 10 days/);
    expect(note?.advice).toContain('filter');
  });

  it('stands beside what was told of a pause that is left', () => {
    const left = { ...shown.registration, heldBy: 'command' as const };
    expect(outcomeOf(withStatus({ ...shown, registration: left }, 'paused', 340))).toBe(
      '- paused-by-command deletion-ahead',
    );
  });
});

describe('when a pause came', () => {
  it('is when it was first seen, however late it is looked at again', () => {
    const registration = { ...shown.registration, pausedSeenAtUs: startUs + 30 * dayUs };
    expect(outcomeOf(withStatus({ ...shown, registration }, 'paused', 90))).toBe(
      '- paused-by-person',
    );
    const late = { ...shown.registration, pausedSeenAtUs: startUs + 60 * dayUs };
    expect(outcomeOf(withStatus({ ...shown, registration: late }, 'paused', 90))).toBe('resume');
  });

  it('is remembered at the first sight, and forgotten when it runs', () => {
    const seen = reviewOf(withStatus(shown, 'paused', 30)).observed;
    expect(seen.pausedSeenAtUs).toBe(startUs + 30 * dayUs);
    const again = reviewOf({ ...withStatus(shown, 'paused', 31), registration: seen }).observed;
    expect(again.pausedSeenAtUs).toBe(startUs + 30 * dayUs);
    const runs = reviewOf({ ...withStatus(shown, 'running', 32), registration: again }).observed;
    expect(runs).toMatchObject({ pausedSeenAtUs: null, runningSeenAtUs: startUs + 32 * dayUs });
  });

  it('is reckoned from a resumption that came after the last notification', () => {
    const registration = { ...shown.registration, activityAtUs: startUs + 61 * dayUs };
    const input = { ...shown, registration };
    expect(outcomeOf(withStatus(input, 'paused', 121, -1))).toBe('- paused-by-person');
    expect(outcomeOf(withStatus(input, 'paused', 121))).toBe('resume');
  });
});

describe('what is undone', () => {
  it('has its reason for the history', () => {
    expect(reviewOf(withStatus(shown, 'paused', 60)).reason).toContain('60 days');
    const notified = { ...shown, registration: { ...shown.registration, notifiedAtUs: startUs } };
    expect(reviewOf(gone(notified, 365)).reason).toContain('365 days');
    expect(reviewOf(withStatus(shown, 'running', 1)).reason).toBe('');
  });

  it('is made anew as it was registered, also paused', () => {
    const registration = { status: 'paused' as const, notifiedAtUs: startUs };
    expect(outcomeOf(gone({ registration }, 365))).toBe('recreate');
  });

  it.each(sources)('lets the notification that %s be remembered', (_, known) => {
    const { observed } = reviewOf(withStatus(known, 'running', 10));
    expect(observed).toMatchObject({ notifiedAtUs: startUs, activityAtUs: startUs });
  });
});

const yearLater = startUs + 400 * dayUs;

describe('one that is as registered', () => {
  it('is nothing to speak of', () => {
    expect(outcomeOf({})).toBe('-');
    expect(outcomeOf({ listed: { status: 'paused' }, registration: { status: 'paused' } })).toBe(
      '-',
    );
  });
});

describe('one that was paused', () => {
  it('at the catalogue is held as a person’s from then on, whatever time passes', () => {
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

  it('by our own command is held as that, also after 60 days', () => {
    const registration = { heldBy: 'command', pausedSeenAtUs: startUs + 70 * dayUs } as const;
    const input = { listed: { status: 'paused' }, registration, nowUs: startUs + 90 * dayUs };
    expect(outcomeOf(input)).toBe('- paused-by-command');
    expect(reviewOf(input).observed.heldBy).toBe('command');
  });

  it('by a person is held, though it was seen only after 60 days', async () => {
    const registration = { heldBy: 'person', pausedSeenAtUs: startUs + 70 * dayUs } as const;
    const input = { listed: { status: 'paused' }, registration, nowUs: startUs + 90 * dayUs };
    expect(outcomeOf(input)).toBe('- paused-by-person');
  });

  it('and runs again is held no more', () => {
    for (const heldBy of ['person', 'command'] as const) {
      expect(reviewOf({ registration: { heldBy } })).toMatchObject({
        action: null,
        notes: [],
        observed: { heldBy: null, pausedSeenAtUs: null },
      });
    }
  });
});

describe('one that should be paused', () => {
  it('and runs is left running, and told', () => {
    const input = { registration: { status: 'paused' } } as const;
    expect(outcomeOf(input)).toBe('- resumed-elsewhere');
    expect(reviewOf(input).observed.heldBy).toBe('person');
  });

  it('and is paused by whomever is as it should be', () => {
    const listed = { status: 'paused', lastNotificationAtUs: startUs - 70 * dayUs };
    expect(outcomeOf({ listed, registration: { status: 'paused' } })).toBe('-');
  });
});

describe('one that is gone', () => {
  it('before its time was deleted by a person, and stays so for ever', () => {
    const first = reviewOf({ listed: null });
    expect(first).toMatchObject({ action: null, observed: { heldBy: 'person' } });
    expect(first.notes).toMatchObject([{ code: 'gone' }]);
    expect(outcomeOf({ listed: null, registration: first.observed, nowUs: yearLater })).toBe(
      '- gone',
    );
  });

  it('after our own command had paused it is not made to run', () => {
    const registration = { heldBy: 'command' } as const;
    expect(outcomeOf({ listed: null, registration, nowUs: yearLater })).toBe('- gone');
    expect(reviewOf({ listed: null, registration }).observed.heldBy).toBe('command');
  });
});

describe('drift', () => {
  it.each([
    ['a filter', { filter: otherFilter }, 'drift-filter'],
    ['events', { events: ['deleted'] }, 'drift-events'],
    ['an endpoint', { endpoint: 'https://elsewhere.example.org/alps' }, 'drift-endpoint'],
    [
      'all of them',
      { filter: '', events: ['deleted'], endpoint: 'https://elsewhere.example.org/alps' },
      'drift-events-filter-endpoint',
    ],
  ])('in %s is told and left', (_, listed, code) => {
    expect(outcomeOf({ listed })).toBe(`- ${code}`);
  });

  it('in an endpoint does not hinder that it is resumed', () => {
    const listed = { status: 'paused', filter: otherFilter };
    expect(outcomeOf({ listed, nowUs: startUs + 61 * dayUs })).toBe('resume drift-filter');
  });

  it('is not what is only written in another way', () => {
    const { filter } = managed();
    const endpoint = 'https://EARSHOT.example.org:8443/notifications/alps';
    expect(outcomeOf({ listed: { filter: `${filter} `, endpoint } })).toBe('-');
  });

  it('is also that several deliver to one path', () => {
    const input = { more: [managed({ id: 'id-double' })] };
    expect(outcomeOf(input)).toBe('- several');
    expect(reviewOf(input).current?.id).toBe('id-alps');
  });

  it('is also that somebody made it anew, with credentials that nobody knows', () => {
    const input = { listed: { id: 'id-by-hand' } };
    expect(outcomeOf(input)).toBe('- other-id');
    expect(reviewOf(input).observed).toMatchObject({
      subscriptionId: 'id-by-hand',
      credentialsDigest: null,
    });
  });
});

describe('a word that is new', () => {
  it('as a status is told with the word, and left', () => {
    const { action, notes } = reviewOf({ listed: { status: 'suspended' } });
    expect(action).toBe(null);
    expect(notes).toMatchObject([
      { code: 'unknown-status', message: expect.stringContaining('suspended') },
    ]);
  });
});

describe('a change of ours that was cut short', () => {
  it.each([
    ['is there', {}],
    ['is paused', { status: 'paused' }],
    ['is gone', null],
  ])('is finished when the subscription %s', (_, listed) => {
    expect(outcomeOf({ listed, registration: { unfinished: true } })).toBe('finish');
  });

  it('is no drift meanwhile', () => {
    const input = {
      listed: { filter: otherFilter },
      more: [managed({ id: 'id-new' })],
      registration: { unfinished: true },
    };
    expect(outcomeOf(input)).toBe('finish');
  });
});

describe('what was seen', () => {
  it('is all that changes in a registration', () => {
    const listed = { lastNotificationAtUs: startUs - 5 };
    expect(reviewOf({ listed }).observed).toEqual(
      registrationOf({
        notifiedAtUs: startUs - 5,
        activityAtUs: startUs - 5,
        runningSeenAtUs: startUs,
      }),
    );
  });

  it('never brings a time back to an earlier one', () => {
    const listed = { lastNotificationAtUs: startUs - 50 * dayUs };
    const { observed } = reviewOf({ listed });
    expect(observed.notifiedAtUs).toBe(registrationOf().notifiedAtUs);
  });

  it('is taken from the one that is remembered, of several', () => {
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

describe('a file', () => {
  it('that says what is registered changes nothing', () => {
    expect(outcomeOf({ inFile: desiredState() })).toBe('-');
    expect(outcomeOf({ ...pausedByService, inFile: desiredState() })).toBe('resume');
    expect(outcomeOf({ ...deletedByService, inFile: desiredState() })).toBe('recreate');
  });

  it('that names it no longer keeps it from being maintained, which is told', () => {
    expect(outcomeOf({ inFile: null })).toBe('- unwanted');
    expect(outcomeOf({ ...pausedByService, inFile: null })).toBe('- unwanted');
    expect(outcomeOf({ ...deletedByService, inFile: null })).toBe('- unwanted');
    expect(reviewOf({ inFile: null }).notes[0]?.advice).toContain('--prune');
  });

  it.each([
    ['another filter', desiredState({ filter: otherFilter })],
    ['other events', desiredState({ events: ['deleted'] })],
    ['another status', desiredState({ status: 'paused' })],
  ])('that says %s by now is told, not applied', (_, inFile) => {
    expect(outcomeOf({ inFile })).toBe('- file-changed');
    expect(reviewOf({ inFile }).notes[0]?.advice).toContain('earshot register');
  });

  it('that wants it paused by now keeps it from being resumed or made anew', () => {
    const inFile = desiredState({ status: 'paused' });
    expect(outcomeOf({ ...pausedByService, inFile })).toBe('- file-changed');
    expect(outcomeOf({ ...deletedByService, inFile })).toBe('- file-changed');
  });

  it('that wants it paused, as it is registered, lets it be made anew as paused', () => {
    const inFile = desiredState({ status: 'paused' });
    const registration = { status: 'paused' } as const;
    expect(outcomeOf({ ...deletedByService, registration, inFile })).toBe('recreate');
  });

  it('gives no reason where nothing is done', () => {
    expect(reviewOf({ ...pausedByService, inFile: null }).reason).toBe('');
  });
});

describe('without a file', () => {
  it('what was registered is maintained', () => {
    expect(outcomeOf({ ...pausedByService, inFile: undefined })).toBe('resume');
    expect(outcomeOf({ ...deletedByService, inFile: undefined })).toBe('recreate');
  });
});
