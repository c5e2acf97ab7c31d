/** Tells a person, or a program, what became of each summary and what is left, or what would be sent. */
import { AppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/dates.ts';
import {
  budgetLimits,
  type NewSummaryJob,
  type SummaryBudget,
  type SummaryJob,
  type SummaryRow,
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
import { rowById, subjectName, textLines } from './rows.ts';

export type WorkReport = ReturnType<typeof createWorkReport>;

/** `ids`: the jobs, where it is known which. Texts are printed as they come. */
export function createWorkReport(
  io: Io,
  context: SummaryContext,
  { ids, json, nothing }: { ids: readonly number[] | undefined; json: boolean; nothing: string },
) {
  const ends = new Map<number, JobEnd>();
  const of = ids === undefined ? '' : ` of ${ids.length}`;
  const progress = createProgressLine(io.stderr);
  const note = async (id: number, end: JobEnd, row: SummaryRow | null) => {
    ends.set(id, end);
    // On one terminal the texts themselves show how far it is.
    if (io.stdout.isTTY !== true) progress.show(`${ends.size}${of} texts`);
    if (row !== null && endName(end) !== null) await show(row, end, { io, json });
  };
  return {
    onEnd: async ({ id }: SummaryJob, end: JobEnd): Promise<void> =>
      note(id, end, endName(end) === null ? null : await rowById(id, context.summaries)),
    /** Number of jobs that have ended. */
    over: () => [...ends.values()].filter((end) => endName(end) !== null).length,
    /** Notes what other programs made of these jobs; resolves with how many are still to be done. */
    noteOthers: async (wanted: readonly number[]) => {
      let left = 0;
      for (const id of wanted) {
        const before = ends.get(id);
        if (before !== undefined && endName(before) !== null) continue;
        const row = await rowById(id, context.summaries);
        const end = endOf(row);
        if (endName(end) !== null) await note(id, end, row);
        // Another program that asks is done soon, or its lease ends.
        else if (row?.state === 'asking' || (row?.nextAttemptAtUs ?? 0) <= context.nowUs())
          left += 1;
      }
      return left;
    },
    /** Tells the sum. Throws `unavailable` when a text failed or the service cannot be used, `cancelled` when the user ended it. */
    close: async (workEnd: WorkEnd) => {
      progress.done();
      const sum = await sumOfWork({ workEnd, ends, ids }, context);
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
async function sumOfWork(done: WorkDone, context: SummaryContext): Promise<string[]> {
  const ends = [...done.ends.values()];
  const isPlain = context.model === null && ends.some(({ end }) => end === 'template');
  const waiting = await waitingOf(done, context);
  return [
    ...overPhrase(ends),
    ...(isPlain ? [noModel] : []),
    ...(waiting.size > 0 ? await waitingText(waiting, done, context) : []),
  ];
}

function overPhrase(ends: readonly JobEnd[]): string[] {
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
  { summaries, nowUs }: SummaryContext,
): Promise<ReadonlySet<number>> {
  const due = ids === undefined ? await summaries.due({ nowUs: nowUs(), limit: waitingMax }) : [];
  const left = ids ?? due.map(({ id }) => id);
  const isOver = (id: number) => {
    const end = ends.get(id);
    return end !== undefined && endName(end) !== null;
  };
  return new Set([...ends.keys(), ...left].filter((id) => !isOver(id)));
}

async function waitingText(
  waiting: ReadonlySet<number>,
  { workEnd, ends }: WorkDone,
  context: SummaryContext,
): Promise<string[]> {
  const wait = `${waiting.size} ${waiting.size === 1 ? 'waits' : 'wait'}`;
  if (workEnd.end === 'budget') {
    const until = `${shortDateUs(workEnd.untilUs)} UTC`;
    const { words, frees } = spentText(workEnd.limit, context.budget, until);
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
  const nextUs = isBlocked ? workEnd.untilUs : await nextTryUs(postponed, context);
  const isLater = nextUs > context.nowUs();
  return [
    ...[...new Set(reasons)].slice(0, reasonsMax),
    isLater
      ? `${wait}; next retry ${shortDateUs(nextUs)} UTC, by ${whoGoesOn}, or by \`earshot summarize\`.`
      : `${wait}.`,
  ];
}

/** When the first of them is tried; 0 where none is to be tried later. */
async function nextTryUs(ids: readonly number[], { summaries }: SummaryContext): Promise<number> {
  const rows: (SummaryRow | null)[] = [];
  for (const id of ids) rows.push(await rowById(id, summaries));
  const times = rows.flatMap((row) => (row?.nextAttemptAtUs == null ? [] : [row.nextAttemptAtUs]));
  return times.length === 0 ? 0 : Math.min(...times);
}

const noModel =
  'No model is configured: EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL would have one write them.';

const whoGoesOn = 'a running receiver whose rules ask for summaries';

/**
 * `the budget of 60 requests an hour (EARSHOT_SUMMARY_REQUESTS_PER_HOUR) is spent until 2026-11-20 23:48 UTC`,
 * and whether it frees by waiting.
 */
function spentText(
  limit: keyof SummaryBudget,
  budget: SummaryBudget,
  until: string,
): { words: string; frees: boolean } {
  const { of, variable } = budgetLimits[limit];
  const allowed = budget[limit];
  if (allowed === 0) return { words: `nothing is ever sent while ${variable} is 0`, frees: false };
  const which = `${whole(allowed)} ${of} (${variable})`;
  return { words: `the budget of ${which} is spent until ${until}`, frees: true };
}

/** Stands in for a model where none is configured. */
const placeholderModel = '<vendor>/<model_name>';

/** One request a line with `--json`, else one below the other. Rejects with `cancelled` when the user ends it. */
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

/** The request, `known` where its answer is there already, `unknown` where there is nothing to tell. */
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
    ...(known > 0 ? [`${known} more answered already.`] : []),
    ...(unknown > 0 ? [`${unknown} with nothing to tell.`] : []),
    `Allowed are ${whole(requestsPerHour)} requests an hour, ${whole(requestsPerDay)} a day, and ${whole(tokensPerDay)} tokens a day.`,
    model === null
      ? 'No model is configured, so none would be sent: the texts would be made of the facts alone.'
      : 'Nothing was sent.',
  ].join(' ');
}
