/** Says how unlikely a silence is, and whether that is enough to raise an alarm. */
import type { Span } from '../spans.ts';
import { expectedPushes, type LearnedRates } from './learn-rates.ts';

export interface SilenceRule {
  /** A silence that is likelier than this is none to speak of. */
  oddsMax: number;
  /** Times as long as the longest natural one. */
  longestFactor: number;
  /** It has been watched for so long before it is judged. */
  watchedHoursMin: number;
  /** Hours that brought something: fewer tell nothing of how long silences are. */
  busyHoursMin: number;
}

export const silenceRule: SilenceRule = {
  oddsMax: 1e-2,
  longestFactor: 2,
  watchedHoursMin: 168,
  busyHoursMin: 6,
};

export interface SilenceOdds {
  /** Pushes that were to be expected since the last one, while it was watched. */
  expected: number;
  /** How likely it is that none came. */
  odds: number;
  /** Beyond this many expected pushes it is an alarm. */
  limit: number;
  isAlarm: boolean;
}

/** Null where too little has been learned. `silence` begins with the last push. */
export function silenceOdds(
  learned: LearnedRates,
  watched: readonly Span[],
  silence: Span,
  rule: SilenceRule = silenceRule,
): SilenceOdds | null {
  const { dispersion, longestSilence, watchedHours, busyHours } = learned;
  if (watchedHours < rule.watchedHoursMin || busyHours < rule.busyHoursMin) return null;
  const expected = expectedPushes(learned, watched, silence);
  // Bursts count once: so many independent ones were to be expected, and none came (Poisson).
  const odds = Math.exp(-expected / dispersion);
  const limit = Math.max(-Math.log(rule.oddsMax) * dispersion, rule.longestFactor * longestSilence);
  return { expected, odds, limit, isAlarm: expected > limit };
}
