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
import { writeOut } from '../write-out.ts';
import { endNames, restOf, sumOf } from './sum-of-work.ts';
import { textLines } from './text-lines.ts';

export interface WorkReport {
  onEnd: OnJobEnd;
  /** Notes what other programs made of these jobs; resolves with how many are still to be done. */
  noteOthers(ids: readonly number[]): Promise<number>;
  /**
   * Tells the sum. Throws `unavailable` when a text failed or the service cannot be used, and `cancelled` when
   * the user ended it.
   */
  close(end: WorkEnd): Promise<void>;
}

type ReportIo = Pick<Io, 'stdout' | 'stderr' | 'env' | 'signal'>;

/** `total`: how many there are, where that is known. Texts are printed as they come. */
export function createWorkReport(
  io: ReportIo,
  world: SummaryWorld,
  { total, json, nothing }: { total: number | null; json: boolean; nothing: string },
): WorkReport {
  const ends = new Map<number, JobEnd>();
  const of = total === null ? '' : ` of ${total}`;
  // On one terminal the texts themselves show how far it is.
  const isProgressShown = io.stderr.isTTY === true && io.stdout.isTTY !== true;
  const note = async (id: number, end: JobEnd, row: SummaryRow | null) => {
    ends.set(id, end);
    if (isProgressShown) io.stderr.write(`\r${ends.size}${of} texts`);
    if (row !== null && !isOpen(end)) await show(row, end, { io, json });
  };
  return {
    onEnd: async ({ id }, end) => note(id, end, isOpen(end) ? null : await rowOf(id, world)),
    noteOthers: async (ids) => {
      let left = 0;
      for (const id of ids) {
        const before = ends.get(id);
        if (before !== undefined && !isOpen(before)) continue;
        const row = await rowOf(id, world);
        const end = endOf(row);
        if (!isOpen(end)) await note(id, end, row);
        else if (row?.nextTryAtUs == null || row.nextTryAtUs <= world.nowUs()) left += 1;
      }
      return left;
    },
    close: async (workEnd) => {
      if (isProgressShown && ends.size > 0) io.stderr.write('\n');
      const all = [...ends.values()];
      const rest = await restOf(workEnd, all, world);
      const { aborted } = io.signal;
      const none = aborted ? 'Nothing was written.' : nothing;
      const told = [all.length === 0 ? none : sumOf(all), ...rest].join(' ');
      if (aborted) throw new AppError('cancelled', `Stopped. ${told}`);
      const failed = all.some(({ end }) => end === 'failed');
      if (failed || workEnd.end === 'service') throw new AppError('unavailable', told);
      io.stderr.write(`${printable(told)}\n`);
    },
  };
}

/** Whether the job comes again. */
function isOpen({ end }: JobEnd): boolean {
  return ['postponed', 'budget', 'taken'].includes(end);
}

async function show(
  row: SummaryRow,
  end: JobEnd,
  { io, json }: { io: ReportIo; json: boolean },
): Promise<void> {
  const { stdout } = io;
  if (json) {
    const line = JSON.stringify(toSummaryJson(row));
    return writeOut(stdout, `${stdout.isTTY ? printable(line) : line}\n`);
  }
  const paint = painter(io, stdout);
  const isGood = ['written', 'same', 'template'].includes(end.end);
  const mark = paint(isGood ? 'green' : 'yellow', endNames[end.end]);
  const reason = 'reason' in end ? end.reason : null;
  await writeOut(stdout, textLines(row, { mark, reason }, paint));
}

async function rowOf(
  id: number,
  { summaries }: Pick<SummaryWorld, 'summaries'>,
): Promise<SummaryRow | null> {
  for await (const row of summaries.find({ beforeId: id + 1, limit: 1 })) {
    return row.id === id ? row : null;
  }
  return null;
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
