/** `earshot reconcile`: compares the log with the catalogue and recovers missing notifications. */

import { defineCommand, withParts } from '../../core/cli/command.ts';
import {
  addSpan,
  dryRunOption,
  jsonOption,
  readTimeArgument,
  readWindow,
  type TimeArgument,
} from '../../core/cli/flags.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { createLogger } from '../../core/cli/logger.ts';
import { createProgressLine } from '../../core/cli/output.ts';
import { unknownName } from '../../core/cli/row-forms.ts';
import { loadConfig } from '../../core/config/config.ts';
import { type Closers, createClosers, waitForLock } from '../../core/host/job.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { dayUs, shortDateUs } from '../../core/terms/dates.ts';
import { agoText, counted } from '../../core/terms/text.ts';
import type { Store } from '../../store/store.ts';
import { catchUpIndex, startIndexing } from '../products/index-file/index-maintenance.ts';
import { openProducts } from '../products/index-file/products.ts';
import { type ReconcileRun, settlingUs } from './completeness.ts';
import { neverRegistered, openListing } from './open-listing.ts';
import {
  clockNote,
  createTroubleReporter,
  printCompared,
  printMissing,
  progressText,
} from './output.ts';
import { reconcile } from './reconcile.ts';
import { type ReconcileConfig, reconcileSections } from './settings.ts';
import { type ReconcileTask, type TaskReport, type TimeWindow, tasksOf } from './tasks.ts';

export const reconcileCommand = defineCommand('reconcile', {
  description: 'Compare the log with the catalogue and fetch missing notifications.',
  flags: (command, io) => {
    const time = readTimeArgument(io);
    return addSpan(command, time, 'time of the event', '24h')
      .option('--subscription <name>', 'subscription name (repeatable; default: all)', collect)
      .addOption(dryRunOption())
      .option(
        '--check',
        'exit with code 3 if there is a problem (events are missing; --check fetches nothing)',
      )
      .addOption(jsonOption());
  },
  help: `The command queries the catalogue with the filter and the kinds of event of each registered
subscription. Missing events are added to the log with the source "reconcile". You can repeat the
command: the log contains no duplicates. The receiver runs the same comparison automatically
(EARSHOT_RECONCILE). The command also fetches events from before the start of the subscription, and
counts these events separately as earlier events. To continue after an interruption, run the command
again within two hours.

The catalogue has only the newest state of a product. Therefore these events cannot be fetched:
  - modifications before the last modification
  - publications of products that are deleted now

Fields of --json: from, to, requests, seconds, answersSeconds, waitedSeconds, fetched, counts,
earlier. Fields of each element of counts: subscription, event, expected, pushed, late, recovered,
missing, unreadable, undecided.
  answersSeconds  total time of the requests
  waitedSeconds   total time between the requests
  fetched         number of events that were added to the log
  unreadable      number of records without a valid id or date
  undecided       number of records without a property that the filter needs
  earlier         fetched and counts for earlier events; counts has events instead of expected
With --dry-run, --json prints one line for each missing event: subscription, event, productId,
productName, date.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 events missing (--check).

Examples:
  $ earshot reconcile --since 10d                 fetch after ten days without a receiver
  $ earshot reconcile --since 24h --check         check from a monitoring program
  $ earshot reconcile --since 3d --subscription alps --dry-run    list missing events`,
  run: runReconcile,
});

const collect = (text: string, previous?: readonly string[]) => [...(previous ?? []), text];

interface ReconcileFlags {
  since?: TimeArgument;
  until?: TimeArgument;
  subscription?: readonly string[];
  dryRun?: true;
  check?: true;
  json?: true;
}

/** Maximum age of an interrupted run that is continued: the catalogue changes meanwhile. */
const resumableUs = 7_200_000_000;

/** Rejects with `differences` if `--check` finds missing events. */
export async function runReconcile(io: Io, flags: ReconcileFlags): Promise<void> {
  const config = loadConfig(io, reconcileSections);
  const window = readWindow(flags, io, { backUs: dayUs });
  const closers = createClosers();
  const startedAtUs = io.nowUs();
  // Replaced by the catalogue's clock as soon as it is known.
  const clock = { nowUs: io.nowUs };
  try {
    await withParts(io, ['store'], async ({ store }) => {
      const tasks = await plannedTasks(store, flags, await wholeWindow(store, window, io));
      const waiting = 'Waiting for another comparison (receiver or command) …';
      const lock = { io, waiting, signal: io.signal };
      closers.add(await waitForLock(store.acquireLock, 'reconcile', lock));
      const deps = { config, store, flags, tasks, closers, clock };
      const compared = await compare(io, deps).finally(closers.closeAll);
      const lengthUs = io.nowUs() - startedAtUs;
      await printCompared(io, { ...compared, ...window, lengthUs }, flags);
      if (flags.check) refuseMissing(compared.reports, flags);
    });
  } catch (error) {
    if (!io.signal.aborted) throw error;
    const kept = 'Completed hours are kept; run the command again to continue.';
    const text = flags.dryRun ? 'Nothing was written.' : kept;
    throw new AppError('cancelled', `Interrupted. ${text}`);
  } finally {
    io.stderr.write(clockNote(clock.nowUs(), io.nowUs()));
  }
}

/** Throws `differences` if events are missing. */
function refuseMissing(reports: readonly TaskReport[], { dryRun }: ReconcileFlags): void {
  const own = reports.filter(({ task }) => !task.isEarlier);
  const missing = own.reduce((sum, report) => sum + report.missing, 0);
  if (missing === 0) return;
  throw new AppError('differences', `${counted(missing, 'event is', 'events are')} missing.`, {
    advice: `To fetch missing events, omit ${dryRun ? '--check and --dry-run' : '--check'}.`,
  });
}

/** Limits the range to the unpruned part of the log. Rejects with `usage` if nothing remains. */
async function wholeWindow(
  { completeness }: Pick<Store, 'completeness'>,
  { fromUs, toUs }: TimeWindow,
  { stderr }: Pick<Io, 'stderr'>,
): Promise<TimeWindow> {
  const unprunedSinceUs = await completeness.unprunedSinceUs();
  if (fromUs >= unprunedSinceUs) return { fromUs, toUs };
  const since = `${shortDateUs(unprunedSinceUs)} (UTC)`;
  const pruned = `Notifications before ${since} were pruned, and pruned notifications are not fetched again`;
  if (toUs <= unprunedSinceUs) throw new AppError('usage', `${pruned}. Use a later --until.`);
  stderr.write(`${pruned}. The comparison starts at this time.\n`);
  return { fromUs: unprunedSinceUs, toUs };
}

/** Plans the comparison. Rejects with `configuration` if no subscription was ever registered. */
async function plannedTasks(
  { administration, completeness }: Pick<Store, 'administration' | 'completeness'>,
  { subscription: named = [] }: ReconcileFlags,
  window: TimeWindow,
): Promise<ReconcileTask[]> {
  const definitions = await completeness.definitions();
  const registrations = await administration.registrations();
  const known = [...new Set(definitions.map(({ subscription }) => subscription))];
  if (known.length === 0) throw neverRegistered();
  const unknown = named.find((name) => !known.includes(name));
  if (unknown !== undefined) throw unknownName('subscription', unknown, known);
  const subscriptions = named.length === 0 ? known : named;
  return tasksOf({ definitions, registrations, ...window, subscriptions, reachBack: true });
}

interface Deps {
  config: ReconcileConfig;
  store: Store;
  flags: ReconcileFlags;
  tasks: readonly ReconcileTask[];
  closers: Closers;
  clock: { nowUs: () => number };
}

async function compare(io: Io, { config, store, flags, tasks, closers, clock }: Deps) {
  const { nowUs: ownNowUs, signal, stderr } = io;
  const { dataDir, diskReserveBytes } = config;
  const place = { dataDir, diskReserveBytes };
  // Events are looked up in the product index, so it must be current; a receiver may be indexing too.
  await catchUpIndex({ ...place, signal });
  signal.throwIfAborted();
  const indexing = startIndexing({ ...place, log: createLogger(io, 'error'), store });
  closers.add(() => indexing.stop());
  const products = openProducts(dataDir);
  closers.add(() => products.close());
  const progress = createProgressLine(stderr);
  const reportTrouble = createTroubleReporter(io);
  const { listing, nowUs } = openListing(config, io, (trouble) => {
    reportTrouble(trouble, progress.clear);
  });
  clock.nowUs = nowUs;
  const { completeness } = store;
  // `--dry-run --check` lists missing events, writes nothing, and exits with 3.
  const mode = flags.dryRun ? 'preview' : flags.check ? 'check' : 'write';
  const run = mode === 'preview' ? null : await begunRun(completeness, flags, ownNowUs());
  const fetched = { own: 0, earlier: 0 };
  try {
    const reports = await reconcile(
      // Uses the catalogue's clock: it decides when an hour is complete.
      { listing, completeness, products, log: store, pause, nowUs, ownNowUs },
      {
        ...{ tasks, mode, settlingUs, signal, coverage: mode !== 'preview' },
        resumeSinceUs: run?.isResumed ? run.startedAtUs : null,
        onSkipped: (hours) => {
          if (run === null || hours === 0) return;
          const age = agoText(ownNowUs() - run.startedAtUs);
          stderr.write(`Continuing the comparison that started ${age}.\n`);
        },
        onProgress: (reached) => progress.show(progressText(reached, listing.spent().requests)),
        onMissing: (event) => {
          if (event.recovered) fetched[event.isEarlier ? 'earlier' : 'own'] += 1;
          if (!flags.dryRun) return;
          progress.clear();
          printMissing(io, event, flags);
        },
      },
    );
    if (run !== null) await completeness.endRun({ id: run.id, atUs: ownNowUs() });
    return { reports, fetched, spent: listing.spent() };
  } finally {
    progress.clear();
  }
}

/** Returns the unfinished run with the same flags, or a new one. */
async function begunRun(
  completeness: Store['completeness'],
  { since, until, subscription = [], check }: ReconcileFlags,
  atUs: number,
): Promise<ReconcileRun & { isResumed: boolean }> {
  const key = {
    since: since?.text,
    until: until?.text,
    subscription: subscription.toSorted(),
    check: check === true,
  };
  const request = JSON.stringify(key);
  const run = await completeness.beginRun({ request, atUs });
  if (atUs - run.startedAtUs <= resumableUs) return { ...run, isResumed: run.startedAtUs < atUs };
  await completeness.endRun({ id: run.id, atUs });
  return { ...(await completeness.beginRun({ request, atUs })), isResumed: false };
}
