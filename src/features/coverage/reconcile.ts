/** Compares the log with the catalogue hour by hour, and records missing events. */

import type { ListedEvent, ListingPage, ProductListing } from '../../admin/listing.ts';
import { hourOf, hourUs } from '../../core/terms/dates.ts';
import {
  type CompareContext,
  type ComparedEvent,
  type CompareOptions,
  comparePage,
  isExpected,
  isRecordable,
} from './compare-page.ts';
import type { HourCoverage } from './completeness.ts';
import { sumCounts } from './coverage.ts';
import {
  type EventOutcome,
  type FoundMissing,
  noCounts,
  type OutcomeCounts,
  type ReconcileProgress,
  type ReconcileTask,
  type TaskReport,
  type TimeWindow,
} from './tasks.ts';

/** Maximum number of events, and of hours, in one call of the ports. */
const rowsMax = 1_000;

export interface ReconcileContext extends CompareContext {
  listing: ProductListing;
}

export interface ReconcileOptions extends CompareOptions {
  /** From `tasksOf` or `dueTasks`: tasks of one subscription and event do not overlap. */
  tasks: readonly ReconcileTask[];
  /** Hours compared since this time are skipped. */
  resumeSinceUs: number | null;
  /** False for early checks: writes entries, but no coverage. */
  coverage: boolean;
  /** Called first, with the number of skipped hours. */
  onSkipped?: ((hours: number) => void) | undefined;
  /** Called after each page. */
  onProgress?: ((progress: ReconcileProgress) => void) | undefined;
  /** Called for each event that was not in the log, after it was recorded. */
  onMissing?: ((event: FoundMissing) => void) | undefined;
}

/**
 * Runs the tasks in order, page by page. Missing events are on disk before their hour is saved as complete, so
 * a run may be interrupted at any time and repeated. Rejects as `ProductListing.list` does, with `unavailable`
 * when the store or its index is, and with the signal's reason.
 */
export async function reconcile(
  context: ReconcileContext,
  options: ReconcileOptions,
): Promise<TaskReport[]> {
  const { tasks } = options;
  const compared = await hoursToSkip(context, options);
  options.onSkipped?.(compared.length);
  const walks = walksOf(tasks, compared);
  const tally = createHourTally(tasks);
  const timeLeft = createTimeLeft(walks, () => context.ownNowUs?.() ?? context.nowUs());
  const reports: TaskReport[] = [];
  for (const walk of walks) {
    const { task, skipped } = walk;
    const report = { task, ...sumCounts(skipped), unreadable: 0, undecided: 0 };
    for (const window of walk.windows) {
      const tasksDone = reports.length;
      await compareWindow(window, { context, options, tally, timeLeft, report, tasksDone });
    }
    reports.push(report);
  }
  return reports;
}

/** Returns the hours compared recently enough; a preview skips none, a write none with missing events. */
async function hoursToSkip(
  { completeness }: ReconcileContext,
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

/** Dependencies of the comparison of one window. */
interface Scope {
  context: ReconcileContext;
  options: ReconcileOptions;
  tally: HourTally;
  timeLeft: TimeLeft;
  report: TaskReport;
  tasksDone: number;
}

async function compareWindow(window: TimeWindow, scope: Scope): Promise<void> {
  const { context, options, report, tasksDone, timeLeft } = scope;
  const { task } = report;
  const { signal } = options;
  const before = context.listing.spent();
  let doneUpToUs = hourOf(window.fromUs);
  let seen = 0;
  const query = { event: task.event, filter: task.filter, ...window };
  const pages = context.listing.list(query, signal);
  // A separate function: a loop would keep each page in memory while the next loads.
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
  const after = context.listing.spent();
  report.unreadable += after.unreadableRecords - before.unreadableRecords;
  report.undecided += after.undecided - before.undecided;
}

/** Compares the events of a page and counts the outcomes. */
async function takePage({ events }: ListingPage, scope: Scope): Promise<void> {
  const { context, options, report, tally } = scope;
  const { task } = report;
  const expected: ListedEvent[] = [];
  for (const listed of events) {
    if (!isRecordable(listed)) report.unreadable += 1;
    else if (isExpected(task.event, listed)) expected.push(listed);
  }
  for (let at = 0; at < expected.length; at += rowsMax) {
    const some = expected.slice(at, at + rowsMax);
    for (const compared of await comparePage(task, some, context, options)) {
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

/** Saves the hours compared in full, and returns the start of the next hour. */
async function saveHours(
  { fromUs, toUs }: TimeWindow,
  window: TimeWindow,
  { context, options, tally, report }: Scope,
): Promise<number> {
  const { subscription, event, hours } = report.task;
  const comparedAtUs = context.nowUs();
  const whole: HourCoverage[] = [];
  let at = fromUs;
  for (; at < window.toUs && Math.min(at + hourUs, window.toUs) <= toUs; at += hourUs) {
    const counts = tally.finish(report.task, at);
    const isWhole = at >= hours.fromUs && at + hourUs <= hours.toUs;
    // The current hour is not complete.
    if (counts === null || !isWhole || at + hourUs > comparedAtUs) continue;
    whole.push({ subscription, event, hourUs: at, ...counts, comparedAtUs });
  }
  if (options.mode === 'preview' || !options.coverage) return at;
  for (let i = 0; i < whole.length; i += rowsMax) {
    await context.completeness.saveCoverage(whole.slice(i, i + rowsMax));
  }
  return at;
}

type HourTally = ReturnType<typeof createHourTally>;

/** Counts outcomes per hour. Tasks do not overlap, so two of them share an hour only at their edges. */
function createHourTally(tasks: readonly ReconcileTask[]) {
  const counted = new Map<string, OutcomeCounts>();
  const partsLeft = new Map<string, number>();
  for (const task of tasks) {
    for (const at of edgeHours(task)) {
      const key = hourKey(task, at);
      partsLeft.set(key, (partsLeft.get(key) ?? 0) + 1);
    }
  }
  return {
    add: (task: ReconcileTask, eventUs: number, outcome: EventOutcome) => {
      const key = hourKey(task, hourOf(eventUs));
      const counts = counted.get(key) ?? noCounts();
      counts.expected += 1;
      counts[outcome] += 1;
      counted.set(key, counts);
    },
    /**
     * Marks a task's part of an hour as done. Returns the hour's counts, and drops them; null while another
     * task still has a part of the hour.
     */
    finish: (task: ReconcileTask, at: number): OutcomeCounts | null => {
      const key = hourKey(task, at);
      const left = (partsLeft.get(key) ?? 1) - 1;
      partsLeft.set(key, left);
      if (left > 0) return null;
      partsLeft.delete(key);
      const counts = counted.get(key) ?? noCounts();
      counted.delete(key);
      return counts;
    },
  };
}

/** Returns the hours that a task covers only partly. */
function edgeHours({ fromUs, toUs }: ReconcileTask): Set<number> {
  return new Set([fromUs, toUs].filter((us) => us % hourUs !== 0).map(hourOf));
}

const hourKey = ({ subscription, event, isEarlier }: ReconcileTask, at: number) =>
  `${subscription} ${event} ${isEarlier} ${at}`;

interface TaskWalk {
  task: ReconcileTask;
  /** Oldest first, with gaps between them. */
  windows: TimeWindow[];
  /** Earlier results of the skipped hours; an hour shared by two tasks belongs to the first. */
  skipped: HourCoverage[];
}

/** Returns the windows to compare for each task, without the `compared` hours. */
function walksOf(tasks: readonly ReconcileTask[], compared: readonly HourCoverage[]): TaskWalk[] {
  const counted = new Set<HourCoverage>();
  const byKind = Map.groupBy(compared, kindKey);
  return tasks.map((task) => {
    const { fromUs, toUs } = task;
    // Only whole hours: counts of partial hours belong to other tasks too.
    const firstUs = Math.max(hourOf(fromUs), task.hours.fromUs);
    const hours = (byKind.get(kindKey(task)) ?? [])
      .filter((hour) => hour.hourUs >= firstUs && hour.hourUs < Math.min(toUs, task.hours.toUs))
      .toSorted((a, b) => a.hourUs - b.hourUs);
    const skipped = hours.filter((hour) => !counted.has(hour));
    for (const hour of skipped) counted.add(hour);
    return { task, windows: windowsBetween(hours, task), skipped };
  });
}

function windowsBetween(hours: readonly HourCoverage[], task: ReconcileTask): TimeWindow[] {
  const windows: TimeWindow[] = [];
  let { fromUs } = task;
  for (const { hourUs: at } of hours) {
    if (at > fromUs) windows.push({ fromUs, toUs: at });
    fromUs = at + hourUs;
  }
  if (fromUs < task.toUs) windows.push({ fromUs, toUs: task.toUs });
  return windows;
}

const kindKey = ({ subscription, event }: { subscription: string; event: string }) =>
  `${subscription} ${event}`;

type TimeLeft = ReturnType<typeof createTimeLeft>;

/** Progress within a window. */
interface WindowState {
  window: TimeWindow;
  upToUs: number;
  seen: number;
  total: number | null;
}

/** Estimates the remaining time, assuming that events are spread evenly and the speed is constant. */
function createTimeLeft(walks: readonly TaskWalk[], nowUs: () => number) {
  const beganAtUs = nowUs();
  const widthUs = ({ fromUs, toUs }: TimeWindow) => toUs - fromUs;
  const allUs = walks.flatMap(({ windows }) => windows).reduce((sum, one) => sum + widthUs(one), 0);
  let doneUs = 0;
  return {
    /** Returns the remaining milliseconds; null at first. */
    after: ({ window, upToUs, seen, total }: WindowState): number | null => {
      const byTime = (upToUs - window.fromUs) / widthUs(window);
      const share = upToUs >= window.toUs || !total ? byTime : Math.min(1, seen / total);
      const done = (doneUs + share * widthUs(window)) / allUs;
      const elapsedMs = Math.max(0, nowUs() - beganAtUs) / 1_000;
      return done > 0 ? Math.round((elapsedMs * (1 - done)) / done) : null;
    },
    done: (window: TimeWindow) => {
      doneUs += widthUs(window);
    },
  };
}
