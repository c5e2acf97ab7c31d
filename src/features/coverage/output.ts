/** Output of `earshot reconcile`: a table or JSON; with --dry-run, each missing event. */

import type { ListingRetry } from '../../admin/listing-requests.ts';
import type { Io } from '../../core/cli/io.ts';
import { printJson } from '../../core/cli/output.ts';
import { printTable } from '../../core/cli/print-table.ts';
import { formatDateUs, minuteUs, shortDateUs } from '../../core/terms/dates.ts';
import type { Column } from '../../core/terms/report.ts';
import type { CatalogueEvent } from '../../core/terms/subscription.ts';
import { counted, countText, lengthText, printable } from '../../core/terms/text.ts';
import { noCounts, type ReconcileProgress, type TaskReport } from './tasks.ts';

interface MissingRow extends CatalogueEvent {
  productName: string | null;
}

/** Result of a comparison. */
interface Compared {
  fromUs: number;
  toUs: number;
  reports: readonly TaskReport[];
  spent: { requests: number; answersMs: number; waitedMs: number };
  /** Number of events written into the log: of the subscriptions, and from before they began. */
  fetched: { own: number; earlier: number };
  /** Duration of the comparison. */
  lengthUs: number;
}

interface OutputFlags {
  dryRun?: true;
  check?: true;
  json?: true;
}

/** Prints a missing event on one line, because the total is not known yet. */
export function printMissing(
  { stdout }: Pick<Io, 'stdout'>,
  { subscription, event, productId, productName, eventUs }: MissingRow,
  { json }: OutputFlags,
): void {
  const date = formatDateUs(eventUs);
  const line = json
    ? JSON.stringify({ subscription, event, productId, productName, date })
    : `${shortDateUs(eventUs, 'second')}  ${event.padEnd(8)}  ${subscription}  ${printable(productName ?? productId)}`;
  stdout.write(`${line}\n`);
}

/** Prints the counts, and on stderr a summary of them. */
export async function printCompared(
  { stdout, stderr }: Pick<Io, 'stdout' | 'stderr'>,
  { reports, spent, fetched, fromUs, toUs, lengthUs }: Compared,
  flags: OutputFlags,
): Promise<void> {
  const { dryRun, json } = flags;
  const rows = countRows(reports.filter(({ task }) => !task.isEarlier));
  const earlier = countRows(reports.filter(({ task }) => task.isEarlier));
  if (json) {
    if (dryRun) return;
    await printJson(stdout, {
      ...{ from: formatDateUs(fromUs), to: formatDateUs(toUs), requests: spent.requests },
      seconds: seconds(lengthUs / 1_000),
      answersSeconds: seconds(spent.answersMs),
      waitedSeconds: seconds(spent.waitedMs),
      ...{ fetched: fetched.own, counts: rows },
      earlier: {
        fetched: fetched.earlier,
        counts: earlier.map(({ expected, unreadable: _, undecided: __, ...row }) => {
          return { ...row, events: expected };
        }),
      },
    });
    return;
  }
  if (!dryRun) await printTable(stdout, columns, rows);
  const sentences = [
    ...summaryOf(rows, fetched.own, flags),
    ...earlierText(earlier, fetched.earlier),
    ...uncountedTexts([...rows, ...earlier]),
    `${counted(spent.requests, 'request')}, ${lengthText(lengthUs)}.`,
  ];
  stderr.write(`${sentences.join(' ')}\n`);
}

const seconds = (ms: number) => Math.round(ms / 100) / 10;

/** Counts of all tasks of one subscription and event. */
type CountRow = Omit<TaskReport, 'task'> & { subscription: string; event: string };

const none = { ...noCounts(), unreadable: 0, undecided: 0 };

type CountKey = keyof typeof none;

function countRows(reports: readonly TaskReport[]): CountRow[] {
  const rows = new Map<string, CountRow>();
  for (const { task, ...counts } of reports) {
    const { subscription, event } = task;
    const key = `${subscription} ${event}`;
    const row = rows.get(key) ?? { subscription, event, ...none };
    for (const kind of Object.keys(none) as CountKey[]) row[kind] += counts[kind];
    rows.set(key, row);
  }
  return [...rows.values()];
}

const columns: readonly Column<CountRow>[] = [
  { title: 'subscription', value: ({ subscription }) => subscription, grows: true },
  { title: 'event', value: ({ event }) => event },
  ...(['expected', 'pushed', 'late', 'recovered', 'missing'] as const).map((key) => ({
    ...{ title: key, isNumber: true },
    value: (row: CountRow) => row[key],
  })),
];

function sumOf(rows: readonly CountRow[], key: CountKey): number {
  return rows.reduce((total, row) => total + row[key], 0);
}

/** Summarizes the counts. The result of --check is reported as an error instead. */
function summaryOf(
  rows: readonly CountRow[],
  fetched: number,
  { dryRun, check }: OutputFlags,
): string[] {
  if (rows.length === 0) return ['No expected events: no subscription existed in this time range.'];
  const missing = sumOf(rows, 'missing');
  const expected = counted(sumOf(rows, 'expected'), 'event');
  if (fetched > 0)
    return [`Recovered ${counted(fetched, 'missing event')}. Expected: ${expected}.`];
  if (missing === 0) return [`Nothing is missing. Expected: ${expected}.`];
  if (check && !dryRun) return [];
  const next = dryRun ? ' To fetch missing events, omit --dry-run.' : '';
  return [`Missing: ${countText(missing)} of ${expected}.${next}`];
}

/** Summarizes events from before the subscription began. */
function earlierText(rows: readonly CountRow[], fetched: number): string[] {
  const found = sumOf(rows, 'expected');
  if (found === 0) return [];
  const missing = sumOf(rows, 'missing');
  return [
    `Older than the subscription, so not expected: ${counted(found, 'event')}, ${countText(fetched)} fetched, ${countText(missing)} not in the log.`,
  ];
}

function uncountedTexts(rows: readonly CountRow[]): string[] {
  const texts = {
    unreadable: 'unreadable',
    undecided: 'without a property that the filter uses',
  } as const;
  return Object.entries(texts).flatMap(([key, text]) => {
    const count = sumOf(rows, key as keyof typeof texts);
    return count === 0 ? [] : [`Not counted: ${counted(count, 'record')} ${text}.`];
  });
}

/** Formats the progress as one line, most important first: a narrow terminal cuts the end. */
export function progressText(progress: ReconcileProgress, requests: number): string {
  const { task, tasks, tasksDone, upToUs, seen, total, etaMs } = progress;
  return [
    `${task.subscription} ${task.event} (${Math.min(tasksDone + 1, tasks)} of ${tasks})`,
    `${countText(seen)}${total === null ? '' : ` of ${countText(total)}`} records`,
    ...(etaMs ? [`about ${lengthText(etaMs * 1_000)} left`] : []),
    shortDateUs(upToUs),
    counted(requests, 'request'),
  ].join(' · ');
}

/** Note about a clock that differs from the catalogue's by more than the resolution of time ranges; empty without. */
export function clockNote(catalogueUs: number, ownUs: number): string {
  const differenceUs = ownUs - catalogueUs;
  if (Math.abs(differenceUs) <= minuteUs) return '';
  const side = differenceUs > 0 ? 'ahead of' : 'behind';
  return `The clock of this machine is ${lengthText(Math.abs(differenceUs))} ${side} the catalogue's. Synchronize the clock with NTP.\n`;
}

/** Prints each cause of failure once. `clear` removes the progress line before. */
export function createTroubleReporter({
  stderr,
}: Pick<Io, 'stderr'>): (trouble: ListingRetry, clear: () => void) => void {
  const reported = new Set<string>();
  return ({ cause, waitMs }, clear) => {
    if (reported.has(cause)) return;
    reported.add(cause);
    clear();
    stderr.write(`${cause} Retrying in ${lengthText(waitMs * 1_000)} …\n`);
  };
}
