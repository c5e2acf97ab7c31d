/** The last words of `earshot summarize`: how many texts ended how, what is left, and how that goes on. */
import type { JobEnd } from '../../summary/worker/do-job.ts';
import type { SummaryWorld } from '../../summary/worker/summary-world.ts';
import type { WorkEnd } from '../../summary/worker/work-due.ts';
import { minuteOf } from './subject-name.ts';

/** In the order in which they are counted up. */
export const endNames: Record<JobEnd['end'], string> = {
  written: 'written',
  unverified: 'written, but not verified',
  template: 'made of the facts alone',
  same: 'there already',
  postponed: 'put off',
  budget: 'put off for the budget',
  failed: 'failed',
  dropped: 'dropped',
  withdrawn: 'without anything to tell',
  taken: "in another program's hands",
};

/** Different reasons of texts that are put off; the rows have them all. */
const reasonsMax = 3;

/** `3 written, 1 failed.` */
export function sumOf(ends: readonly JobEnd[]): string {
  const parts = Object.entries(endNames).flatMap(([name, words]) => {
    const count = ends.filter(({ end }) => end === name).length;
    return count === 0 ? [] : [`${count} ${words}`];
  });
  return `${parts.join(', ')}.`;
}

/** Sentences: what is left and why, and how it goes on. */
export async function restOf(
  workEnd: WorkEnd,
  ends: readonly JobEnd[],
  { summaries, model, nowUs }: SummaryWorld,
): Promise<string[]> {
  const isBlocked = 'untilUs' in workEnd;
  const reasons = isBlocked
    ? [workEnd.reason]
    : ends.flatMap((end) => (end.end === 'postponed' ? [end.reason] : []));
  const { waiting } = await summaries.counts();
  const nextUs = isBlocked ? workEnd.untilUs : ((await summaries.nextDueAtUs()) ?? 0);
  const isLater = waiting > 0 && nextUs > nowUs();
  return [
    ...(model === null && ends.some(({ end }) => end === 'template') ? [noModel] : []),
    ...[...new Set(reasons)].slice(0, reasonsMax),
    ...(waiting === 0 ? [] : [`${waiting} ${waiting === 1 ? 'waits' : 'wait'}.`]),
    ...(isLater ? [`Next try: ${minuteOf(nextUs)} UTC, ${nextBy}`] : []),
  ];
}

const noModel =
  'No model is configured: EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL would have one write them.';

const nextBy = 'by a running receiver whose rules ask for summaries, or by: earshot summarize';
