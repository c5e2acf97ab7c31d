/** Carries out `earshot summarize`. */
import { dataSections, loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import type { NewSummaryJob } from '../../domain/summaries.ts';
import { openStore } from '../../store/store.ts';
import { createServicePause } from '../../summary/worker/service-pause.ts';
import type { SummaryWorld } from '../../summary/worker/summary-world.ts';
import { type WorkEnd, workDue } from '../../summary/worker/work-due.ts';
import type { Io } from '../io.ts';
import { createLogger } from '../logger.ts';
import { withCurrentIndex } from '../products/current-index.ts';
import { pause } from '../until-aborted.ts';
import { writeOut } from '../write-out.ts';
import { dropWaiting } from './drop-waiting.ts';
import { dueAfterCollecting } from './jobs-by-rules.ts';
import { neverNotified } from './never-notified.ts';
import { openSummaryWorld } from './open-summary-world.ts';
import { promptText } from './prompt-text.ts';
import { showRequests } from './show-requests.ts';
import {
  dueTask,
  nothingDue,
  nothingWanted,
  type Rules,
  readRules,
  retryTask,
  type Task,
  wantedTask,
} from './summary-task.ts';
import { type WantedFlags, wantedJobs } from './wanted-jobs.ts';
import { createWorkReport, type WorkReport } from './work-report.ts';

export interface SummarizeFlags extends WantedFlags {
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

export async function summarize(io: Io, flags: SummarizeFlags): Promise<void> {
  if (flags.printPrompt) return writeOut(io.stdout, promptText());
  refuseLooseFlags(flags);
  if (flags.drop !== undefined) return dropWaiting(flags.drop, io);
  const find = isAsked(flags) ? wantedJobs(flags, io) : null;
  const { summary, ...place } = loadConfig(io, ['summary', ...dataSections]);
  const config = { ...summary, ...place };
  const rules = await readRules(config, io);
  const log = createLogger(io, 'error');
  await withCurrentIndex(config, io, async (products) => {
    const store = await openStore({ ...config, nowUs: io.nowUs, mustExist: true });
    try {
      const world = openSummaryWorld(config, { store, products, log }, io);
      const unknown = await neverNotified(flags.subscription, store, io);
      if (unknown !== null) return void io.stderr.write(`${printable(unknown)}\n`);
      const { signal } = io;
      const tell = (sentence: string) => void io.stderr.write(`${sentence}\n`);
      const wanted = await find?.({ store, products, nowUs: io.nowUs(), signal, tell });
      if (flags.dryRun) {
        const jobs = wanted ?? (await dueAfterCollecting(world, rules.of, signal));
        const nothing = wanted === undefined ? nothingDue(rules) : nothingWanted;
        if (jobs.length === 0) return tell(nothing);
        return await showRequests(jobs.slice(0, flags.limit), world, io, flags);
      }
      const task = await taskOf(flags, wanted, rules, { world, io });
      await work(task, world, io, flags);
    } finally {
      await store.close();
    }
  });
}

function isAsked({ each, digest }: SummarizeFlags): boolean {
  return each !== undefined || digest !== undefined;
}

function refuseLooseFlags(flags: SummarizeFlags): void {
  if (isAsked(flags)) return;
  const loose = (['since', 'until', 'filter', 'subscription'] as const).filter(
    (name) => flags[name] !== undefined,
  );
  if (loose.length === 0) return;
  throw new AppError(
    'usage',
    `--${loose.join(' and --')}: say what is to be written, --each or --digest day. Without them, the rules say it.`,
  );
}

function taskOf(
  { retry }: SummarizeFlags,
  wanted: NewSummaryJob[] | undefined,
  rules: Rules,
  { world, io }: { world: SummaryWorld; io: Io },
): Promise<Task> {
  if (wanted !== undefined) return wantedTask(wanted, world);
  return retry === undefined ? dueTask(rules, world, io) : retryTask(retry, world, io);
}

async function work(
  { ids, nothing }: Task,
  world: SummaryWorld,
  io: Io,
  { limit, json }: SummarizeFlags,
): Promise<void> {
  const named = ids?.slice(0, limit);
  const report = createWorkReport(io, world, { ids: named, json: json === true, nothing });
  const pause = createServicePause(world, { isAttended: true });
  const asking = { world, pause, signal: io.signal };
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
        if (stderr.isTTY) stderr.write(`\r${text(leftMs)} \u001b[K`);
        await pause(Math.min(leftMs, 1_000), signal);
      }
      if (stderr.isTTY) stderr.write('\r\u001b[K');
      return !signal.aborted;
    },
  };
}
