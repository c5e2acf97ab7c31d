/** Tells a person, or a program, what became of each summary, and what is left. */
import { AppError } from '../../domain/app-error.ts';
import {
  budgetLimits,
  type SummaryBudget,
  type SummaryRow,
  toSummaryJson,
} from '../../domain/summaries.ts';
import { printable } from '../../domain/text.ts';
import { waitingMax } from '../../summary/worker/collect-jobs.ts';
import type { JobEnd } from '../../summary/worker/do-job.ts';
import type { OnJobEnd, WorkEnd } from '../../summary/worker/run-summaries.ts';
import type { SummaryWorld } from '../../summary/worker/summary-context.ts';
import type { Io } from '../io.ts';
import { painter, writeForeign, writeOut } from '../output.ts';
import { minuteOf, rowById, textLines } from './rows.ts';

export interface WorkReport {
  onEnd: OnJobEnd;
  /** Number of jobs that have ended. */
  over(): number;
  /** Notes what other programs made of these jobs; resolves with how many are still to be done. */
  noteOthers(ids: readonly number[]): Promise<number>;
  /**
   * Tells the sum. Throws `unavailable` when a text failed or the service cannot be used, and `cancelled` when
   * the user ended it.
   */
  close(end: WorkEnd): Promise<void>;
}

type ReportIo = Pick<Io, 'stdout' | 'stderr' | 'env' | 'signal'>;

/** `ids`: the jobs, where it is known which. Texts are printed as they come. */
export function createWorkReport(
  io: ReportIo,
  world: SummaryWorld,
  { ids, json, nothing }: { ids: readonly number[] | undefined; json: boolean; nothing: string },
): WorkReport {
  const ends = new Map<number, JobEnd>();
  const of = ids === undefined ? '' : ` of ${ids.length}`;
  // On one terminal the texts themselves show how far it is.
  const isProgressShown = io.stderr.isTTY === true && io.stdout.isTTY !== true;
  const note = async (id: number, end: JobEnd, row: SummaryRow | null) => {
    ends.set(id, end);
    if (isProgressShown) io.stderr.write(`\r${ends.size}${of} texts`);
    if (row !== null && endName(end) !== null) await show(row, end, { io, json });
  };
  return {
    onEnd: async ({ id }, end) =>
      note(id, end, endName(end) === null ? null : await rowById(id, world.summaries)),
    over: () => [...ends.values()].filter((end) => endName(end) !== null).length,
    noteOthers: async (wanted) => {
      let left = 0;
      for (const id of wanted) {
        const before = ends.get(id);
        if (before !== undefined && endName(before) !== null) continue;
        const row = await rowById(id, world.summaries);
        const end = endOf(row);
        if (endName(end) !== null) await note(id, end, row);
        // Another program that asks is done soon, or its lease ends.
        else if (row?.state === 'asking' || (row?.nextTryAtUs ?? 0) <= world.nowUs()) left += 1;
      }
      return left;
    },
    close: async (workEnd) => {
      if (isProgressShown && ends.size > 0) io.stderr.write('\n');
      const sum = await sumOfWork({ workEnd, ends, ids }, world);
      const { aborted } = io.signal;
      const none = aborted ? 'Nothing was written.' : nothing;
      const told = sum.length === 0 ? none : sum.join(' ');
      if (aborted) throw new AppError('cancelled', `Stopped. ${told}`);
      const failed = [...ends.values()].some(({ end }) => end === 'failed');
      if (failed || workEnd.end === 'service') throw new AppError('unavailable', told);
      io.stderr.write(`${printable(told)}\n`);
    },
  };
}

async function show(
  row: SummaryRow,
  end: JobEnd,
  { io, json }: { io: ReportIo; json: boolean },
): Promise<void> {
  const { stdout } = io;
  if (json) {
    return writeForeign(stdout, `${JSON.stringify(toSummaryJson(row))}\n`);
  }
  const paint = painter(io, stdout);
  const mark = paint(colourOf(end), endName(end) ?? '');
  const reason = 'reason' in end ? end.reason : null;
  await writeOut(stdout, textLines(row, { mark, reason }, paint, stdout));
}

function colourOf({ end }: JobEnd): 'green' | 'red' | 'yellow' {
  if (end === 'failed') return 'red';
  return ['written', 'same', 'template'].includes(end) ? 'green' : 'yellow';
}

/** What another program made of a job, as its row shows it. */
function endOf(row: SummaryRow | null): JobEnd {
  if (row === null) return { end: 'withdrawn' };
  const { state, text, error } = row;
  if (state === 'asking' || state === 'waiting') return { end: 'taken' };
  if (state !== 'done') return { end: state, reason: error ?? '' };
  if (text?.model == null) return { end: 'template' };
  return { end: text.verified ? 'written' : 'unverified' };
}

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
function endName({ end }: JobEnd): string | null {
  return endNames[end] ?? null;
}

/** What a run did, and what it leaves. */
interface WorkDone {
  workEnd: WorkEnd;
  /** Of the jobs that were looked at, by id. */
  ends: ReadonlyMap<number, JobEnd>;
  /** The jobs of this run; undefined for all that were due. */
  ids: readonly number[] | undefined;
}

/** Different reasons of texts that are put off; the rows have them all. */
const reasonsMax = 3;

/** Sentences; none where there was nothing to do. Each job of the run counts once, and no other one. */
async function sumOfWork(done: WorkDone, world: SummaryWorld): Promise<string[]> {
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

/**
 * `the budget of 60 requests an hour (EARSHOT_SUMMARY_REQUESTS_PER_HOUR) is spent until 2026-11-20 23:48 UTC`,
 * and whether it frees by waiting.
 */
function spentWords(
  limit: keyof SummaryBudget,
  budget: SummaryBudget,
  until: string,
): { words: string; frees: boolean } {
  const { of, variable } = budgetLimits[limit];
  const allowed = budget[limit];
  if (allowed === 0) return { words: `nothing is ever sent while ${variable} is 0`, frees: false };
  const which = `${grouped(allowed)} ${of} (${variable})`;
  return { words: `the budget of ${which} is spent until ${until}`, frees: true };
}

/** `500,000`. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
