/** Prints the result of each summary and what remains, or the requests that would be sent. */
import { AppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/dates.ts';
import {
  budgetLimits,
  type NewSummaryJob,
  type SummaryBudget,
  type SummaryJob,
  type SummaryRow,
  subjectName,
  toSummaryJson,
} from '../../domain/summaries.ts';
import { printable } from '../../domain/text.ts';
import type { ChatRequest } from '../../summary/chat/chat-client.ts';
import { chatRequest, estimateTokens } from '../../summary/prompt.ts';
import { waitingMax } from '../../summary/worker/collect-jobs.ts';
import { type JobEnd, nextRequest, requestKey } from '../../summary/worker/do-job.ts';
import { prepare } from '../../summary/worker/prepare.ts';
import type { WorkEnd } from '../../summary/worker/run-summaries.ts';
import type { SummaryContext } from '../../summary/worker/summary-context.ts';
import type { Io } from '../io.ts';
import { counted, createProgressLine, painter, whole, writeForeign, writeOut } from '../output.ts';
import { rowById, textLines } from './rows.ts';

export type WorkReport = ReturnType<typeof createWorkReport>;

/** Creates the report of a run. `ids`: the jobs, if they are known. Summaries are printed as they are written. */
export function createWorkReport(
  io: Io,
  context: SummaryContext,
  { ids, json, nothing }: { ids: readonly number[] | undefined; json: boolean; nothing: string },
) {
  const ends = new Map<number, JobEnd>();
  const of = ids === undefined ? '' : ` of ${ids.length}`;
  const progress = createProgressLine(io.stderr);
  const add = async (id: number, end: JobEnd, row: SummaryRow | null) => {
    ends.set(id, end);
    // On a terminal the summaries themselves show the progress.
    if (io.stdout.isTTY !== true) progress.show(`${ends.size}${of} summaries`);
    if (row !== null && endName(end) !== null) await show(row, end, { io, json });
  };
  return {
    onEnd: async ({ id }: SummaryJob, end: JobEnd): Promise<void> =>
      add(id, end, endName(end) === null ? null : await rowById(id, context.summaries)),
    /** Number of finished jobs. */
    finished: () => [...ends.values()].filter((end) => endName(end) !== null).length,
    /** Adds the results of other programs for these jobs; resolves with the number of unfinished jobs. */
    addOthers: async (jobIds: readonly number[]) => {
      let left = 0;
      for (const id of jobIds) {
        const before = ends.get(id);
        if (before !== undefined && endName(before) !== null) continue;
        const row = await rowById(id, context.summaries);
        const end = endOf(row);
        if (endName(end) !== null) await add(id, end, row);
        // Another program finishes its request soon, or its lease expires.
        else if (row?.state === 'asking' || (row?.nextAttemptAtUs ?? 0) <= context.nowUs())
          left += 1;
      }
      return left;
    },
    /** Prints the totals. Throws `unavailable` if a summary or the service failed, `cancelled` if the user stopped it. */
    close: async (workEnd: WorkEnd) => {
      progress.done();
      const totals = await totalsOf({ workEnd, ends, ids }, context);
      const { aborted } = io.signal;
      const none = aborted ? 'Nothing was written.' : nothing;
      const text = totals.length === 0 ? none : totals.join(' ');
      if (aborted) throw new AppError('cancelled', `Stopped. ${text}`);
      const failed = [...ends.values()].some(({ end }) => end === 'failed');
      if (failed || workEnd.end === 'service') throw new AppError('unavailable', text);
      io.stderr.write(`${printable(text)}\n`);
    },
  };
}

async function show(
  row: SummaryRow,
  end: JobEnd,
  { io, json }: { io: Io; json: boolean },
): Promise<void> {
  const { stdout } = io;
  if (json) return writeForeign(stdout, `${JSON.stringify(toSummaryJson(row))}\n`);
  const paint = painter(io, stdout);
  const mark = paint(colourOf(end), endName(end) ?? '');
  const reason = 'reason' in end ? end.reason : null;
  await writeOut(stdout, textLines(row, { mark, reason }, paint, stdout));
}

function colourOf({ end }: JobEnd): 'green' | 'red' | 'yellow' {
  if (end === 'failed') return 'red';
  return ['written', 'same', 'template'].includes(end) ? 'green' : 'yellow';
}

/** Derives the result of a job of another program from its row. */
function endOf(row: SummaryRow | null): JobEnd {
  if (row === null) return { end: 'withdrawn' };
  const { state, text, error } = row;
  if (state === 'asking' || state === 'waiting') return { end: 'taken' };
  if (state !== 'done') return { end: state, reason: error ?? '' };
  if (text?.model == null) return { end: 'template' };
  return { end: text.verified ? 'written' : 'unverified' };
}

/** Texts of the results of finished jobs, in the order of the totals. Jobs with other results wait. */
const endNames: Partial<Record<JobEnd['end'], string>> = {
  written: 'written',
  unverified: 'written, but not verified',
  template: 'generated from the facts alone',
  same: 'already present',
  failed: 'failed',
  dropped: 'dropped',
  withdrawn: 'without content',
};

/** Returns the text of a finished job's result; null for an unfinished job. */
function endName({ end }: JobEnd): string | null {
  return endNames[end] ?? null;
}

/** Results of a run. */
interface WorkDone {
  workEnd: WorkEnd;
  /** Results of the processed jobs, by id. */
  ends: ReadonlyMap<number, JobEnd>;
  /** Ids of the jobs of this run; undefined for all due jobs. */
  ids: readonly number[] | undefined;
}

/** Maximum number of reasons of postponed summaries; the rows have all of them. */
const reasonsMax = 3;

/** Returns sentences; none if there was nothing to do. Each job of the run counts once. */
async function totalsOf(done: WorkDone, context: SummaryContext): Promise<string[]> {
  const ends = [...done.ends.values()];
  const isPlain = context.model === null && ends.some(({ end }) => end === 'template');
  const waiting = await waitingOf(done, context);
  return [
    ...finishedText(ends),
    ...(isPlain ? [noModel] : []),
    ...(waiting.size > 0 ? await waitingText(waiting, done, context) : []),
  ];
}

function finishedText(ends: readonly JobEnd[]): string[] {
  const counts = Object.entries(endNames).flatMap(([name, text]) => {
    const count = ends.filter(({ end }) => end === name).length;
    return count === 0 ? [] : [{ name, count, text }];
  });
  const [first, ...more] = counts;
  if (first === undefined) return [];
  if (first.name === 'withdrawn' && more.length === 0) {
    const windows = first.count === 1 ? 'this time span' : `these ${first.count} time spans`;
    return [`No products to summarize in ${windows}.`];
  }
  return [`${counts.map(({ count, text }) => `${count} ${text}`).join(', ')}.`];
}

/** Returns the ids of postponed jobs and of jobs that the run did not process. */
async function waitingOf(
  { ends, ids }: WorkDone,
  { summaries, nowUs }: SummaryContext,
): Promise<ReadonlySet<number>> {
  const due = ids === undefined ? await summaries.due({ nowUs: nowUs(), limit: waitingMax }) : [];
  const left = ids ?? due.map(({ id }) => id);
  const isFinished = (id: number) => {
    const end = ends.get(id);
    return end !== undefined && endName(end) !== null;
  };
  return new Set([...ends.keys(), ...left].filter((id) => !isFinished(id)));
}

async function waitingText(
  waiting: ReadonlySet<number>,
  { workEnd, ends }: WorkDone,
  context: SummaryContext,
): Promise<string[]> {
  const waitingCount = `${waiting.size} waiting`;
  if (workEnd.end === 'budget') {
    const until = `${shortDateUs(workEnd.untilUs)} UTC`;
    const { text, isTemporary } = spentText(workEnd.limit, context.budget, until);
    return [
      `${waitingCount}: ${text}.`,
      ...(isTemporary ? [`Then continued by ${continuedBy}.`] : []),
    ];
  }
  const postponed = [...waiting].filter((id) => ends.get(id)?.end === 'postponed');
  const isBlocked = 'untilUs' in workEnd;
  const reasons = isBlocked
    ? [workEnd.reason]
    : [...ends.values()].flatMap((end) => (end.end === 'postponed' ? [end.reason] : []));
  const nextUs = isBlocked ? workEnd.untilUs : await nextAttemptUs(postponed, context);
  const isLater = nextUs > context.nowUs();
  return [
    ...[...new Set(reasons)].slice(0, reasonsMax),
    isLater
      ? `${waitingCount}; next retry ${shortDateUs(nextUs)} UTC, by ${continuedBy}.`
      : `${waitingCount}.`,
  ];
}

/** Returns the time of the first retry; 0 for none. */
async function nextAttemptUs(
  ids: readonly number[],
  { summaries }: SummaryContext,
): Promise<number> {
  const rows: (SummaryRow | null)[] = [];
  for (const id of ids) rows.push(await rowById(id, summaries));
  const times = rows.flatMap((row) => (row?.nextAttemptAtUs == null ? [] : [row.nextAttemptAtUs]));
  return times.length === 0 ? 0 : Math.min(...times);
}

const noModel =
  'No model is configured. For summaries by a language model, set EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL.';

const continuedBy = 'a receiver with summary rules, or by `earshot summarize`';

/**
 * Describes a used-up budget: `the budget of 60 requests an hour (EARSHOT_SUMMARY_REQUESTS_PER_HOUR) is used up until
 * 2026-11-20 23:48 UTC`. `isTemporary` is false for a budget of 0.
 */
function spentText(
  limit: keyof SummaryBudget,
  budget: SummaryBudget,
  until: string,
): { text: string; isTemporary: boolean } {
  const { of, variable } = budgetLimits[limit];
  const allowed = budget[limit];
  if (allowed === 0) return { text: `nothing is sent while ${variable} is 0`, isTemporary: false };
  const which = `${whole(allowed)} ${of} (${variable})`;
  return { text: `the budget of ${which} is used up until ${until}`, isTemporary: true };
}

/** Placeholder if no model is configured. */
const placeholderModel = '<vendor>/<model_name>';

/** Prints the requests; with `--json` one per line. Rejects with `cancelled` if the user stops it. */
export async function showRequests(
  jobs: readonly (NewSummaryJob | SummaryJob)[],
  context: SummaryContext,
  { stdout, stderr, signal }: Pick<Io, 'stdout' | 'stderr' | 'signal'>,
  { json }: { json?: true },
): Promise<void> {
  const total = { requests: 0, tokens: 0, known: 0, unknown: 0 };
  for (const job of jobs) {
    if (signal.aborted) throw new AppError('cancelled', 'Stopped. Nothing was sent.');
    const request = await requestFor(job, context);
    if (typeof request === 'string') {
      total[request] += 1;
      continue;
    }
    const { kind, productId, productName } = job;
    const tokens = estimateTokens(request, kind);
    total.requests += 1;
    total.tokens += tokens;
    const line = JSON.stringify({ kind, productId, productName, tokens, request });
    const text = json
      ? `${line}\n`
      : `# ${subjectName(job)}: about ${whole(tokens)} tokens\n${JSON.stringify(request, null, 2)}\n`;
    await writeForeign(stdout, text);
  }
  stderr.write(`${totalsLine(total, context)}\n`);
}

/** Returns the request of a job; `known` if its answer is already stored, `unknown` without facts. */
async function requestFor(
  job: NewSummaryJob | SummaryJob,
  context: SummaryContext,
): Promise<ChatRequest | 'known' | 'unknown'> {
  const prepared = await prepare(job, context);
  if (prepared === null) return 'unknown';
  const request = chatRequest(prepared.sheet, context.model?.name ?? placeholderModel);
  if ((await context.summaries.known(requestKey(job, request))) !== null) return 'known';
  return nextRequest(job, request);
}

function totalsLine(
  { requests, tokens, known, unknown }: Record<'requests' | 'tokens' | 'known' | 'unknown', number>,
  { model, budget }: SummaryContext,
): string {
  const { requestsPerHour, requestsPerDay, tokensPerDay } = budget;
  return [
    `${counted(requests, 'request')}, about ${whole(tokens)} tokens.`,
    ...(known > 0 ? [`${known} more already answered.`] : []),
    ...(unknown > 0 ? [`${unknown} without content.`] : []),
    `Budget: ${whole(requestsPerHour)} requests per hour, ${whole(requestsPerDay)} per day, ${whole(tokensPerDay)} tokens per day.`,
    model === null
      ? 'No model is configured. The summaries would be generated from the facts alone, without a request.'
      : 'Nothing was sent.',
  ].join(' ');
}
