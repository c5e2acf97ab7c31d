/** Simulated months, in small: the rules of silence and lost pushes cry no wolf, and notice what is real. */
import { describe, expect, it } from 'vitest';
import { playKind } from '../simulation/false-alarms.ts';
import { playLosses, usualLosses } from '../simulation/lost-pushes.ts';
import { subscriptionKinds } from '../simulation/subscription-kinds.ts';

/** Days from the stop to the alarm, of the slowest of a few. */
const noticedDaysMax: Record<string, number> = {
  everything: 0.25,
  country: 6,
  'small area': 9,
  'every few days': 75,
  'by chance': 45,
  'by day': 1.5,
  'with standstills': 7,
};

/** Days until it is noticed that no push comes any more, of the slowest of three. */
const cutDaysMax: Record<string, number> = {
  everything: 0.25,
  country: 3,
  'small area': 9,
  'every few days': 60,
  'by chance': 60,
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
  it.each(subscriptionKinds)('$name raise no false alarm, and a fall is noticed', (kind) => {
    const [usual] = usualLosses;
    if (usual === undefined) throw new Error('There is none.');
    const { falseAlarms, falls } = playLosses(kind, usual, 3, 2);
    expect(falseAlarms).toBe(0);
    const [, cut] = falls;
    expect(cut).toMatchObject({ share: 1 });
    expect((cut?.hours95 ?? Number.POSITIVE_INFINITY) / 24).toBeLessThan(
      cutDaysMax[kind.name] ?? 0,
    );
  });

  it('bursts are no alarm each time', () => {
    const everything = subscriptionKinds.find(({ name }) => name === 'everything');
    const bursts = usualLosses.find(({ share, burst }) => share === 0.001 && burst > 1);
    if (everything === undefined || bursts === undefined) throw new Error('There is none.');
    expect(playLosses(everything, bursts, 3, 3).falseAlarms).toBeLessThanOrEqual(3);
  });
});
