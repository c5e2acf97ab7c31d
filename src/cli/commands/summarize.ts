/** `earshot summarize`: has a language model tell, in short texts, what arrived. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type Config, dataSections, loadConfig } from '../../config/config.ts';
import { loadSummaryRules } from '../../config/summary-rules.ts';
import { AppError } from '../../domain/app-error.ts';
import {
  areAllOff,
  digestWindows,
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
import { defineCommand, withParts } from '../command.ts';
import { limitOption, readTime, sinceOption, untilOption } from '../flags.ts';
import { type Io, pause } from '../io.ts';
import { createLogger } from '../logger.ts';
import { createProgressLine, writeOut } from '../output.ts';
import { withCurrentIndex } from '../product-index.ts';
import { collectAll, dueAfterCollecting, type WantedFlags, wantedJobs } from '../summaries/jobs.ts';
import { neverNotified, rowById } from '../summaries/rows.ts';
import { openSummaryContext } from '../summaries/summary-context.ts';
import { createWorkReport, showRequests, type WorkReport } from '../summaries/work-report.ts';

export const summarizeCommand = defineCommand('summarize', {
  description: 'Write the summaries that are due, or those that are asked for here.',
  flags: (command, io) => addFlags(command, readTime(io)),
  help: `Waits when the inference service asks for a pause of up to 2 minutes: 429 or
503 with Retry-After.

Without --each or --digest, does what the rules ask for: \`summary\` in earshot.config.ts, or
EARSHOT_SUMMARY. For --each, --since is 24h by default; with --filter alone, the time does not
count.

--digest tells of whole hours, days or weeks (UTC; weeks begin on Monday) that are over: all that
--since to --until touches, without --since the last one. The one that still lasts is left out; only
where nothing came in the others, it is told of up to now.

A text that is there already for the same facts, model and prompt is not asked for again. Together
with a receiver that runs, no more is sent than EARSHOT_SUMMARY_REQUESTS_PER_HOUR,
…_REQUESTS_PER_DAY and …_TOKENS_PER_DAY allow: what is left waits. Without a model
(EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL) the texts are made of the facts alone.

--retry with ids also takes texts that are not verified. What --drop dropped, it tries again. A text
that is being asked for is not dropped, and a rule that is not turned off goes on asking for new
ones.

--json: kind productId productName text model verified createdAt error, and more (query summaries
--help); with --dry-run kind productId productName tokens request. --dry-run needs no model. Exit
code 1 when a text failed, or the service cannot be used; not for what waits for the budget.

Examples:
  $ earshot summarize                                          what is due by the rules
  $ earshot summarize --each --since 2h --limit 20
  $ earshot summarize --digest day --since 7d
  $ earshot summarize --each --filter "Collection/Name eq 'SENTINEL-1'" --dry-run
  $ earshot summarize --retry all
  $ earshot summarize --drop all                               after a rule was turned off
  $ earshot summarize --print-prompt`,
  check: (flags: SummarizeFlags) => refuseLooseFlags(flags),
  run: (io, flags) => summarize(io, flags),
});

function addFlags(command: Command, time: ReturnType<typeof readTime>): Command {
  return command
    .configureOutput({ outputError: (text, write) => write(withIdsAdvice(text)) })
    .option('--each', 'one text for each product, whatever the rules say')
    .addOption(
      new Option('--digest <window>', 'one text for each window, whatever the rules say')
        .choices(digestWindows)
        .conflicts('each'),
    )
    .addOption(sinceOption(time, 'received'))
    .addOption(untilOption(time, 'received'))
    .option('--filter <expression>', 'only products that match this $filter expression')
    .option('--subscription <name>', 'only what came for this subscription')
    .addOption(limitOption({ of: 'texts', note: 'the newest first' }))
    .option('--dry-run', 'print the requests and what they would cost; send and change nothing')
    .addOption(
      new Option('--retry <all|ids>', 'try what failed or was dropped again; ids with commas')
        .argParser(readIds)
        .conflicts(['each', 'digest', 'dryRun', 'drop']),
    )
    .addOption(
      new Option('--drop <all|ids>', 'write no text for what waits, and do nothing else')
        .argParser(readIds)
        .conflicts(['each', 'digest', 'dryRun', 'limit']),
    )
    .option('--print-prompt', 'print what the model is told, and nothing else')
    .option('--json', 'as JSON lines: the rows of query summaries, or the requests');
}

const idsAdvice = 'Use all, or ids as query summaries shows them: 12,15.';

/** A flag without its ids is refused before they are read. */
function withIdsAdvice(error: string): string {
  return error.replace(/(--(?:retry|drop) .* argument missing)\n/, `$1. ${idsAdvice}\n`);
}

function readIds(text: string): number[] | 'all' {
  if (text === 'all') return text;
  const ids = text.split(',').map(Number);
  if (ids.every((id) => Number.isSafeInteger(id) && id > 0)) return ids;
  throw new InvalidArgumentError(idsAdvice);
}

interface SummarizeFlags extends WantedFlags {
  dryRun?: true;
  retry?: number[] | 'all';
  drop?: number[] | 'all';
  printPrompt?: true;
  json?: true;
}

/** How often jobs are checked that another program works on. */
const othersPollMs = 200;

/** Longest wait for a service that asks for a pause. */
const serviceWaitMaxMs = 120_000;

/** The least wait, which doubles with each one that no answer follows: every attempt costs a part of the budget. */
const serviceWaitMinMs = { first: 1_000, max: 16_000 };

async function summarize(io: Io, flags: SummarizeFlags): Promise<void> {
  if (flags.printPrompt) return writeOut(io.stdout, promptText());
  if (flags.drop !== undefined) return dropWaiting(flags.drop, io);
  const find = isAsked(flags) ? wantedJobs(flags, io) : null;
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
      const tell = (sentence: string) => void io.stderr.write(`${sentence}\n`);
      const wanted = await find?.({ store, products, nowUs: io.nowUs(), signal, tell });
      if (flags.dryRun) {
        const jobs = wanted ?? (await dueAfterCollecting(context, rules.of, signal));
        const nothing = wanted === undefined ? nothingDue(rules) : nothingWanted;
        if (jobs.length === 0) return tell(nothing);
        return await showRequests(jobs.slice(0, flags.limit), context, io, flags);
      }
      const task = await taskOf(flags, wanted, rules, { context, io });
      await work(task, context, io, flags);
    }),
  );
}

function isAsked({ each, digest }: SummarizeFlags): boolean {
  return each !== undefined || digest !== undefined;
}

function refuseLooseFlags(flags: SummarizeFlags): void {
  if (flags.printPrompt || isAsked(flags)) return;
  const loose = (['since', 'until', 'filter', 'subscription'] as const).filter(
    (name) => flags[name] !== undefined,
  );
  if (loose.length === 0) return;
  throw new AppError(
    'usage',
    `--${loose.join(' and --')}: say what is to be written, --each or --digest day. Without them, the rules say it.`,
  );
}

async function taskOf(
  { retry }: SummarizeFlags,
  wanted: NewSummaryJob[] | undefined,
  rules: Rules,
  { context, io }: { context: SummaryContext; io: Io },
): Promise<Task> {
  if (retry !== undefined) return retryTask(retry, context, io);
  if (wanted !== undefined) {
    const atUs = context.nowUs();
    const { ids } = await context.summaries.enqueue({ jobs: wanted, waitingMax, atUs });
    return { ids, nothing: nothingWanted };
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
  const patience = createPatience(io);
  const run = async (): Promise<WorkEnd> => {
    for (;;) {
      const left = limit === undefined ? undefined : limit - report.over();
      const only = named === undefined ? { limit: left } : { ids: named };
      const before = report.over();
      const end = await workDue(asking, { ...only, onEnd: report.onEnd });
      if (report.over() > before) patience.reset();
      if (end.end !== 'service' || !(await patience.waitFor(end))) return end;
    }
  };
  const end = await (named === undefined ? run() : untilAllEnded(named, run, { report, io }));
  await report.close(end);
}

/** Repeats the work until each job has ended, by whichever program works on it. */
async function untilAllEnded(
  ids: readonly number[],
  run: () => Promise<WorkEnd>,
  { report, io }: { report: WorkReport; io: Pick<Io, 'signal'> },
): Promise<WorkEnd> {
  for (;;) {
    const end = await run();
    if (end.end !== 'nothing due' || (await report.noteOthers(ids)) === 0) return end;
    await pause(othersPollMs, io.signal);
  }
}

type ServiceEnd = Extract<WorkEnd, { end: 'service' }>;

/**
 * Waits for a service that asks for a short pause (429 or 503 with `Retry-After`). Several pauses without an answer in
 * between are one wait. `waitFor` resolves with false when the wait would be too long, or the service named no time.
 */
function createPatience({ stderr, signal, nowUs }: Pick<Io, 'stderr' | 'signal' | 'nowUs'>) {
  let [waitedMs, waits] = [0, 0];
  const progress = createProgressLine(stderr);
  return {
    reset: () => {
      [waitedMs, waits] = [0, 0];
    },
    waitFor: async ({ untilUs, isAsked }: ServiceEnd): Promise<boolean> => {
      const leastMs = Math.min(serviceWaitMinMs.max, serviceWaitMinMs.first * 2 ** waits);
      const waitMs = Math.max(leastMs, Math.ceil((untilUs - nowUs()) / 1_000));
      if (!isAsked || waitedMs + waitMs > serviceWaitMaxMs) return false;
      waitedMs += waitMs;
      waits += 1;
      const text = (ms: number) =>
        `The inference service asks to wait: continuing in ${Math.ceil(ms / 1_000)} s`;
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
  /** The jobs; undefined for all that are due. */
  ids: number[] | undefined;
  /** What is said when that turns out to be nothing. */
  nothing: string;
}

interface Rules {
  of: RuleOf;
  /** Whether none of them asks for anything. */
  areOff: boolean;
}

/** Rejects with `configuration` for a file with faults. */
async function readRules(
  { rule }: Config['summary'],
  { workingDir }: Pick<Io, 'workingDir'>,
): Promise<Rules> {
  const bySubscription = await loadSummaryRules(workingDir);
  const otherwise = plainSummaryRule(rule);
  const areOff = areAllOff([otherwise, ...bySubscription.values()]);
  return { of: compileRules(bySubscription, otherwise), areOff };
}

/** What is said where flags ask for nothing that is there. */
const nothingWanted = 'Nothing to write: no product was received in this time, or none matches.';

/** What is said where the rules ask for nothing now. */
function nothingDue({ areOff }: Rules): string {
  return areOff
    ? 'No rule asks for summaries: set EARSHOT_SUMMARY, or `summary` in earshot.config.ts. Without a rule: `earshot summarize --each --since 24h`'
    : 'Nothing was due. For what came before there were rules: `earshot summarize --each --since 24h`';
}

/** Those that failed or were dropped, and those named whose text is not verified. */
async function retryTask(
  wanted: number[] | 'all',
  { summaries, nowUs }: SummaryContext,
  { stderr }: Pick<Io, 'stderr'>,
): Promise<Task> {
  const count = await summaries.retry({ ids: wanted, nowUs: nowUs() });
  if (count > 0) stderr.write(`${count} to be tried again.\n`);
  const nothing =
    'Nothing to retry. Only failed and dropped summaries, or unverified ones named by id, can be retried: `earshot query summaries --state failed` shows them.';
  if (wanted === 'all') return { ids: count === 0 ? [] : undefined, nothing };
  const due = await summaries.due({ nowUs: nowUs(), limit: wanted.length, ids: wanted });
  const ids = due.map(({ id }) => id);
  const others = wanted.filter((id) => !ids.includes(id)).slice(0, othersMax);
  for (const id of others) stderr.write(`${await whyNot(id, summaries)}\n`);
  return { ids, nothing };
}

/** More of the ids that cannot be tried again are not told. */
const othersMax = 20;

async function whyNot(id: number, summaries: Pick<SummaryReader, 'find'>): Promise<string> {
  const row = await rowById(id, summaries);
  if (row === null) return `There is no summary #${id}.`;
  const { state, text } = row;
  return `#${id} is ${state}${text?.verified && state === 'done' ? ' and verified' : ''}.`;
}

/** Needs neither a model nor the product index. */
async function dropWaiting(ids: readonly number[] | 'all', io: Io): Promise<void> {
  const count = await withParts(io, ['store'], ({ store }) => store.summaries.drop({ ids }));
  io.stderr.write(
    count > 0
      ? `${count} dropped.\n`
      : 'Nothing to drop. Only what waits can be dropped: `earshot query summaries --state waiting` shows it.\n',
  );
}

/** The fixed part of each kind of request; the facts follow in a message of their own. */
function promptText(): string {
  return summaryKinds.map((kind) => `# ${kind}\n${systemPrompt(kind)}\n`).join('\n');
}
