/** Notification bodies: documented form, every variation, and the same bytes for the same seed. */
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import {
  demoFaults,
  faultsSchema,
  noFaults,
  planDelivery,
  planShape,
  realisticFaults,
  type ShapePlan,
} from '../../src/sandbox/delivery/faults.ts';
import {
  createNotificationBuilder,
  type NotificationEvent,
} from '../../src/sandbox/delivery/notification.ts';
import { uuid } from './set-up.ts';

const subscriptionId = '880c4e1a-cfc7-4956-bc4c-4434069a0aa7';
const product = {
  '@odata.context': 'of the record',
  Id: 'id-1',
  Name: 'S1A_TEST.SAFE',
  Online: true,
};
const plain: ShapePlan = {
  ackIdAbsent: false,
  ackIdGuid: false,
  arrayBody: false,
  capitalValue: false,
  valueAbsent: false,
};
const atMs = Date.UTC(2024, 8, 12, 14, 52, 52, 322);

function build(shape: Partial<ShapePlan> = {}, event: NotificationEvent = 'created', seed = 1) {
  const builder = createNotificationBuilder({ subscriptionId, random: createRandom(seed) });
  const built = builder.build({ event, product, atMs, shape: { ...plain, ...shape } });
  return { ...built, json: JSON.parse(built.body.toString('utf8')) };
}

describe('a notification', () => {
  it('has the documented fields in the documented order', () => {
    const { json } = build();
    expect(Object.entries(json)).toEqual([
      ['@odata.context', '$metadata#Notification/$entity'],
      ['SubscriptionEvent', 'created'],
      ['ProductId', 'id-1'],
      ['ProductName', 'S1A_TEST.SAFE'],
      ['SubscriptionId', subscriptionId],
      ['NotificationDate', expect.any(String)],
      ['AckId', expect.any(String)],
      ['value', expect.any(Object)],
    ]);
  });

  it.each([
    ['created', '$metadata#Products(Attributes(),Assets(),Locations())/$entity'],
    ['modified', '$metadata#Products(Attributes(),Assets(),Locations())/$entity'],
    ['deleted', '$metadata#DeletedProducts(Attributes())/$entity'],
  ] as const)(
    'of the event %s has the context of the product as its first annotation',
    (event, context) => {
      const { value } = build({}, event).json;
      expect(Object.entries(value)[0]).toEqual(['@odata.context', context]);
      expect(value).toMatchObject({ Id: 'id-1', Name: 'S1A_TEST.SAFE', Online: true });
    },
  );

  it('has an AckId that is the base64 form of time, sequence and subscription', () => {
    const builder = createNotificationBuilder({ subscriptionId, random: createRandom(1) });
    const ackIds = [atMs, atMs, atMs + 1].map((ms) => {
      const { ackId } = builder.build({ event: 'created', product, atMs: ms, shape: plain });
      return Buffer.from(ackId ?? '', 'base64').toString();
    });
    expect(ackIds).toEqual([
      `1726152772322-0:${subscriptionId}`,
      `1726152772322-1:${subscriptionId}`,
      `1726152772323-0:${subscriptionId}`,
    ]);
  });

  it('has a date with 3 to 6 fractional digits, the first three of which are the time', () => {
    const dates = Array.from({ length: 100 }, (_, seed) =>
      String(build({}, 'created', seed).json.NotificationDate),
    );
    for (const date of dates) expect(date).toMatch(/^2024-09-12T14:52:52\.322\d{0,3}Z$/);
    expect(new Set(dates.map((date) => date.length))).toEqual(new Set([24, 25, 26, 27]));
  });

  it('can vary in each documented way', () => {
    const { json: usual } = build();
    const { AckId: _, ...withoutAckId } = usual;
    const { value, ...withoutValue } = usual;
    const { ProductName: __, ...withoutProduct } = withoutValue;
    const absent = build({ ackIdAbsent: true });
    expect([absent.json, absent.ackId]).toEqual([withoutAckId, null]);
    const { json, ackId } = build({ ackIdGuid: true });
    expect([json.AckId, ackId]).toEqual([expect.stringMatching(uuid), json.AckId]);
    expect(build({ arrayBody: true }).json).toEqual([usual]);
    expect(build({ capitalValue: true }).json).toEqual({ ...withoutValue, Value: value });
    expect(build({ valueAbsent: true }).json).toEqual(withoutProduct);
  });
});

describe('the fault rates', () => {
  it('are all 0 by default', () => {
    expect(faultsSchema.parse({})).toEqual(noFaults);
    expect(new Set(Object.values(noFaults))).toEqual(new Set([0]));
  });

  it.each([{ duplicat: 0.1 }, { duplicate: 1.1 }, { lost: -0.1 }, { lost: '0.1' }])(
    'are refused when they are %o',
    (rates) => {
      expect(faultsSchema.safeParse(rates).success).toBe(false);
    },
  );

  it.each([noFaults, realisticFaults, demoFaults])('of a preset are valid: %o', (preset) => {
    expect(faultsSchema.parse(preset)).toEqual(preset);
  });

  it('select nothing at 0 and everything at 1', () => {
    const all = faultsSchema.parse(
      Object.fromEntries(Object.keys(noFaults).map((name) => [name, 1])),
    );
    expect(Object.values(planShape(all, createRandom(1)))).toEqual(Array(5).fill(true));
    expect(Object.values(planShape(noFaults, createRandom(1)))).toEqual(Array(5).fill(false));
    const attempts = Array(4).fill({ connectionFails: true, answerLost: true });
    expect(planDelivery(all, createRandom(1))).toMatchObject({ lost: true, attempts });
    expect(planDelivery(all, createRandom(1)).overtakenBy).toBeGreaterThan(0);
    expect(planDelivery(all, createRandom(1)).duplicateAfterMs).toBeGreaterThan(0);
    expect(planDelivery(noFaults, createRandom(1))).toEqual({
      lost: false,
      duplicateAfterMs: null,
      overtakenBy: 0,
      attempts: Array(4).fill({ connectionFails: false, answerLost: false }),
    });
  });

  it('of one kind do not change the random choices of another kind', () => {
    const drawn = (lost: number) => {
      const random = createRandom(5);
      const faults = { ...noFaults, duplicate: 0.5, lost };
      return Array.from({ length: 50 }, () => planDelivery(faults, random).duplicateAfterMs);
    };
    expect(drawn(0.9)).toEqual(drawn(0));
    expect(new Set(drawn(0)).size).toBeGreaterThan(2);
  });

  it('of the demonstration produce duplicates, delays and losses among 200 notifications', () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const random = createRandom(seed);
      const plans = Array.from({ length: 200 }, () => planDelivery(demoFaults, random));
      expect(plans.some(({ lost }) => lost)).toBe(true);
      expect(plans.some(({ duplicateAfterMs }) => duplicateAfterMs !== null)).toBe(true);
      expect(plans.some(({ overtakenBy }) => overtakenBy > 0)).toBe(true);
    }
  });
});
