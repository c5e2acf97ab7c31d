/** Short simulations of months: the rule for lost pushes raises no false alarms, and detects real losses. */
import { expect, it } from 'vitest';
import { playLosses, usualLosses } from '../../simulation/lost-pushes.ts';
import { subscriptionKinds } from '../../simulation/subscription-kinds.ts';

/**
 * Maximum days until a complete loss of pushes is noticed, of the slowest of three runs. Kinds with fewer than three
 * events a day are missing: the rule needs three in a day, so their losses are only fetched (decision 26).
 */
const cutDaysMax: Record<string, number> = {
  everything: 0.5,
  country: 3,
  'small area': 9,
  'by day': 1.5,
  'with standstills': 3,
};

it.each(subscriptionKinds)(
  'usual losses of the kind $name raise no false alarm, and a total loss is noticed',
  (kind) => {
    const [usual = expect.fail()] = usualLosses;
    const { falseAlarms, falls } = playLosses(kind, usual, 3, 2);
    expect(falseAlarms).toBe(0);
    const daysMax = cutDaysMax[kind.name];
    if (daysMax === undefined) return;
    expect(falls[1]).toMatchObject({ share: 1 });
    expect((falls[1]?.hours95 ?? Number.POSITIVE_INFINITY) / 24).toBeLessThan(daysMax);
  },
);

it('bursts do not raise an alert each time', () => {
  const everything = subscriptionKinds.find(({ name }) => name === 'everything') ?? expect.fail();
  const bursts = usualLosses.find(({ share, burst }) => share === 0.001 && burst > 1);
  const { falseAlarms } = playLosses(everything, bursts ?? expect.fail(), 3, 3);
  expect(falseAlarms).toBeLessThanOrEqual(3);
});
