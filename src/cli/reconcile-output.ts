/** What `earshot reconcile` prints: a table, or JSON; with --dry-run each missing event. */

import type { CatalogueEvent } from '../domain/completeness.ts';
import { hourOf } from '../domain/coverage.ts';
import { formatDateUs, shortDateUs } from '../domain/dates.ts';
import { printable } from '../domain/text.ts';
import type { ListingRetry } from '../reconcile/listing-requests.ts';
import { noCounts, type ReconcileProgress, type TaskReport } from '../reconcile/tasks.ts';
import type { Io } from './io.ts';
import { type Column, countColumn, counted, printJson, printTable, whole } from './output.ts';

interface MissingRow extends CatalogueEvent {
  productName: string | null;
  /** True when it has been written into the log. */
  recovered: boolean;
  /** True for an event from before the subscription began. */
  isEarlier: boolean;
}

export interface ReconcileOutput {
  /** Called for each missing event; printed with --dry-run only. */
  missing(event: MissingRow): void;
  /** What asking took. */
  spent(cost: { requests: number; answersMs: number; waitedMs: number }): void;
  /** Prints the counts and, for people, what they mean. */
  end(reports: readonly TaskReport[]): Promise<void>;
}

interface OutputOptions {
  fromUs: number;
  toUs: number;
  dryRun?: true;
  check?: true;
  json?: true;
}

/** One row of the counts: all tasks of a subscription and event together. */
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
      // One line at a time: how many there are is not known before.
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
          ...meaningOf(rows, { dryRun: dryRun === true, isChecked, fetched: fetched.own }),
          ...earlierText(earlier, fetched.earlier),
          ...uncountedTexts([...rows, ...earlier]),
          ...uncoveredText(reports, { toUs, nowUs: nowUs() }),
          `${requestsText(cost.requests)}, ${seconds} s (${inSeconds(cost.answersMs)} s for the catalogue's answers).`,
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

/** The table in words, by the same counts; what --check found is reported as its error. */
function meaningOf(
  rows: readonly CountRow[],
  { dryRun, isChecked, fetched }: { dryRun: boolean; isChecked: boolean; fetched: number },
): string[] {
  if (rows.length === 0) return ['No event is expected: there was no subscription in that time.'];
  const [expected, missing] = [sumOf(rows, 'expected'), sumOf(rows, 'missing')];
  const before = sumOf(rows, 'recovered') - fetched;
  if (fetched > 0) {
    const verb = fetched === 1 ? 'was missing and is' : 'were missing and are';
    return [
      `${whole(fetched)} of ${events(expected)} ${verb} recovered now.`,
      ...(before > 0 ? [`${whole(before)} had been recovered before.`] : []),
    ];
  }
  if (missing === 0) return [`Nothing is missing: ${events(expected)}.`];
  if (isChecked && !dryRun) return [];
  const [verb, those] = missing === 1 ? ['is', 'it is'] : ['are', 'they are'];
  return [
    `${whole(missing)} of ${events(expected)} ${verb} missing.`,
    ...(dryRun ? [`Without --dry-run ${those} fetched.`] : []),
  ];
}

/** What a window finds that reaches back before a subscription. */
function earlierText(rows: readonly CountRow[], fetched: number): string[] {
  const found = sumOf(rows, 'expected');
  if (found === 0) return [];
  const missing = sumOf(rows, 'missing');
  const verb = (count: number, one: string, many: string) => (count === 1 ? one : many);
  const [was, is] = [verb(fetched, 'was', 'were'), verb(fetched, 'is', 'are')];
  const outcome =
    fetched > 0
      ? `${whole(fetched)} ${was} not in the log and ${is} fetched now`
      : missing > 0
        ? `${whole(missing)} ${verb(missing, 'is', 'are')} not in the log`
        : 'all are in the log';
  return [
    `The catalogue has ${events(found)} from before the subscription began, which ${verb(found, 'is', 'are')} not expected: ${outcome}.`,
  ];
}

/** Coverage counts whole hours: without this, it would seem to contradict the table on the first day. */
function uncoveredText(
  reports: readonly TaskReport[],
  { toUs, nowUs }: { toUs: number; nowUs: number },
): string[] {
  const own = reports.filter(({ task }) => !task.isEarlier);
  const isNew = own.length > 0 && own.every(({ task }) => task.fromUs >= hourOf(toUs));
  if (!isNew || toUs === hourOf(toUs) || hourOf(nowUs) > toUs) return [];
  return ['`earshot coverage` counts this hour when it has ended.'];
}

function earlierJson({ expected, unreadable: _, undecided: __, ...row }: CountRow) {
  const { subscription, event, ...counts } = row;
  return { subscription, event, events: expected, ...counts };
}

function uncountedTexts(rows: readonly CountRow[]): string[] {
  const [unreadable, undecided] = [sumOf(rows, 'unreadable'), sumOf(rows, 'undecided')];
  const [lacks, is] = undecided === 1 ? ['record lacks', 'it is'] : ['records lack', 'they are'];
  return [
    ...(unreadable === 0
      ? []
      : [`${whole(unreadable)} records of the catalogue could not be read and are not counted.`]),
    ...(undecided === 0
      ? []
      : [
          `${whole(undecided)} ${lacks} what the filter asks for, so it is not known whether ${is} expected; not counted.`,
        ]),
  ];
}

/** With one decimal. */
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

/** The progress as one line. What matters most comes first: a narrow terminal cuts the end. */
export function progressText(progress: ReconcileProgress, requests: number): string {
  const { task, tasks, tasksDone, upToUs, seen, total, etaMs } = progress;
  return [
    `${task.subscription} ${task.event} (${Math.min(tasksDone + 1, tasks)} of ${tasks})`,
    `${whole(seen)}${total === null ? '' : ` of ${whole(total)}`}`,
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

/** Answers take their time, and windows have minutes: a smaller difference misleads nobody. */
const toleratedUs = 60_000_000;

/** By how much our clock is ahead of the catalogue's, in microseconds; 0 where it hardly is. */
export function aheadOf(catalogue: { nowUs: () => number }, own: { nowUs: () => number }): number {
  const aheadUs = own.nowUs() - catalogue.nowUs();
  return Math.abs(aheadUs) > toleratedUs ? aheadUs : 0;
}

/** One line for a person; empty where there is nothing to tell. */
export function clockNote(aheadUs: number): string {
  if (aheadUs === 0) return '';
  const isAhead = aheadUs > 0;
  const what = isAhead
    ? 'a window such as --since 12h begins that much too late'
    : 'a window such as --since 12h ends that much too early';
  const difference = `${duration(Math.abs(aheadUs) / 1_000)} ${isAhead ? 'ahead of' : 'behind'}`;
  return `This machine's clock is ${difference} the catalogue's: ${what}. Set it by NTP.\n`;
}

/** Waits that are longer are told. */
const patienceMs = 60_000;

/** `clear` is called before a line is written, to take away what stands there. */
export function createTellTrouble({
  stderr,
}: Pick<Io, 'stderr'>): (trouble: ListingRetry, clear: () => void) => void {
  const told = new Set<string>();
  return ({ cause, waitMs, remainingWaitMs }, clear) => {
    if (told.has(cause)) return;
    told.add(cause);
    clear();
    const next = waitMs > patienceMs ? ` in ${duration(waitMs)}` : '';
    // Said at once, as nothing else is until it goes on, or is given up.
    const inAll = remainingWaitMs === null ? '' : ` for ${duration(remainingWaitMs)}`;
    stderr.write(`${cause}; trying again${next}${inAll} …\n`);
  };
}
