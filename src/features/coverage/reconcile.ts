/** Compares the log with the catalogue hour by hour, and records missing events. */
import {
  createCatalogueListing,
  type ListingPage,
  type ProductListing,
} from '../../admin/listing.ts';
import type { ListingRetry } from '../../admin/listing-requests.ts';
import { createServiceClock, createStoppableFetch, type Io, pause } from '../../core/cli/io.ts';
import { hourOf, hourUs } from '../../core/terms/dates.ts';
import {
  type CompareContext,
  type CompareOptions,
  comparePage,
  isExpected,
  isRecordable,
} from './compare-page.ts';
import type { HourCoverage } from './completeness.ts';
import type { ReconcileConfig } from './settings.ts';
import {
  type FoundMissing,
  hourKey,
  noCounts,
  type OutcomeCounts,
  type ReconcileProgress,
  type ReconcileTask,
  type TaskReport,
} from './tasks.ts';

export interface OpenedListing {
  listing: ProductListing;
  /** Time of the catalogue, from its latest answer: event dates are in its clock. */
  nowUs: () => number;
}

/**
 * Creates the client without sending a request. Calls `onRetry` for each failed attempt that is retried. `sizes`: values
 * of `$top`, largest first.
 */
export function openListing(
  { catalogueUrl, requestsPerMinute }: Pick<ReconcileConfig, 'catalogueUrl' | 'requestsPerMinute'>,
  io: Pick<Io, 'nowUs' | 'random' | 'fetch' | 'signal'>,
  onRetry: (trouble: ListingRetry) => void,
  more: { sizes?: readonly number[] } = {},
): OpenedListing {
  const own = { nowUs: io.nowUs, fetch: createStoppableFetch(io) };
  const { nowUs, fetch } = createServiceClock(own);
  const listing = createCatalogueListing({
    catalogueUrl,
    fetch,
    random: io.random,
    requestsPerMinute,
    nowUs: io.nowUs,
    pause,
    onRetry,
    ...more,
  });
  return { listing, nowUs };
}

/** Maximum number of events, and of hours, in one call of the ports. */
const rowsMax = 1_000;

export interface ReconcileContext extends CompareContext {
  listing: ProductListing;
}

export interface ReconcileOptions extends CompareOptions {
  /** From `tasksOf` or `dueKinds`: tasks of one subscription and event are oldest first, and do not overlap. */
  tasks: readonly ReconcileTask[];
  /** False for previews and early checks: writes no coverage. */
  coverage: boolean;
  /** Called after each page. */
  onProgress?: ((progress: ReconcileProgress) => void) | undefined;
  /** Called for each event that was not in the log, after it was recorded; the comparison waits for it. */
  onMissing?: ((event: FoundMissing) => Promise<void>) | undefined;
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
  const counted: HourCounts = new Map();
  const reports: TaskReport[] = [];
  for (const task of options.tasks) {
    const report = { task, ...noCounts(), unreadable: 0, undecided: 0 };
    await compareTask({ context, options, counted, report, tasksDone: reports.length });
    reports.push(report);
  }
  return reports;
}

/** Counts of the hours that are not saved yet. Two tasks may have parts of an hour. */
type HourCounts = Map<string, OutcomeCounts>;

interface Scope {
  context: ReconcileContext;
  options: ReconcileOptions;
  counted: HourCounts;
  report: TaskReport;
  tasksDone: number;
}

async function compareTask(scope: Scope): Promise<void> {
  const { context, options, report, tasksDone } = scope;
  const { task } = report;
  const { event, filter, fromUs, toUs } = task;
  const { signal } = options;
  const before = context.listing.spent();
  let savedUpToUs = hourOf(fromUs);
  let seen = 0;
  const pages = context.listing.list({ event, filter, fromUs, toUs }, signal);
  // A separate function: a loop would keep each page in memory while the next loads.
  const takeNext = async (): Promise<boolean> => {
    const { done, value: page } = await pages.next();
    if (done) return false;
    signal.throwIfAborted();
    await takePage(page, scope);
    const upToUs = Math.min(page.completeUpToUs, toUs);
    savedUpToUs = await saveHours(savedUpToUs, upToUs, scope);
    seen += page.events.length;
    const tasks = options.tasks.length;
    options.onProgress?.({ tasksDone, tasks, task, upToUs, seen, total: page.total });
    return true;
  };
  while (await takeNext());
  const after = context.listing.spent();
  report.unreadable += after.unreadableRecords - before.unreadableRecords;
  report.undecided += after.undecided - before.undecided;
}

/** Compares the events of a page and counts the outcomes. */
async function takePage({ events }: ListingPage, scope: Scope): Promise<void> {
  const { context, options, report, counted } = scope;
  const { task } = report;
  const { subscription, event } = task;
  const readable = events.filter(isRecordable);
  report.unreadable += events.length - readable.length;
  const expected = readable.filter((one) => isExpected(event, one));
  for (let at = 0; at < expected.length; at += rowsMax) {
    const some = expected.slice(at, at + rowsMax);
    for (const { listed, outcome, wasMissing } of await comparePage(task, some, context, options)) {
      const { productId, productName, eventUs } = listed;
      const key = hourKey(task, hourOf(eventUs));
      const hour = counted.get(key) ?? noCounts();
      // The first hour is counted from the beginning of the subscription.
      if (!task.isEarlier) counted.set(key, hour);
      for (const counts of [hour, report]) {
        counts.expected += 1;
        counts[outcome] += 1;
      }
      const recovered = outcome === 'recovered';
      const found = { subscription, event, productId, productName, eventUs, recovered };
      if (wasMissing) await options.onMissing?.(found);
    }
  }
}

/** Saves the hours that are compared completely, and returns the start of the next hour. */
async function saveHours(
  fromUs: number,
  upToUs: number,
  { context, options, counted, report, tasksDone }: Scope,
): Promise<number> {
  const { task } = report;
  const { subscription, event } = task;
  const comparedAtUs = context.nowUs();
  const later = options.tasks
    .slice(tasksDone + 1)
    .filter((one) => one.subscription === subscription && one.event === event);
  const whole: HourCoverage[] = [];
  let at = fromUs;
  for (; at < task.toUs && Math.min(at + hourUs, task.toUs) <= upToUs; at += hourUs) {
    const endUs = at + hourUs;
    if (later.some((one) => one.fromUs < endUs)) continue;
    const key = hourKey(task, at);
    const counts = counted.get(key) ?? noCounts();
    counted.delete(key);
    // The current hour is not complete.
    if (endUs > comparedAtUs) continue;
    whole.push({ subscription, event, hourUs: at, ...counts, comparedAtUs });
  }
  if (!options.coverage || task.isEarlier) return at;
  for (let i = 0; i < whole.length; i += rowsMax) {
    await context.completeness.saveCoverage(whole.slice(i, i + rowsMax));
  }
  return at;
}
