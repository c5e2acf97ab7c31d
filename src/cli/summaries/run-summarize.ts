/** Runs `earshot summarize`: due summaries, or those that the flags request. */
import { type Config, dataSections, loadConfig } from '../../config/config.ts';
import { loadSummaryRules } from '../../config/summary-rules.ts';
import {
  areAllOff,
  type NewSummaryJob,
  plainSummaryRule,
  type SummaryReader,
  summaryKinds,
} from '../../domain/summaries.ts';
import { printable } from '../../domain/text.ts';
import { systemPrompt } from '../../summary/prompt.ts';
import { compileRules, type RuleOf, waitingMax } from '../../summary/worker/collect-jobs.ts';
import { type WorkEnd, workDue } from '../../summary/worker/run-summaries.ts';
import { createServicePause, type SummaryContext } from '../../summary/worker/summary-context.ts';
import { withParts } from '../command.ts';
import { type Io, pause } from '../io.ts';
import { createLogger } from '../logger.ts';
import { createProgressLine, writeOut } from '../output.ts';
import { withCurrentIndex } from '../product-index.ts';
import { collectAll, dueAfterCollecting, type JobFlags, requestedJobs } from './jobs.ts';
import { neverNotified, rowById } from './rows.ts';
import { openSummaryContext } from './summary-context.ts';
import { createWorkReport, showRequests, type WorkReport } from './work-report.ts';

export interface SummarizeFlags extends JobFlags {
  dryRun?: true;
  retry?: number[] | 'all';
  drop?: number[] | 'all';
  printPrompt?: true;
  json?: true;
}

/** Polling interval for jobs of another program. */
const othersPollMs = 200;

/** Maximum wait for a service that requests a pause. */
const serviceWaitMaxMs = 120_000;

/** Minimum wait, doubled after each attempt without an answer: every attempt uses part of the budget. */
const serviceWaitMinMs = { first: 1_000, max: 16_000 };

export async function summarize(io: Io, flags: SummarizeFlags): Promise<void> {
  if (flags.printPrompt) return writeOut(io.stdout, promptText());
  if (flags.drop !== undefined) return dropWaiting(flags.drop, io);
  const find = hasRequest(flags) ? requestedJobs(flags, io) : null;
  const { summary, ...place } = loadConfig(io, ['summary', ...dataSections]);
  const config = { ...summary, ...place };
  const rules = await readRules(config, io);
  const log = createLogger(io, 'error');
  await withCurrentIndex(config, io, (products) =>
    withParts(io, ['store'], async ({ store }) => {
      const context = openSummaryContext(config, { store, products, log }, io);
      const unknown = await neverNotified(flags.subscription, store, io);
      if (unknown !== null) return void io.stderr.write(`${printable(unknown)}\n`);
      const { signal } = io;
      const print = (message: string) => void io.stderr.write(`${message}\n`);
      const requested = await find?.({ store, products, nowUs: io.nowUs(), signal, print });
      if (flags.dryRun) {
        const jobs = requested ?? (await dueAfterCollecting(context, rules.of, signal));
        const nothing = requested === undefined ? nothingDue(rules) : nothingFound;
        if (jobs.length === 0) return print(nothing);
        return await showRequests(jobs.slice(0, flags.limit), context, io, flags);
      }
      const task = await taskOf(flags, requested, rules, { context, io });
      await work(task, context, io, flags);
    }),
  );
}

function hasRequest({ each, digest }: SummarizeFlags): boolean {
  return each !== undefined || digest !== undefined;
}

async function taskOf(
  { retry }: SummarizeFlags,
  requested: NewSummaryJob[] | undefined,
  rules: Rules,
  { context, io }: { context: SummaryContext; io: Io },
): Promise<Task> {
  if (retry !== undefined) return retryTask(retry, context, io);
  if (requested !== undefined) {
    const atUs = context.nowUs();
    const { ids } = await context.summaries.enqueue({ jobs: requested, waitingMax, atUs });
    return { ids, nothing: nothingFound };
  }
  await collectAll(context, rules.of, io.signal);
  return { ids: undefined, nothing: nothingDue(rules) };
}

async function work(
  { ids, nothing }: Task,
  context: SummaryContext,
  io: Io,
  { limit, json }: SummarizeFlags,
): Promise<void> {
  const named = ids?.slice(0, limit);
  const report = createWorkReport(io, context, { ids: named, json: json === true, nothing });
  const pause = createServicePause(context, { isAttended: true });
  const asking = { context, pause, signal: io.signal };
  const serviceWait = createServiceWait(io);
  const run = async (): Promise<WorkEnd> => {
    for (;;) {
      const left = limit === undefined ? undefined : limit - report.finished();
      const only = named === undefined ? { limit: left } : { ids: named };
      const before = report.finished();
      const end = await workDue(asking, { ...only, onEnd: report.onEnd });
      if (report.finished() > before) serviceWait.reset();
      if (end.end !== 'service' || !(await serviceWait.waitFor(end))) return end;
    }
  };
  const end = await (named === undefined ? run() : untilAllEnded(named, run, { report, io }));
  await report.close(end);
}

/** Repeats the work until each job has ended, in this program or another one. */
async function untilAllEnded(
  ids: readonly number[],
  run: () => Promise<WorkEnd>,
  { report, io }: { report: WorkReport; io: Pick<Io, 'signal'> },
): Promise<WorkEnd> {
  for (;;) {
    const end = await run();
    if (end.end !== 'nothing due' || (await report.addOthers(ids)) === 0) return end;
    await pause(othersPollMs, io.signal);
  }
}

type ServiceEnd = Extract<WorkEnd, { end: 'service' }>;

/**
 * Waits for a service that requests a short pause (429 or 503 with `Retry-After`). Pauses without an answer in between
 * count as one wait. `waitFor` resolves with false if the wait would be too long, or without `Retry-After`.
 */
function createServiceWait({ stderr, signal, nowUs }: Pick<Io, 'stderr' | 'signal' | 'nowUs'>) {
  let [waitedMs, waits] = [0, 0];
  const progress = createProgressLine(stderr);
  return {
    reset: () => {
      [waitedMs, waits] = [0, 0];
    },
    waitFor: async ({ untilUs, isRetryAfter }: ServiceEnd): Promise<boolean> => {
      const leastMs = Math.min(serviceWaitMinMs.max, serviceWaitMinMs.first * 2 ** waits);
      const waitMs = Math.max(leastMs, Math.ceil((untilUs - nowUs()) / 1_000));
      if (!isRetryAfter || waitedMs + waitMs > serviceWaitMaxMs) return false;
      waitedMs += waitMs;
      waits += 1;
      const text = (ms: number) =>
        `The inference service requested a pause: continuing in ${Math.ceil(ms / 1_000)} s`;
      if (stderr.isTTY !== true) stderr.write(`${text(waitMs)}.\n`);
      for (let leftMs = waitMs; leftMs > 0 && !signal.aborted; leftMs -= 1_000) {
        progress.show(`${text(leftMs)} `);
        await pause(Math.min(leftMs, 1_000), signal);
      }
      progress.clear();
      return !signal.aborted;
    },
  };
}

interface Task {
  /** Ids of the jobs; undefined for all due jobs. */
  ids: number[] | undefined;
  /** Message if there are none. */
  nothing: string;
}

interface Rules {
  of: RuleOf;
  /** True if no rule requests summaries. */
  areOff: boolean;
}

/** Reads the rules. Rejects with `configuration` for an invalid file. */
async function readRules(
  { rule }: Config['summary'],
  { workingDir }: Pick<Io, 'workingDir'>,
): Promise<Rules> {
  const bySubscription = await loadSummaryRules(workingDir);
  const defaultRule = plainSummaryRule(rule);
  const areOff = areAllOff([defaultRule, ...bySubscription.values()]);
  return { of: compileRules(bySubscription, defaultRule), areOff };
}

/** Message if no product matches the flags. */
const nothingFound = 'Nothing to summarize: no matching product was received in this time range.';

/** Message if the rules request nothing now. */
function nothingDue({ areOff }: Rules): string {
  return areOff
    ? 'No rule requests summaries. Set EARSHOT_SUMMARY, or `summary` in earshot.config.ts. To summarize without a rule: `earshot summarize --each --since 24h`'
    : 'There are no summaries to write now. For products received before the rules were set: `earshot summarize --each --since 24h`';
}

/** Retries failed and dropped summaries, and unverified ones named by id. */
async function retryTask(
  selected: number[] | 'all',
  { summaries, nowUs }: SummaryContext,
  { stderr }: Pick<Io, 'stderr'>,
): Promise<Task> {
  const count = await summaries.retry({ ids: selected, nowUs: nowUs() });
  if (count > 0) stderr.write(`${count} to be retried.\n`);
  const nothing =
    'Nothing to retry. "all" selects failed and dropped summaries. Ids can also select unverified summaries. To list failed summaries: `earshot query summaries --state failed`';
  if (selected === 'all') return { ids: count === 0 ? [] : undefined, nothing };
  const due = await summaries.due({ nowUs: nowUs(), limit: selected.length, ids: selected });
  const ids = due.map(({ id }) => id);
  const others = selected.filter((id) => !ids.includes(id)).slice(0, othersMax);
  for (const id of others) stderr.write(`${await whyNot(id, summaries)}\n`);
  return { ids, nothing };
}

/** Maximum number of messages about ids that cannot be retried. */
const othersMax = 20;

async function whyNot(id: number, summaries: Pick<SummaryReader, 'find'>): Promise<string> {
  const row = await rowById(id, summaries);
  if (row === null) return `There is no summary #${id}.`;
  const { state, text } = row;
  return `Summary #${id} is ${state}${text?.verified && state === 'done' ? ' and verified' : ''}.`;
}

/** Needs neither a model nor the product index. */
async function dropWaiting(ids: readonly number[] | 'all', io: Io): Promise<void> {
  const count = await withParts(io, ['store'], ({ store }) => store.summaries.drop({ ids }));
  io.stderr.write(
    count > 0
      ? `${count} dropped.\n`
      : 'Nothing to drop. Only waiting summaries can be dropped: `earshot query summaries --state waiting` shows them.\n',
  );
}

/** Returns the fixed prompt of each kind of request. The facts are sent in a separate message. */
function promptText(): string {
  return summaryKinds.map((kind) => `# ${kind}\n${systemPrompt(kind)}\n`).join('\n');
}
