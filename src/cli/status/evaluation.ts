/** Evaluation of a part of the status, and its levels. */
import type { PartStatus, StatusFacts } from '../../domain/status.ts';

export type Evaluation = Omit<PartStatus, 'part'>;

/** Pure function: the same facts give the same result. */
export type Evaluate = (facts: StatusFacts) => Evaluation;

export const well = (text: string): Evaluation => ({ level: 'well', text, nextStep: null });

export const unused = (text: string): Evaluation => ({ level: 'unused', text, nextStep: null });

export const warning = (text: string, nextStep: string): Evaluation => ({
  level: 'warning',
  text,
  nextStep,
});

export const critical = (text: string, nextStep: string): Evaluation => ({
  level: 'critical',
  text,
  nextStep,
});

/** True while a receiver, and so the watchdog, runs: what it tolerates for a while is not reported yet. */
export const isWatched = ({ receiver }: StatusFacts) => receiver !== null;

/** Returns the first three items, and the count of the others: `a, b, c and 4 more`. */
export function listed(items: readonly string[]): string {
  const shown = items.slice(0, 3).join(', ');
  return items.length > 3 ? `${shown} and ${items.length - 3} more` : shown;
}
