/** Says that this machine's clock is wrong by the catalogue's: the words of a window are read by it. */
import { duration } from './reconcile-progress.ts';

/** Answers take their time, and windows have minutes: a smaller difference misleads nobody. */
const toleratedUs = 60_000_000;

/** By how much our clock is ahead of the catalogue's, in microseconds; 0 where it hardly is. */
export function aheadOf(catalogue: { nowUs: () => number }, own: { nowUs: () => number }): number {
  const aheadUs = own.nowUs() - catalogue.nowUs();
  return Math.abs(aheadUs) > toleratedUs ? aheadUs : 0;
}

/** One line for a person; empty where there is nothing to tell. */
export function clockNote(aheadUs: number): string {
  if (aheadUs === 0) return '';
  const isAhead = aheadUs > 0;
  const what = isAhead
    ? 'a window such as --since 12h begins that much too late'
    : 'a window such as --since 12h ends that much too early';
  const difference = `${duration(Math.abs(aheadUs) / 1_000)} ${isAhead ? 'ahead of' : 'behind'}`;
  return `This machine's clock is ${difference} the catalogue's: ${what}. Set it by NTP.\n`;
}
