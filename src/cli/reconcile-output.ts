/** Output of `earshot reconcile`: a table or JSON; with --dry-run, each missing event. */

import type { CatalogueEvent } from '../domain/completeness.ts';
import { hourOf } from '../domain/coverage.ts';
import { formatDateUs, shortDateUs } from '../domain/dates.ts';
import { counted, countText } from '../domain/formats.ts';
import { printable } from '../domain/text.ts';
import { minuteUs } from '../domain/time-units.ts';
import type { ListingRetry } from '../reconcile/listing-requests.ts';
import { noCounts, type ReconcileProgress, type TaskReport } from '../reconcile/tasks.ts';
import type { Io } from './io.ts';
import { type Column, countColumn, printJson, printTable } from './output.ts';

interface MissingRow extends CatalogueEvent {
  productName: string | null;
  /** True if the event was written into the log. */
  recovered: boolean;
  /** True for an event from before the subscription began. */
  isEarlier: boolean;
}

export interface ReconcileOutput {
  /** Called for each missing event; printed with --dry-run only. */
  missing(event: MissingRow): void;
  /** Sets the cost of the requests. */
  spent(cost: { requests: number; answersMs: number; waitedMs: number }): void;
  /** Prints the counts, and a summary with the table. */
  end(reports: readonly TaskReport[]): Promise<void>;
}

interface OutputOptions {
  fromUs: number;
  toUs: number;
  dryRun?: true;
  check?: true;
  json?: true;
}

/** Counts of all tasks of one subscription and event. */
type CountRow = Omit<TaskReport, 'task'> & { subscription: string; event: string };

export function createReconcileOutput(
  { stdout, stderr, nowUs }: Pick<Io, 'stdout' | 'stderr' | 'nowUs'>,
  { fromUs, toUs, dryRun, check, json }: OutputOptions,
): ReconcileOutput {
  const startedAtUs = nowUs();
  let cost = { requests: 0, answersMs: 0, waitedMs: 0 };
  const fetched = { own: 0, earlier: 0 };
  return {
    missing: (event) => {
      if (event.recovered) fetched[event.isEarlier ? 'earlier' : 'own'] += 1;
      // One line at a time, because the total is not known yet.
      if (dryRun) stdout.write(json ? `${JSON.stringify(toOutput(event))}\n` : missingLine(event));
    },
    spent: (spent) => {
      cost = spent;
    },
    end: async (reports) => {
      const rows = countRows(reports.filter(({ task }) => !task.isEarlier));
      const earlier = countRows(reports.filter(({ task }) => task.isEarlier));
      const seconds = inSeconds((nowUs() - startedAtUs) / 1_000);
      if (json && !dryRun) {
        const { requests } = cost;
        const answersSeconds = inSeconds(cost.answersMs);
        const waitedSeconds = inSeconds(cost.waitedMs);
        const window = { from: formatDateUs(fromUs), to: formatDateUs(toUs) };
        const times = { seconds, answersSeconds, waitedSeconds };
        const document = {
          ...{ ...window, requests, ...times, fetched: fetched.own, counts: rows },
          earlier: { fetched: fetched.earlier, counts: earlier.map(earlierJson) },
        };
        await printJson(stdout, document);
      } else if (!json) {
        if (!dryRun) await printTable(stdout, columns, rows);
        const isChecked = dryRun === true || check === true;
        const sentences = [
          ...summaryOf(rows, { dryRun: dryRun === true, isChecked, fetched: fetched.own }),
          ...earlierText(earlier, fetched.earlier),
          ...uncountedTexts([...rows, ...earlier]),
          ...uncoveredText(reports, { toUs, nowUs: nowUs() }),
          `${requestsText(cost.requests)}, ${seconds} s (${inSeconds(cost.answersMs)} s waiting for the catalogue).`,
        ];
        stderr.write(`${sentences.join(' ')}\n`);
      }
    },
  };
}

function countRows(reports: readonly TaskReport[]): CountRow[] {
  const rows = new Map<string, CountRow>();
  for (const { task, ...counts } of reports) {
    const { subscription, event } = task;
    const key = `${subscription} ${event}`;
    const row = rows.get(key) ?? { subscription, event, ...none };
    for (const kind of countKeys) row[kind] += counts[kind];
    rows.set(key, row);
  }
  return [...rows.values()];
}

const none = { ...noCounts(), unreadable: 0, undecided: 0 };

type CountKey = keyof typeof none;

const countKeys = Object.keys(none) as CountKey[];

const columns: readonly Column<CountRow>[] = [
  { title: 'subscription', value: ({ subscription }) => subscription, flexible: true },
  { title: 'event', value: ({ event }) => event },
  ...(['expected', 'pushed', 'late', 'recovered', 'missing'] as const).map((key) =>
    countColumn(key),
  ),
];

function sumOf(rows: readonly CountRow[], key: CountKey): number {
  return rows.reduce((total, row) => total + row[key], 0);
}

const events = (count: number) => counted(count, 'event');

/** Summarizes the counts. The result of --check is reported as an error instead. */
function summaryOf(
  rows: readonly CountRow[],
  { dryRun, isChecked, fetched }: { dryRun: boolean; isChecked: boolean; fetched: number },
): string[] {
  if (rows.length === 0) return ['No expected events: no subscription existed in this time range.'];
  const [expected, missing] = [sumOf(rows, 'expected'), sumOf(rows, 'missing')];
  const before = sumOf(rows, 'recovered') - fetched;
  if (fetched > 0) {
    return [
      `Recovered ${counted(fetched, 'missing event')}. Expected: ${events(expected)}.`,
      ...(before > 0 ? [`Recovered earlier: ${events(before)}.`] : []),
    ];
  }
  if (missing === 0) return [`Nothing is missing. Expected: ${events(expected)}.`];
  if (isChecked && !dryRun) return [];
  return [
    `${countText(missing)} of ${events(expected)} ${missing === 1 ? 'is' : 'are'} missing.`,
    ...(dryRun ? [`To fetch ${missing === 1 ? 'it' : 'them'}, omit --dry-run.`] : []),
  ];
}

/** Summarizes events from before the subscription began. */
function earlierText(rows: readonly CountRow[], fetched: number): string[] {
  const found = sumOf(rows, 'expected');
  if (found === 0) return [];
  const missing = sumOf(rows, 'missing');
  const outcome =
    fetched > 0
      ? `${countText(fetched)} fetched`
      : missing > 0
        ? `${countText(missing)} not in the log`
        : 'all in the log';
  return [`Older than the subscription, so not expected: ${events(found)}, ${outcome}.`];
}

/** Explains why coverage, which counts whole hours, differs from the table on the first day. */
function uncoveredText(
  reports: readonly TaskReport[],
  { toUs, nowUs }: { toUs: number; nowUs: number },
): string[] {
  const own = reports.filter(({ task }) => !task.isEarlier);
  const isNew = own.length > 0 && own.every(({ task }) => task.fromUs >= hourOf(toUs));
  if (!isNew || toUs === hourOf(toUs) || hourOf(nowUs) > toUs) return [];
  return ['`earshot coverage` does not include the current hour yet.'];
}

function earlierJson({ expected, unreadable: _, undecided: __, ...row }: CountRow) {
  const { subscription, event, ...counts } = row;
  return { subscription, event, events: expected, ...counts };
}

function uncountedTexts(rows: readonly CountRow[]): string[] {
  const [unreadable, undecided] = [sumOf(rows, 'unreadable'), sumOf(rows, 'undecided')];
  return [
    ...(unreadable === 0 ? [] : [`Not counted: ${counted(unreadable, 'unreadable record')}.`]),
    ...(undecided === 0
      ? []
      : [`Not counted: ${counted(undecided, 'record')} without a property that the filter uses.`]),
  ];
}

/** Converts to seconds with one decimal. */
function inSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}

function toOutput({ subscription, event, productId, productName, eventUs }: MissingRow) {
  return { subscription, event, productId, productName, date: formatDateUs(eventUs) };
}

function missingLine({ subscription, event, productId, productName, eventUs }: MissingRow): string {
  const time = shortDateUs(eventUs, 'second');
  const name = printable(productName ?? productId);
  return `${time}  ${event.padEnd(8)}  ${subscription}  ${name}\n`;
}

/** Formats the progress as one line, most important first: a narrow terminal cuts the end. */
export function progressText(progress: ReconcileProgress, requests: number): string {
  const { task, tasks, tasksDone, upToUs, seen, total, etaMs } = progress;
  return [
    `${task.subscription} ${task.event} (${Math.min(tasksDone + 1, tasks)} of ${tasks})`,
    `${countText(seen)}${total === null ? '' : ` of ${countText(total)}`} records`,
    ...(etaMs === null || etaMs === 0 ? [] : [`${duration(etaMs)} left`]),
    shortDateUs(upToUs),
    requestsText(requests),
  ].join(' · ');
}

const requestsText = (count: number) => (count === 1 ? '1 request' : `${count} requests`);

/** `about 12 min`, `about 40 s`. */
function duration(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1_000));
  if (seconds < 100) return `about ${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 100 ? `about ${minutes} min` : `about ${Math.round(minutes / 60)} h`;
}

/** Tolerated difference of the clocks: smaller than the response time and the resolution of time ranges. */
const toleratedUs = minuteUs;

/** Time by which the local clock is ahead of the catalogue's, in microseconds; 0 within the tolerance. */
export function aheadOf(catalogue: { nowUs: () => number }, own: { nowUs: () => number }): number {
  const aheadUs = own.nowUs() - catalogue.nowUs();
  return Math.abs(aheadUs) > toleratedUs ? aheadUs : 0;
}

/** Note about the clock difference; empty without one. */
export function clockNote(aheadUs: number): string {
  if (aheadUs === 0) return '';
  const isAhead = aheadUs > 0;
  const difference = `${duration(Math.abs(aheadUs) / 1_000)} ${isAhead ? 'ahead of' : 'behind'}`;
  const effect = isAhead ? 'starts too late' : 'ends too early';
  return `The clock of this machine is ${difference} the catalogue's, so a range such as --since 12h ${effect}. Synchronize the clock with NTP.\n`;
}

/** Delays longer than this are printed. */
const shownDelayMinMs = 60_000;

/** Prints each cause of failure once. `clear` removes the progress line before. */
export function createTroubleReporter({
  stderr,
}: Pick<Io, 'stderr'>): (trouble: ListingRetry, clear: () => void) => void {
  const reported = new Set<string>();
  return ({ cause, waitMs, remainingWaitMs }, clear) => {
    if (reported.has(cause)) return;
    reported.add(cause);
    clear();
    const delay = waitMs > shownDelayMinMs ? ` in ${duration(waitMs)}` : '';
    const budget = remainingWaitMs === null ? '' : ` for ${duration(remainingWaitMs)}`;
    stderr.write(`${cause}; retrying${delay}${budget} …\n`);
  };
}
