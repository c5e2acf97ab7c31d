/** The last words of `earshot summarize`: how many texts ended how, how many wait, why, and until when. */
import type { SummaryRow } from '../../domain/summaries.ts';
import { waitingMax } from '../../summary/worker/collect-jobs.ts';
import type { JobEnd } from '../../summary/worker/do-job.ts';
import type { SummaryWorld } from '../../summary/worker/summary-world.ts';
import type { WorkEnd } from '../../summary/worker/work-due.ts';
import { spentWords } from './budget-limits.ts';
import { rowById } from './row-by-id.ts';
import { minuteOf } from './subject-name.ts';

/** Of jobs that are over, in the order in which they are counted up; all others wait. */
const endNames: Partial<Record<JobEnd['end'], string>> = {
  written: 'written',
  unverified: 'written, but not verified',
  template: 'made of the facts alone',
  same: 'there already',
  failed: 'failed',
  dropped: 'dropped',
  withdrawn: 'without anything to tell',
};

/** How a job that is over ended; null of one that comes again. */
export function endName({ end }: JobEnd): string | null {
  return endNames[end] ?? null;
}

/** What a run did, and what it leaves. */
export interface WorkDone {
  workEnd: WorkEnd;
  /** Of the jobs that were looked at, by id. */
  ends: ReadonlyMap<number, JobEnd>;
  /** The jobs of this run; undefined for all that were due. */
  ids: readonly number[] | undefined;
}

/** Different reasons of texts that are put off; the rows have them all. */
const reasonsMax = 3;

/** Sentences; none where there was nothing to do. Each job of the run counts once, and no other one. */
export async function sumOfWork(done: WorkDone, world: SummaryWorld): Promise<string[]> {
  const ends = [...done.ends.values()];
  const isPlain = world.model === null && ends.some(({ end }) => end === 'template');
  const waiting = await waitingOf(done, world);
  return [
    ...overWords(ends),
    ...(isPlain ? [noModel] : []),
    ...(waiting.size > 0 ? await waitingWords(waiting, done, world) : []),
  ];
}

function overWords(ends: readonly JobEnd[]): string[] {
  const counts = Object.entries(endNames).flatMap(([name, words]) => {
    const count = ends.filter(({ end }) => end === name).length;
    return count === 0 ? [] : [{ name, count, words }];
  });
  const [first, ...more] = counts;
  if (first === undefined) return [];
  if (first.name === 'withdrawn' && more.length === 0) {
    const windows = first.count === 1 ? 'this window' : `these ${first.count} windows`;
    return [`Nothing to tell of arrived in ${windows}.`];
  }
  return [`${counts.map(({ count, words }) => `${count} ${words}`).join(', ')}.`];
}

/** Ids: what was put off, and what the run did not get to. */
async function waitingOf(
  { ends, ids }: WorkDone,
  { summaries, nowUs }: SummaryWorld,
): Promise<ReadonlySet<number>> {
  const left = ids ?? (await summaries.due({ nowUs: nowUs(), limit: waitingMax })).map(idOf);
  const isOver = (id: number) => {
    const end = ends.get(id);
    return end !== undefined && endName(end) !== null;
  };
  return new Set([...ends.keys(), ...left].filter((id) => !isOver(id)));
}

const idOf = ({ id }: { id: number }) => id;

async function waitingWords(
  waiting: ReadonlySet<number>,
  { workEnd, ends }: WorkDone,
  world: SummaryWorld,
): Promise<string[]> {
  const wait = `${waiting.size} ${waiting.size === 1 ? 'waits' : 'wait'}`;
  if (workEnd.end === 'budget') {
    const until = `${minuteOf(workEnd.untilUs)} UTC`;
    const { words, frees } = spentWords(workEnd.limit, world.budget, until);
    return [
      `${wait}: ${words}.`,
      ...(frees ? [`Then ${whoGoesOn} continues, or \`earshot summarize\`.`] : []),
    ];
  }
  const postponed = [...waiting].filter((id) => ends.get(id)?.end === 'postponed');
  const isBlocked = 'untilUs' in workEnd;
  const reasons = isBlocked
    ? [workEnd.reason]
    : [...ends.values()].flatMap((end) => (end.end === 'postponed' ? [end.reason] : []));
  const nextUs = isBlocked ? workEnd.untilUs : await nextTryUs(postponed, world);
  const isLater = nextUs > world.nowUs();
  return [
    ...[...new Set(reasons)].slice(0, reasonsMax),
    isLater
      ? `${wait}; next retry ${minuteOf(nextUs)} UTC, by ${whoGoesOn}, or by \`earshot summarize\`.`
      : `${wait}.`,
  ];
}

/** When the first of them is tried; 0 where none is to be tried later. */
async function nextTryUs(ids: readonly number[], { summaries }: SummaryWorld): Promise<number> {
  const rows: (SummaryRow | null)[] = [];
  for (const id of ids) rows.push(await rowById(id, summaries));
  const times = rows.flatMap((row) => (row?.nextTryAtUs == null ? [] : [row.nextTryAtUs]));
  return times.length === 0 ? 0 : Math.min(...times);
}

const noModel =
  'No model is configured: EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL would have one write them.';

const whoGoesOn = 'a running receiver whose rules ask for summaries';
