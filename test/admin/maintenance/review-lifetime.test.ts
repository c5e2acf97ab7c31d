/** What the service does by itself is undone, just when it may have done it, and told before. */
import { describe, expect, it } from 'vitest';
import { dayUs, startUs } from '../plan/plan-samples.ts';
import { type Asked, reviewed, verdict } from './reviewed.ts';

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
    expect(textAt('running', 50)).toMatch(/since 2026-05-01: .* pause it in 10 days/);
    expect(textAt('running', 60)).toContain('any moment now');
  });

  it('says that a deletion comes, and what may be the reason', () => {
    const held = { ...shown, registration: { ...shown.registration, status: 'paused' as const } };
    const [note] = reviewed(withStatus(held, 'paused', 355)).notes;
    expect(note?.message).toMatch(/since 2026-05-01: .* delete it in 10 days/);
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
    expect(reviewed(withStatus(shown, 'paused', 60)).because).toContain('60 days');
    const notified = { ...shown, registration: { ...shown.registration, notifiedAtUs: startUs } };
    expect(reviewed(gone(notified, 365)).because).toContain('365 days');
    expect(reviewed(withStatus(shown, 'running', 1)).because).toBe('');
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
