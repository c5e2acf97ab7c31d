/** The speeds of queries that earshot promises, and whether a benchmark met them. */
import type { QueryFigures } from './query-measure.ts';
import { type TargetResult, target } from './targets.ts';

/** A first page over HTTP that takes less has no need to be compared with the small index. */
const fastMs = 10;
const ratioMax = 3;

/** Judges the first pages by their medians, and the plans of the large index. */
export function judgeQueries({ cases }: QueryFigures): TargetResult[] {
  const scans = cases.reduce((sum, { plans }) => sum + plans.pageScans + plans.countScans, 0);
  return [
    ...cases.map(({ name, httpPage: { small, large } }): TargetResult => {
      const value = large.medianMs / small.medianMs;
      return {
        name: `first page over HTTP, large / small: ${name}`,
        bound: `at most ${ratioMax}, or under ${fastMs} ms`,
        value,
        met: value <= ratioMax || large.medianMs < fastMs,
      };
    }),
    target('first pages and counts that scan the large table', scans, { max: 0 }),
  ];
}
