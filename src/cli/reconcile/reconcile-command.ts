/** What `earshot reconcile` does: opens what it takes, compares, and tells what came of it. */
import { tasksOf } from '../../admin/reconcile/plan-tasks.ts';
import {
  type ReconcileMode,
  type ReconcileTask,
  reconcile,
  type TaskReport,
} from '../../admin/reconcile/reconcile.ts';
import type { TimeWindow } from '../../admin/reconcile/reconcile-task.ts';
import { type ReconcileConfig, readReconcileConfig } from '../../config/completeness-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { type ReconcileRun, settlingUs } from '../../domain/completeness.ts';
import { shortDateUs } from '../../domain/notification-date.ts';
import type { Logger } from '../../domain/ports.ts';
import { catchUpIndex, startIndexing } from '../../store/products/index-maintenance.ts';
import { openProducts } from '../../store/products/products.ts';
import { openStore, type Store } from '../../store/store.ts';
import { type Closers, createClosers } from '../closers.ts';
import type { Io } from '../io.ts';
import { createLogger } from '../logger.ts';
import type { TimeArgument } from '../time-argument.ts';
import { pause } from '../until-aborted.ts';
import { openListing } from './open-listing.ts';
import { createReconcileOutput, type ReconcileOutput } from './reconcile-output.ts';
import { createReconcileProgress } from './reconcile-progress.ts';
import { takeReconcileLock } from './take-reconcile-lock.ts';
import { aheadOf, clockNote } from './tell-clock.ts';
import { createTellTrouble } from './tell-trouble.ts';
import { neverRegistered, unknownSubscription } from './unknown-subscription.ts';

export interface ReconcileFlags {
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
  const config = readReconcileConfig(io);
  const window = windowOf(flags, io);
  const closers = createClosers();
  // That of the catalogue, once it is known.
  const clock = { nowUs: io.nowUs };
  try {
    const store = await openStore({ ...config, nowUs: io.nowUs, mustExist: true });
    closers.add(() => store.close());
    const tasks = await plannedTasks(store, flags, await wholeWindow(store, window, io));
    closers.add(await takeReconcileLock(config.dataDir, io));
    const output = createReconcileOutput(io, { ...flags, ...window });
    const reports = await compare(io, { config, store, flags, tasks, output, closers, clock });
    await output.end(reports);
    const own = reports.filter(({ task }) => !task.isEarlier);
    const missing = own.reduce((sum, report) => sum + report.missing, 0);
    if (flags.check && missing > 0) {
      const options = flags.dryRun ? '--check and --dry-run' : '--check';
      throw new AppError(
        'differences',
        `${missing.toLocaleString('en-US')} ${missing === 1 ? 'event is' : 'events are'} missing.`,
        { advice: `The same command without ${options} fetches ${missing === 1 ? 'it' : 'them'}.` },
      );
    }
  } catch (error) {
    throw io.signal.aborted ? stopped(flags, aheadOf(clock, io)) : error;
  } finally {
    io.stderr.write(clockNote(aheadOf(clock, io)));
    await closers.closeAll();
  }
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

function windowOf({ since, until }: ReconcileFlags, io: Pick<Io, 'nowUs'>) {
  // By the moment at which the words were read: 0h would else be some milliseconds.
  const nowUs = since?.readAtUs ?? io.nowUs();
  const fromUs = since?.us ?? nowUs - dayUs;
  const toUs = Math.min(until?.us ?? nowUs, nowUs);
  if (fromUs < toUs) return { fromUs, toUs };
  throw new AppError(
    'usage',
    'The window is empty: --since must lie before --until, and before now (UTC).',
  );
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

interface Means {
  config: ReconcileConfig;
  store: Store;
  flags: ReconcileFlags;
  tasks: readonly ReconcileTask[];
  output: ReconcileOutput;
  closers: Closers;
  clock: { nowUs: () => number };
}

async function compare(io: Io, means: Means): Promise<TaskReport[]> {
  const { config, store, flags, tasks, output, closers, clock } = means;
  const { dataDir, diskReserveBytes } = config;
  const place = { dataDir, diskReserveBytes };
  // What is found is looked up in the index, which must be there, and follow: beside a receiver two do.
  await catchUpIndex({ ...place, signal: io.signal });
  io.signal.throwIfAborted();
  const indexing = startIndexing({ ...place, log: quietLog(io), besideIntake: false });
  closers.add(() => indexing.stop());
  const products = openProducts(dataDir);
  closers.add(() => products.close());
  const tellTrouble = createTellTrouble(io);
  const catalogue = openListing(config, io, (trouble) => {
    tellTrouble(trouble, () => progress.clear());
  });
  clock.nowUs = catalogue.nowUs;
  const { listing } = catalogue;
  const { completeness } = store;
  const { nowUs } = io;
  const mode = modeOf(flags);
  const run = mode === 'preview' ? null : await begunRun(completeness, flags, nowUs());
  const progress = createReconcileProgress(io, () => listing.spent());
  try {
    const reports = await reconcile(
      // By the catalogue's time: an hour that lasts yet there is not complete, whatever our clock says.
      {
        ...{ listing, completeness, products, log: store, pause },
        ...{ nowUs: catalogue.nowUs, ownNowUs: nowUs },
      },
      {
        tasks,
        mode,
        settlingUs,
        resumeSinceUs: run?.isResumed ? run.startedAtUs : null,
        coverage: mode !== 'preview',
        onSkipped: (hours) => {
          if (run === null || hours === 0) return;
          io.stderr.write(`Going on with what began ${sinceThen(run, nowUs())} ago.\n`);
        },
        onProgress: progress.show,
        onMissing: (event) => {
          if (flags.dryRun) progress.clear();
          output.missing(event);
        },
        signal: io.signal,
      },
    );
    if (run !== null) await completeness.endRun({ id: run.id, atUs: nowUs() });
    output.spent(listing.spent());
    return reports;
  } finally {
    progress.done();
  }
}

/** `--dry-run --check` looks, counts, writes nothing, and exits with 3. */
function modeOf({ dryRun, check }: ReconcileFlags): ReconcileMode {
  if (dryRun) return 'preview';
  return check ? 'check' : 'write';
}

/** The run of these words that did not end, or a new one. */
async function begunRun(
  completeness: Store['completeness'],
  { since, until, subscription, check }: ReconcileFlags,
  atUs: number,
): Promise<ReconcileRun & { isResumed: boolean }> {
  const words = {
    // Named as the flags were before: a run that was begun then is still found.
    from: since?.words,
    to: until?.words,
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

/** Only what needs a person. */
function quietLog(io: Io): Logger {
  return createLogger(io, 'error');
}
