/** When the catalogue will pause and delete a subscription, reckoned from what is known. */
import { describe, expect, it } from 'vitest';
import { lifetimeOf } from '../../../src/admin/review.ts';
import { dayUs, held, registrationOf, startUs } from '../plan/plan-samples.ts';

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
