/** Tells a person, or a program, what became of each summary, and what is left. */
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import type { SummaryRow } from '../../domain/summaries.ts';
import { toSummaryJson } from '../../domain/summary-rows.ts';
import type { JobEnd } from '../../summary/worker/do-job.ts';
import type { SummaryWorld } from '../../summary/worker/summary-world.ts';
import type { OnJobEnd, WorkEnd } from '../../summary/worker/work-due.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { writeForeign, writeOut } from '../write-out.ts';
import { rowById } from './row-by-id.ts';
import { endName, sumOfWork } from './sum-of-work.ts';
import { textLines } from './text-lines.ts';

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
