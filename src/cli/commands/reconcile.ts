/** `earshot reconcile`: compares the log with the catalogue, and writes what is missing into it. */
import { loadConfig, type ReconcileConfig, reconcileSections } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { type ReconcileRun, settlingUs } from '../../domain/completeness.ts';
import { shortDateUs } from '../../domain/dates.ts';
import { reconcile } from '../../reconcile/reconcile.ts';
import {
  type ReconcileTask,
  type TaskReport,
  type TimeWindow,
  tasksOf,
} from '../../reconcile/tasks.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import { catchUpIndex, startIndexing } from '../../store/products/index-maintenance.ts';
import { openProducts } from '../../store/products/products.ts';
import type { Store } from '../../store/store.ts';
import { type Closers, createClosers, takeLockPatiently } from '../closers.ts';
import { defineCommand, withParts } from '../command.ts';
import {
  addHiddenAlias,
  addSpan,
  readTimeArgument,
  readWindow,
  type TimeArgument,
} from '../flags.ts';
import { type Io, pause } from '../io.ts';
import { createLogger } from '../logger.ts';
import { counted, createProgressLine } from '../output.ts';
import { neverRegistered, openListing, unknownSubscription } from '../reconcile-listing.ts';
import {
  aheadOf,
  clockNote,
  createReconcileOutput,
  createTellTrouble,
  progressText,
  type ReconcileOutput,
} from '../reconcile-output.ts';

export const reconcileCommand = defineCommand('reconcile', {
  description: 'Compare the log with the catalogue, and fetch what is missing.',
  flags: (command, io) => {
    const time = readTimeArgument(io);
    addSpan(command, time, 'events', '24h')
      .option('--subscription <name>', 'only this one; may be given more than once', collect, [])
      .option('--dry-run', 'list what is missing, and write nothing')
      .option('--check', 'only count, and exit with 3 when something is missing')
      .option('--json', 'as JSON: see below');
    addHiddenAlias(command, '--from <time>', { of: 'since', parse: time });
    return addHiddenAlias(command, '--to <time>', { of: 'until', parse: time });
  },
  help: `For each subscription that was registered here, asks the catalogue for what was published, modified
and deleted, with the filter and the events that held at that time, and looks each event up in the
log. What is missing is written into the log with the source "reconcile"; a push that comes late is
recognised as the same. Doing it twice adds nothing. The receiver does the same by itself
(EARSHOT_RECONCILE); this is for a look at once, a time before the subscription, or a machine where
no receiver runs.

Asks at most EARSHOT_RECONCILE_REQUESTS_PER_MINUTE times a minute, one after the other. After a
crash or Ctrl-C, the same command goes on from the last whole hour, within two hours of its start.

Expected are events since a subscription began, as in \`earshot coverage\`. With --from before that,
events of the earlier time are fetched, too, with the first filter, and counted apart.

The catalogue shows each product in its newest state only: a modification that was followed by
another one, and the publication of a product that has been deleted since, cannot be fetched.

--json: an object with from, to, requests, seconds (of these answersSeconds for the catalogue's
answers, waitedSeconds for its turn), fetched (events that were missing until now), and counts: one
row for each subscription and event (subscription event expected pushed late recovered missing
unreadable undecided; the last two are records that are not counted, as they have no proper Id or
date, or lack what the filter asks for); and earlier: fetched and counts (events in place of
expected) from before the subscription began. With --dry-run, JSON lines instead, one for each
missing event: subscription event productId productName date.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 something is missing (--check).

Examples:
  $ earshot reconcile --since 10d                         after ten days without a receiver
  $ earshot reconcile --since 2026-11-01 --until 2026-11-02 --check
  $ earshot reconcile --since 3d --subscription alps --dry-run`,
  run: runReconcile,
});

const collect = (text: string, before: readonly string[]) => [...before, text];

interface ReconcileFlags {
  since?: TimeArgument;
  until?: TimeArgument;
  subscription: readonly string[];
  dryRun?: true;
  check?: true;
  json?: true;
}

const dayUs = 86_400_000_000;

/** An unfinished run that is older is none to go on with: the catalogue has moved on. */
const resumableUs = 7_200_000_000;

/** Rejects with `differences` when `--check` finds something missing. */
export async function runReconcile(io: Io, flags: ReconcileFlags): Promise<void> {
  const config = loadConfig(io, reconcileSections);
  const window = readWindow(flags, io, { backUs: dayUs });
  const closers = createClosers();
  // That of the catalogue, once it is known.
  const clock = { nowUs: io.nowUs };
  try {
    await withParts(io, ['store'], async ({ store }) => {
      const tasks = await plannedTasks(store, flags, await wholeWindow(store, window, io));
      const waiting = 'Waiting for the receiver, or another command, that is comparing now …';
      const lock = { io, waiting, signal: io.signal };
      closers.add(await takeLockPatiently(createTakeLock(config.dataDir), 'reconcile', lock));
      const output = createReconcileOutput(io, { ...flags, ...window });
      const deps = { config, store, flags, tasks, output, closers, clock };
      const reports = await compare(io, deps).finally(closers.closeAll);
      await output.end(reports);
      if (flags.check) refuseMissing(reports, flags);
    });
  } catch (error) {
    throw io.signal.aborted ? stopped(flags, aheadOf(clock, io)) : error;
  } finally {
    io.stderr.write(clockNote(aheadOf(clock, io)));
  }
}

/** Throws `differences` when something is missing. */
function refuseMissing(reports: readonly TaskReport[], { dryRun }: ReconcileFlags): void {
  const missing = reports
    .filter(({ task }) => !task.isEarlier)
    .reduce((sum, report) => sum + report.missing, 0);
  if (missing === 0) return;
  const options = dryRun ? '--check and --dry-run' : '--check';
  throw new AppError('differences', `${counted(missing, 'event is', 'events are')} missing.`, {
    advice: `The same command without ${options} fetches ${missing === 1 ? 'it' : 'them'}.`,
  });
}

/** The user has asked for it, whatever that made fail. */
function stopped({ dryRun }: ReconcileFlags, aheadUs: number): AppError {
  // Hours are dated by the catalogue: those of this run seem to be older than it.
  const next =
    aheadUs > 0
      ? "the same command may compare it again, as this machine's clock is ahead of the catalogue's."
      : 'the same command goes on from there.';
  const kept = `What was compared is kept; ${next}`;
  return new AppError('cancelled', `Stopped. ${dryRun ? 'Nothing was written.' : kept}`);
}

/** Without what lies before the horizon of pruning. Rejects with `usage` where nothing else is left. */
async function wholeWindow(
  { completeness }: Pick<Store, 'completeness'>,
  { fromUs, toUs }: TimeWindow,
  { stderr }: Pick<Io, 'stderr'>,
): Promise<TimeWindow> {
  const wholeSinceUs = await completeness.wholeSinceUs();
  if (fromUs >= wholeSinceUs) return { fromUs, toUs };
  const pruned = `What was received before was pruned, and is not fetched again (\`earshot prune\`).`;
  const since = `${shortDateUs(wholeSinceUs)} (UTC)`;
  if (toUs <= wholeSinceUs) {
    throw new AppError('usage', `The log is whole since ${since}, after --until. ${pruned}`);
  }
  stderr.write(`Compared from ${since} on. ${pruned}\n`);
  return { fromUs: wholeSinceUs, toUs };
}

/** Rejects with `configuration` where there is nothing to compare with. */
async function plannedTasks(
  { administration, completeness }: Pick<Store, 'administration' | 'completeness'>,
  { subscription: named }: ReconcileFlags,
  window: TimeWindow,
): Promise<ReconcileTask[]> {
  const definitions = await completeness.definitions();
  const registrations = await administration.registrations();
  const known = [...new Set(definitions.map(({ subscription }) => subscription))];
  if (known.length === 0) throw neverRegistered('then --since may reach back as far as you like');
  const unknown = named.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw unknownSubscription(unknown, known);
  const subscriptions = named.length === 0 ? known : named;
  return tasksOf({ definitions, registrations, ...window, subscriptions, reachBack: true });
}

interface Deps {
  config: ReconcileConfig;
  store: Store;
  flags: ReconcileFlags;
  tasks: readonly ReconcileTask[];
  output: ReconcileOutput;
  closers: Closers;
  clock: { nowUs: () => number };
}

async function compare(io: Io, deps: Deps): Promise<TaskReport[]> {
  const { config, store, flags, tasks, output, closers, clock } = deps;
  const { dataDir, diskReserveBytes } = config;
  const { nowUs: ownNowUs, signal, stderr } = io;
  const place = { dataDir, diskReserveBytes };
  // What is found is looked up in the index, which must be there, and follow: next to a receiver two do.
  await catchUpIndex({ ...place, signal });
  signal.throwIfAborted();
  const log = createLogger(io, 'error');
  const indexing = startIndexing({ ...place, log, besideIntake: false });
  closers.add(() => indexing.stop());
  const products = openProducts(dataDir);
  closers.add(() => products.close());
  const progress = createProgressLine(stderr);
  const tellTrouble = createTellTrouble(io);
  const { listing, nowUs } = openListing(config, io, (trouble) => {
    tellTrouble(trouble, progress.clear);
  });
  clock.nowUs = nowUs;
  const { completeness } = store;
  // `--dry-run --check` looks, counts, writes nothing, and exits with 3.
  const mode = flags.dryRun ? 'preview' : flags.check ? 'check' : 'write';
  const run = mode === 'preview' ? null : await begunRun(completeness, flags, ownNowUs());
  try {
    const reports = await reconcile(
      // By the catalogue's time: an hour that lasts yet there is not complete, whatever our clock says.
      { listing, completeness, products, log: store, pause, nowUs, ownNowUs },
      {
        tasks,
        mode,
        settlingUs,
        resumeSinceUs: run?.isResumed ? run.startedAtUs : null,
        coverage: mode !== 'preview',
        onSkipped: (hours) => {
          if (run === null || hours === 0) return;
          stderr.write(`Going on with what began ${sinceThen(run, ownNowUs())} ago.\n`);
        },
        onProgress: (reached) => progress.show(progressText(reached, listing.spent().requests)),
        onMissing: (event) => {
          if (flags.dryRun) progress.clear();
          output.missing(event);
        },
        signal,
      },
    );
    if (run !== null) await completeness.endRun({ id: run.id, atUs: ownNowUs() });
    output.spent(listing.spent());
    return reports;
  } finally {
    progress.done();
  }
}

/** The run of these words that did not end, or a new one. */
async function begunRun(
  completeness: Store['completeness'],
  { since, until, subscription, check }: ReconcileFlags,
  atUs: number,
): Promise<ReconcileRun & { isResumed: boolean }> {
  const words = {
    // Named as the flags were before: a run that was begun then is still found.
    from: since?.text,
    to: until?.text,
    subscription: subscription.toSorted(),
    check: check === true,
  };
  const request = JSON.stringify(words);
  const run = await completeness.beginRun({ request, atUs });
  if (atUs - run.startedAtUs <= resumableUs) return { ...run, isResumed: run.startedAtUs < atUs };
  await completeness.endRun({ id: run.id, atUs });
  return { ...(await completeness.beginRun({ request, atUs })), isResumed: false };
}

function sinceThen({ startedAtUs }: ReconcileRun, nowUs: number): string {
  const minutes = Math.round((nowUs - startedAtUs) / 60_000_000);
  return minutes < 1 ? 'less than a minute' : `${minutes} min`;
}
