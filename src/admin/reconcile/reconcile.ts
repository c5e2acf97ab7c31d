/** Compares the log with what the catalogue shows, hour by hour, and writes what is missing. */
import { type Completeness, type HourCoverage, hourUs } from '../../domain/completeness.ts';
import { hourOf, sumCounts } from '../../domain/coverage-report.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';
import { type ComparedEvent, comparePage } from './compare-page.ts';
import { createHourTally, type HourTally } from './hour-tally.ts';
import { isExpected } from './known-events.ts';
import type { ListedEvent, ListingPage, ProductListing } from './product-listing.ts';
import type {
  FoundMissing,
  ReconcileMode,
  ReconcileProgress,
  ReconcileTask,
  TaskReport,
  TimeWindow,
} from './reconcile-task.ts';
import { canBeEntered } from './recovered-body.ts';
import { type TaskWalk, walksOf } from './task-walk.ts';
import { createTimeLeft, type TimeLeft } from './time-left.ts';

export type {
  ReconcileMode,
  ReconcileProgress,
  ReconcileTask,
  TaskReport,
} from './reconcile-task.ts';

/** What the ports take at once. */
const eventsMax = 1_000;
const hoursMax = 1_000;

export interface ReconcileWorld {
  listing: ProductListing;
  completeness: Pick<
    Completeness,
    'recoveredEvents' | 'recover' | 'coverage' | 'saveCoverage' | 'wholeSinceUs'
  >;
  products: Pick<Products, 'pushedEvents' | 'indexedPosition'>;
  log: Pick<NotificationLog, 'lastPosition'>;
  /** The catalogue's time, by which its dates are judged, and hours dated. */
  nowUs(): number;
  /** Our own time, by which entries are dated, as pushes are; that of `nowUs` unless told. */
  ownNowUs?: (() => number) | undefined;
  /** Resolves after a time, or at once when the signal is aborted. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

export interface ReconcileOptions {
  /** As `tasksOf` and `dueTasks` give them: those of one subscription and event do not overlap. */
  tasks: readonly ReconcileTask[];
  mode: ReconcileMode;
  /** How long after its event a push is late. */
  settlingUs: number;
  /** Hours compared since then are not compared again. */
  resumeSinceUs: number | null;
  /** False: an early look; writes entries, but no coverage. */
  coverage: boolean;
  /** Called first, with how many hours are left out since they were compared before. */
  onSkipped?: ((hours: number) => void) | undefined;
  /** Called after each page. */
  onProgress?: ((progress: ReconcileProgress) => void) | undefined;
  /** Called for each event that was not in the log, after it was written. */
  onMissing?: ((event: FoundMissing) => void) | undefined;
  signal: AbortSignal;
}

/**
 * Works through the tasks in their order, a page at a time. What is missing is on disk before the hour it
 * belongs to is told to be complete; so a run may end at any moment, and be repeated at will.
 * Rejects as `ProductListing.list` does, with `unavailable` when the store or its index is, and with the
 * signal's reason.
 */
export async function reconcile(
  world: ReconcileWorld,
  options: ReconcileOptions,
): Promise<TaskReport[]> {
  const { tasks } = options;
  const skipped = await hoursToSkip(world, options);
  options.onSkipped?.(skipped.length);
  const walks = walksOf(tasks, skipped);
  const tally = createHourTally(tasks);
  const timeLeft = createTimeLeft(walks, () => world.ownNowUs?.() ?? world.nowUs());
  const reports: TaskReport[] = [];
  for (const walk of walks) {
    const report = newReport(walk);
    for (const window of walk.windows) {
      await compareWindow(window, {
        world,
        options,
        tally,
        timeLeft,
        report,
        tasksDone: reports.length,
      });
    }
    reports.push(report);
  }
  return reports;
}

/** A preview must find all that is missing, and a write leave nothing so. */
async function hoursToSkip(
  { completeness }: ReconcileWorld,
  { tasks, mode, resumeSinceUs }: ReconcileOptions,
): Promise<HourCoverage[]> {
  if (resumeSinceUs === null || mode === 'preview' || tasks.length === 0) return [];
  const sinceUs = hourOf(Math.min(...tasks.map(({ fromUs }) => fromUs)));
  const untilUs = Math.max(...tasks.map(({ toUs }) => toUs));
  const found: HourCoverage[] = [];
  for (const subscription of new Set(tasks.map((task) => task.subscription))) {
    const hours = await completeness.coverage({ sinceUs, untilUs, subscription });
    for (const hour of hours) {
      const isDone = mode === 'check' || hour.missing === 0;
      if (isDone && hour.comparedAtUs >= resumeSinceUs) found.push(hour);
    }
  }
  return found;
}

function newReport({ task, skipped }: TaskWalk): TaskReport {
  return { task, ...sumCounts(skipped), unreadable: 0, undecided: 0 };
}

/** What the comparison of a window works with. */
interface Scope {
  world: ReconcileWorld;
  options: ReconcileOptions;
  tally: HourTally;
  timeLeft: TimeLeft;
  report: TaskReport;
  tasksDone: number;
}

async function compareWindow(window: TimeWindow, scope: Scope): Promise<void> {
  const { world, options, report, tasksDone, timeLeft } = scope;
  const { task } = report;
  const { signal } = options;
  const before = world.listing.spent();
  let doneUpToUs = hourOf(window.fromUs);
  let seen = 0;
  const query = { event: task.event, filter: task.filter, ...window };
  const pages = world.listing.list(query, signal);
  // A function of its own: a loop would hold on to each page until the next one is there.
  const takeNext = async (): Promise<boolean> => {
    const { done, value: page } = await pages.next();
    if (done) return false;
    signal.throwIfAborted();
    await takePage(page, scope);
    const upToUs = Math.min(page.completeUpToUs, window.toUs);
    doneUpToUs = await saveHours({ fromUs: doneUpToUs, toUs: upToUs }, window, scope);
    seen += page.events.length;
    const { total } = page;
    const etaMs = timeLeft.after({ window, upToUs, seen, total });
    const tasks = options.tasks.length;
    options.onProgress?.({ tasksDone, tasks, task, upToUs, seen, total, etaMs });
    return true;
  };
  while (await takeNext());
  timeLeft.done(window);
  const after = world.listing.spent();
  report.unreadable += after.oddRecords - before.oddRecords;
  report.undecided += after.undecided - before.undecided;
}

/** Compares the events of a page and counts what came of each. */
async function takePage({ events }: ListingPage, scope: Scope): Promise<void> {
  const { world, options, report, tally } = scope;
  const { task } = report;
  const expected: ListedEvent[] = [];
  for (const listed of events) {
    if (!canBeEntered(listed)) report.unreadable += 1;
    else if (isExpected(task.event, listed)) expected.push(listed);
  }
  for (let at = 0; at < expected.length; at += eventsMax) {
    const some = expected.slice(at, at + eventsMax);
    for (const compared of await comparePage(task, some, world, options)) {
      const { listed, outcome, wasMissing } = compared;
      tally.add(task, listed.eventUs, outcome);
      report.expected += 1;
      report[outcome] += 1;
      if (wasMissing) options.onMissing?.(foundMissing(task, compared));
    }
  }
}

function foundMissing(
  { subscription, event, isEarlier }: ReconcileTask,
  { listed, outcome }: ComparedEvent,
): FoundMissing {
  const { productId, productName, eventUs } = listed;
  const recovered = outcome === 'recovered';
  return { subscription, event, productId, productName, eventUs, recovered, isEarlier };
}

/** Saves the hours that have been seen in full, and returns where the first of the others begins. */
async function saveHours(
  { fromUs, toUs }: TimeWindow,
  window: TimeWindow,
  { world, options, tally, report }: Scope,
): Promise<number> {
  const { subscription, event, hours } = report.task;
  const comparedAtUs = world.nowUs();
  const whole: HourCoverage[] = [];
  let at = fromUs;
  for (; at < window.toUs && Math.min(at + hourUs, window.toUs) <= toUs; at += hourUs) {
    const counts = tally.finish(report.task, at);
    const isWhole = at >= hours.fromUs && at + hourUs <= hours.toUs;
    // An hour that lasts yet is not complete, whatever was asked for.
    if (counts === null || !isWhole || at + hourUs > comparedAtUs) continue;
    whole.push({ subscription, event, hourUs: at, ...counts, comparedAtUs });
  }
  if (options.mode === 'preview' || !options.coverage) return at;
  for (let i = 0; i < whole.length; i += hoursMax) {
    await world.completeness.saveCoverage(whole.slice(i, i + hoursMax));
  }
  return at;
}
