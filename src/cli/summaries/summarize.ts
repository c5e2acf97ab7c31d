/** Carries out `earshot summarize`. */
import { readAll, readDataConfig } from '../../config/read-config.ts';
import { readSummaryConfig } from '../../config/summary-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import type { NewSummaryJob } from '../../domain/summaries.ts';
import { openStore } from '../../store/store.ts';
import type { Asking } from '../../summary/worker/do-job.ts';
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

/** How often jobs are looked at that another program has in hand. */
const othersPollMs = 200;

export async function summarize(io: Io, flags: SummarizeFlags): Promise<void> {
  if (flags.printPrompt) return writeOut(io.stdout, promptText());
  refuseLooseFlags(flags);
  if (flags.drop !== undefined) return dropWaiting(flags.drop, io);
  const find = isAsked(flags) ? wantedJobs(flags, io) : null;
  const [summaryConfig, dataConfig] = readAll(
    () => readSummaryConfig(io),
    () => readDataConfig(io),
  );
  const config = { ...summaryConfig, ...dataConfig };
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
  const asking = { world, pause: createServicePause(world), signal: io.signal };
  const end = await (named === undefined
    ? workDue(asking, { limit, onEnd: report.onEnd })
    : workOn(named, asking, report));
  await report.close(end);
}

/** Works on the jobs until each is done, by whichever program has it in hand. */
async function workOn(
  ids: readonly number[],
  asking: Asking,
  report: WorkReport,
): Promise<WorkEnd> {
  for (;;) {
    const end = await workDue(asking, { ids, onEnd: report.onEnd });
    if (end.end !== 'nothing due' || (await report.noteOthers(ids)) === 0) return end;
    await pause(othersPollMs, asking.signal);
  }
}
