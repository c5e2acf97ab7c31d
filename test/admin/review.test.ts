/** Reviews of a subscription: its lifetime, what the service did, what a person did, and what the file says. */
import { describe, expect, it } from 'vitest';
import { lifetimeOf } from '../../src/admin/review.ts';
import { dayUs, held, otherFilter, publicUrl, registrationOf, startUs, wanted } from './samples.ts';
import { type Asked, reviewed, verdict } from './set-up.ts';

type Known = Parameters<typeof lifetimeOf>[0];

const ago = (days: number) => startUs - days * dayUs;
const unseen = held({ submittedAtUs: null, lastNotificationAtUs: null });
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
      { listed: held({ ...submitted, lastNotificationAtUs: ago(3) }) },
      3,
    ],
    [
      'is the delivery that came here, when the catalogue shows none',
      { listed: held({ ...submitted, lastNotificationAtUs: null }), lastDeliveryAtUs: ago(4) },
      4,
    ],
    [
      'is the one that the catalogue shows, whatever came here: anybody may have sent that',
      { listed: held({ ...submitted, lastNotificationAtUs: ago(5) }), lastDeliveryAtUs: ago(4) },
      5,
    ],
    [
      'is the one that was shown before, when the catalogue shows nothing any more',
      { listed: unseen, registration: registrationOf({ notifiedAtUs: ago(6) }) },
      6,
    ],
    [
      'is the creation when there was none',
      { listed: held({ ...submitted, lastNotificationAtUs: null }) },
      100,
    ],
    [
      'is the creation of the one that is there, not what an earlier one was sent',
      {
        listed: held({ submittedAtUs: ago(2), lastNotificationAtUs: null }),
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
    const listed = held({ lastNotificationAtUs: ago(50), submittedAtUs: ago(80) });
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
const shown: Asked = {
  listed: { submittedAtUs: old, lastNotificationAtUs: startUs },
  registration: ownRecords,
};
/** Three ways to know of the last notification, each the only one. */
const sources: [string, Asked][] = [
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

const withStatus = ({ listed, ...asked }: Asked, status: string, days: number, us = 0): Asked => ({
  ...asked,
  listed: { ...listed, status },
  nowUs: startUs + days * dayUs + us,
});
const gone = (asked: Asked, days: number, us = 0): Asked => ({
  ...asked,
  listed: null,
  nowUs: startUs + days * dayUs + us,
});

describe.each(sources)('counted from the notification that %s', (_, known) => {
  it('a pause from the 60th day on is undone, an earlier one left and told', () => {
    expect(verdict(withStatus(known, 'paused', 60, -1))).toBe('- paused-by-person');
    expect(verdict(withStatus(known, 'paused', 60))).toBe('resume');
    expect(verdict(withStatus(known, 'paused', 61))).toBe('resume');
  });

  it('the pause is told of two weeks ahead', () => {
    expect(verdict(withStatus(known, 'running', 46, -1))).toBe('-');
    expect(verdict(withStatus(known, 'running', 46))).toBe('- pause-ahead');
    expect(verdict(withStatus(known, 'running', 59))).toBe('- pause-ahead');
  });

  it('the deletion is told of a month ahead, whether it runs or not', () => {
    const resumed: Asked = {
      ...known,
      registration: { ...known.registration, activityAtUs: startUs + 330 * dayUs },
    };
    const wantedPaused: Asked = {
      ...known,
      registration: { ...known.registration, status: 'paused' },
    };
    for (const [asked, status] of [
      [resumed, 'running'],
      [wantedPaused, 'paused'],
    ] as const) {
      expect(verdict(withStatus(asked, status, 335, -1))).toBe('-');
      expect(verdict(withStatus(asked, status, 335))).toBe('- deletion-ahead');
      expect(verdict(withStatus(asked, status, 364))).toBe('- deletion-ahead');
    }
  });

  it('one that is gone from the 365th day on is made anew, else it is told', () => {
    // What was shown or delivered was remembered in the rounds before.
    const registration = { ...known.registration, notifiedAtUs: startUs };
    const remembered = { ...known, registration };
    expect(verdict(gone(remembered, 365, -1))).toBe('- gone');
    expect(verdict(gone(remembered, 365))).toBe('recreate');
    expect(verdict(gone(remembered, 500))).toBe('recreate');
  });
});

describe('a warning', () => {
  const textAt = (status: string, days: number) =>
    reviewed(withStatus(shown, status, days))
      .notes.map(({ message }) => message)
      .join(' ');

  it('says since when, and in how many days', () => {
    expect(textAt('running', 50)).toMatch(/since 2026-05-01: .* pause the subscription in 10 days/);
    expect(textAt('running', 60)).toContain('at any time');
  });

  it('says that a deletion comes, and what may be the reason', () => {
    const held = { ...shown, registration: { ...shown.registration, status: 'paused' as const } };
    const [note] = reviewed(withStatus(held, 'paused', 355)).notes;
    expect(note?.message).toMatch(/since 2026-05-01: .* delete the subscription in 10 days/);
    expect(note?.advice).toContain('filter');
  });

  it('stands beside what was told of a pause that is left', () => {
    const left = { ...shown.registration, heldBy: 'command' as const };
    expect(verdict(withStatus({ ...shown, registration: left }, 'paused', 340))).toBe(
      '- paused-by-command deletion-ahead',
    );
  });
});

describe('when a pause came', () => {
  it('is when it was first seen, however late it is looked at again', () => {
    const registration = { ...shown.registration, pausedSeenAtUs: startUs + 30 * dayUs };
    expect(verdict(withStatus({ ...shown, registration }, 'paused', 90))).toBe(
      '- paused-by-person',
    );
    const late = { ...shown.registration, pausedSeenAtUs: startUs + 60 * dayUs };
    expect(verdict(withStatus({ ...shown, registration: late }, 'paused', 90))).toBe('resume');
  });

  it('is remembered at the first sight, and forgotten when it runs', () => {
    const seen = reviewed(withStatus(shown, 'paused', 30)).observed;
    expect(seen.pausedSeenAtUs).toBe(startUs + 30 * dayUs);
    const again = reviewed({ ...withStatus(shown, 'paused', 31), registration: seen }).observed;
    expect(again.pausedSeenAtUs).toBe(startUs + 30 * dayUs);
    const runs = reviewed({ ...withStatus(shown, 'running', 32), registration: again }).observed;
    expect(runs).toMatchObject({ pausedSeenAtUs: null, runningSeenAtUs: startUs + 32 * dayUs });
  });

  it('is reckoned from a resumption that came after the last notification', () => {
    const registration = { ...shown.registration, activityAtUs: startUs + 61 * dayUs };
    const asked = { ...shown, registration };
    expect(verdict(withStatus(asked, 'paused', 121, -1))).toBe('- paused-by-person');
    expect(verdict(withStatus(asked, 'paused', 121))).toBe('resume');
  });
});

describe('what is undone', () => {
  it('has its reason for the history', () => {
    expect(reviewed(withStatus(shown, 'paused', 60)).reason).toContain('60 days');
    const notified = { ...shown, registration: { ...shown.registration, notifiedAtUs: startUs } };
    expect(reviewed(gone(notified, 365)).reason).toContain('365 days');
    expect(reviewed(withStatus(shown, 'running', 1)).reason).toBe('');
  });

  it('is made anew as it was registered, also paused', () => {
    const registration = { status: 'paused' as const, notifiedAtUs: startUs };
    expect(verdict(gone({ registration }, 365))).toBe('recreate');
  });

  it.each(sources)('lets the notification that %s be remembered', (_, known) => {
    const { observed } = reviewed(withStatus(known, 'running', 10));
    expect(observed).toMatchObject({ notifiedAtUs: startUs, activityAtUs: startUs });
  });
});

const yearLater = startUs + 400 * dayUs;

describe('one that is as registered', () => {
  it('is nothing to speak of', () => {
    expect(verdict({})).toBe('-');
    expect(verdict({ listed: { status: 'paused' }, registration: { status: 'paused' } })).toBe('-');
  });
});

describe('one that was paused', () => {
  it('at the catalogue is held as a person’s from then on, whatever time passes', () => {
    const { observed, notes } = reviewed({ listed: { status: 'paused' } });
    expect(observed.heldBy).toBe('person');
    expect(notes[0]?.advice).toContain('earshot register');
    const later = reviewed({
      listed: { status: 'paused' },
      registration: observed,
      nowUs: startUs + 200 * dayUs,
    });
    expect(later).toMatchObject({ action: null, observed: { heldBy: 'person' } });
  });

  it('by our own command is held as that, also after 60 days', () => {
    const registration = { heldBy: 'command', pausedSeenAtUs: startUs + 70 * dayUs } as const;
    const asked = { listed: { status: 'paused' }, registration, nowUs: startUs + 90 * dayUs };
    expect(verdict(asked)).toBe('- paused-by-command');
    expect(reviewed(asked).observed.heldBy).toBe('command');
  });

  it('by a person is held, though it was seen only after 60 days', async () => {
    const registration = { heldBy: 'person', pausedSeenAtUs: startUs + 70 * dayUs } as const;
    const asked = { listed: { status: 'paused' }, registration, nowUs: startUs + 90 * dayUs };
    expect(verdict(asked)).toBe('- paused-by-person');
  });

  it('and runs again is held no more', () => {
    for (const heldBy of ['person', 'command'] as const) {
      expect(reviewed({ registration: { heldBy } })).toMatchObject({
        action: null,
        notes: [],
        observed: { heldBy: null, pausedSeenAtUs: null },
      });
    }
  });
});

describe('one that should be paused', () => {
  it('and runs is left running, and told', () => {
    const asked = { registration: { status: 'paused' } } as const;
    expect(verdict(asked)).toBe('- resumed-elsewhere');
    expect(reviewed(asked).observed.heldBy).toBe('person');
  });

  it('and is paused by whomever is as it should be', () => {
    const listed = { status: 'paused', lastNotificationAtUs: startUs - 70 * dayUs };
    expect(verdict({ listed, registration: { status: 'paused' } })).toBe('-');
  });
});

describe('one that is gone', () => {
  it('before its time was deleted by a person, and stays so for ever', () => {
    const first = reviewed({ listed: null });
    expect(first).toMatchObject({ action: null, observed: { heldBy: 'person' } });
    expect(first.notes).toMatchObject([{ code: 'gone' }]);
    expect(verdict({ listed: null, registration: first.observed, nowUs: yearLater })).toBe(
      '- gone',
    );
  });

  it('after our own command had paused it is not made to run', () => {
    const registration = { heldBy: 'command' } as const;
    expect(verdict({ listed: null, registration, nowUs: yearLater })).toBe('- gone');
    expect(reviewed({ listed: null, registration }).observed.heldBy).toBe('command');
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
    expect(verdict({ listed })).toBe(`- ${code}`);
  });

  it('in an endpoint does not hinder that it is resumed', () => {
    const listed = { status: 'paused', filter: otherFilter };
    expect(verdict({ listed, nowUs: startUs + 61 * dayUs })).toBe('resume drift-filter');
  });

  it('is not what is only written in another way', () => {
    const { filter } = held();
    const endpoint = 'https://EARSHOT.example.org:8443/notifications/alps';
    expect(verdict({ listed: { filter: `${filter} `, endpoint } })).toBe('-');
  });

  it('is also that several deliver to one path', () => {
    const asked = { more: [held({ id: 'id-double' })] };
    expect(verdict(asked)).toBe('- several');
    expect(reviewed(asked).current?.id).toBe('id-alps');
  });

  it('is also that somebody made it anew, with credentials that nobody knows', () => {
    const asked = { listed: { id: 'id-by-hand' } };
    expect(verdict(asked)).toBe('- other-id');
    expect(reviewed(asked).observed).toMatchObject({
      subscriptionId: 'id-by-hand',
      credentialsDigest: null,
    });
  });
});

describe('a word that is new', () => {
  it('as a status is told with the word, and left', () => {
    const { action, notes } = reviewed({ listed: { status: 'held up' } });
    expect(action).toBe(null);
    expect(notes).toMatchObject([
      { code: 'unknown-status', message: expect.stringContaining('held up') },
    ]);
  });
});

describe('a change of ours that was cut short', () => {
  it.each([
    ['is there', {}],
    ['is paused', { status: 'paused' }],
    ['is gone', null],
  ])('is finished when the subscription %s', (_, listed) => {
    expect(verdict({ listed, registration: { unfinished: true } })).toBe('finish');
  });

  it('is no drift meanwhile', () => {
    const asked = {
      listed: { filter: otherFilter },
      more: [held({ id: 'id-new' })],
      registration: { unfinished: true },
    };
    expect(verdict(asked)).toBe('finish');
  });
});

describe('what was seen', () => {
  it('is all that changes in a registration', () => {
    const listed = { lastNotificationAtUs: startUs - 5 };
    expect(reviewed({ listed }).observed).toEqual(
      registrationOf({
        notifiedAtUs: startUs - 5,
        activityAtUs: startUs - 5,
        runningSeenAtUs: startUs,
      }),
    );
  });

  it('never brings a time back to an earlier one', () => {
    const listed = { lastNotificationAtUs: startUs - 50 * dayUs };
    const { observed } = reviewed({ listed });
    expect(observed.notifiedAtUs).toBe(registrationOf().notifiedAtUs);
  });

  it('is taken from the one that is remembered, of several', () => {
    const asked = {
      listed: { status: 'paused' },
      more: [held({ id: 'id-double', endpoint: `${publicUrl}/notifications/alps` })],
    };
    expect(reviewed(asked).observed).toMatchObject({
      subscriptionId: 'id-alps',
      pausedSeenAtUs: startUs,
    });
  });
});

const pausedByService = { listed: { status: 'paused' }, nowUs: startUs + 61 * dayUs };
const deletedByService = { listed: null, nowUs: startUs + 400 * dayUs };

describe('a file', () => {
  it('that says what is registered changes nothing', () => {
    expect(verdict({ inFile: wanted() })).toBe('-');
    expect(verdict({ ...pausedByService, inFile: wanted() })).toBe('resume');
    expect(verdict({ ...deletedByService, inFile: wanted() })).toBe('recreate');
  });

  it('that names it no longer keeps it from being maintained, which is told', () => {
    expect(verdict({ inFile: null })).toBe('- unwanted');
    expect(verdict({ ...pausedByService, inFile: null })).toBe('- unwanted');
    expect(verdict({ ...deletedByService, inFile: null })).toBe('- unwanted');
    expect(reviewed({ inFile: null }).notes[0]?.advice).toContain('--prune');
  });

  it.each([
    ['another filter', wanted({ filter: otherFilter })],
    ['other events', wanted({ events: ['deleted'] })],
    ['another status', wanted({ status: 'paused' })],
  ])('that says %s by now is told, not applied', (_, inFile) => {
    expect(verdict({ inFile })).toBe('- file-changed');
    expect(reviewed({ inFile }).notes[0]?.advice).toContain('earshot register');
  });

  it('that wants it paused by now keeps it from being resumed or made anew', () => {
    const inFile = wanted({ status: 'paused' });
    expect(verdict({ ...pausedByService, inFile })).toBe('- file-changed');
    expect(verdict({ ...deletedByService, inFile })).toBe('- file-changed');
  });

  it('that wants it paused, as it is registered, lets it be made anew as paused', () => {
    const inFile = wanted({ status: 'paused' });
    const registration = { status: 'paused' } as const;
    expect(verdict({ ...deletedByService, registration, inFile })).toBe('recreate');
  });

  it('gives no reason where nothing is done', () => {
    expect(reviewed({ ...pausedByService, inFile: null }).reason).toBe('');
  });
});

describe('without a file', () => {
  it('what was registered is maintained', () => {
    expect(verdict({ ...pausedByService, inFile: undefined })).toBe('resume');
    expect(verdict({ ...deletedByService, inFile: undefined })).toBe('recreate');
  });
});
