/** What a person did is told, and left as it is. */
import { describe, expect, it } from 'vitest';
import {
  dayUs,
  held,
  otherFilter,
  publicUrl,
  registrationOf,
  startUs,
} from '../plan/plan-samples.ts';
import { reviewed, verdict } from './reviewed.ts';

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
