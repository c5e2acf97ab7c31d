/**
 * Short simulations of months: the rules for silence and lost pushes raise no false alarms, and
 * detect real problems.
 */
import { describe, expect, it } from 'vitest';
import { playKind } from '../../simulation/false-alarms.ts';
import { playLosses, usualLosses } from '../../simulation/lost-pushes.ts';
import { subscriptionKinds } from '../../simulation/subscription-kinds.ts';

/** Maximum days from the stop to the alert, of the slowest of a few runs. */
const noticedDaysMax: Record<string, number> = {
  everything: 0.25,
  country: 6,
  'small area': 9,
  'every few days': 75,
  'by chance': 45,
  'by day': 1.5,
  'with standstills': 7,
};

/**
 * Maximum days until a complete loss of pushes is noticed, of the slowest of three runs. Kinds with fewer than three
 * events a day are missing: the rule needs three in a day, so only `silence` notices it (decision 26).
 */
const cutDaysMax: Record<string, number> = {
  everything: 0.5,
  country: 3,
  'small area': 9,
  'by day': 1.5,
  'with standstills': 3,
};

describe('a subscription of the kind', () => {
  it.each(subscriptionKinds)('$name is watched without false alarms', (kind) => {
    const played = playKind(kind, 4, 3);
    expect(played.falseAlarms).toBe(0);
    expect(played.detectedHours95).not.toBeNull();
    expect((played.detectedHours95 ?? 0) / 24).toBeLessThan(noticedDaysMax[kind.name] ?? 0);
  });
});

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
