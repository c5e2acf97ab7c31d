/**
 * Short simulations of months: the rule for lost pushes raises no false alarms, and detects real
 * losses.
 */
import { describe, expect, it } from 'vitest';
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

describe('lost pushes of a subscription of the kind', () => {
  const playUsual = (kind: (typeof subscriptionKinds)[number]) => {
    const [usual] = usualLosses;
    if (usual === undefined) throw new Error('There is none.');
    return playLosses(kind, usual, 3, 2);
  };

  it.each(subscriptionKinds)('$name raise no false alarm', (kind) => {
    expect(playUsual(kind).falseAlarms).toBe(0);
  });

  it.each(Object.entries(cutDaysMax))('%s: a total loss is noticed', (name, daysMax) => {
    const kind = subscriptionKinds.find((one) => one.name === name);
    if (kind === undefined) throw new Error(`There is no kind ${name}.`);
    const [, cut] = playUsual(kind).falls;
    expect(cut).toMatchObject({ share: 1 });
    expect((cut?.hours95 ?? Number.POSITIVE_INFINITY) / 24).toBeLessThan(daysMax);
  });

  it('bursts do not raise an alert each time', () => {
    const everything = subscriptionKinds.find(({ name }) => name === 'everything');
    const bursts = usualLosses.find(({ share, burst }) => share === 0.001 && burst > 1);
    if (everything === undefined || bursts === undefined) throw new Error('There is none.');
    expect(playLosses(everything, bursts, 3, 3).falseAlarms).toBeLessThanOrEqual(3);
  });
});
