/** What `earshot reconcile` prints: a table, or JSON; with --dry-run each missing event. */
import type { TaskReport } from '../../admin/reconcile/reconcile.ts';
import { noCounts } from '../../admin/reconcile/reconcile-task.ts';
import type { CatalogueEvent } from '../../domain/completeness.ts';
import { formatDateUs, shortDateUs } from '../../domain/notification-date.ts';
import { printable } from '../../domain/printable.ts';
import type { Io } from '../io.ts';
import { type Column, printTable } from '../table.ts';
import { writeOut } from '../write-out.ts';

export interface MissingRow extends CatalogueEvent {
  productName: string | null;
  /** True when it has been written into the log. */
  recovered: boolean;
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
  let fetched = 0;
  return {
    missing: (event) => {
      if (event.recovered) fetched += 1;
      // One line at a time: how many there are is not known before.
      if (dryRun) stdout.write(json ? `${JSON.stringify(toOutput(event))}\n` : missingLine(event));
    },
    spent: (spent) => {
      cost = spent;
    },
    end: async (reports) => {
      const rows = countRows(reports);
      const seconds = inSeconds((nowUs() - startedAtUs) / 1_000);
      if (json && !dryRun) {
        const { requests } = cost;
        const answersSeconds = inSeconds(cost.answersMs);
        const waitedSeconds = inSeconds(cost.waitedMs);
        const window = { from: formatDateUs(fromUs), to: formatDateUs(toUs) };
        const times = { seconds, answersSeconds, waitedSeconds };
        const document = { ...window, requests, ...times, fetched, counts: rows };
        await writeOut(stdout, `${JSON.stringify(document, null, 2)}\n`);
      } else if (!json) {
        if (!dryRun) await printTable(stdout, columns, rows);
        const sentences = verdict(rows, {
          dryRun: dryRun === true,
          check: check === true,
          fetched,
        });
        stderr.write(`${[...sentences, asked(cost, seconds)].join(' ')}\n`);
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
    rows.set(key, {
      subscription,
      event,
      expected: row.expected + counts.expected,
      pushed: row.pushed + counts.pushed,
      late: row.late + counts.late,
      recovered: row.recovered + counts.recovered,
      missing: row.missing + counts.missing,
      unreadable: row.unreadable + counts.unreadable,
      undecided: row.undecided + counts.undecided,
    });
  }
  return [...rows.values()];
}

const none = { ...noCounts(), unreadable: 0, undecided: 0 };

const whole = (value: number) => value.toLocaleString('en-US');

const count = (key: keyof typeof none, title: string = key): Column<CountRow> => ({
  title,
  value: (row) => whole(row[key]),
  align: 'right',
});

const columns: readonly Column<CountRow>[] = [
  { title: 'subscription', value: ({ subscription }) => subscription, flexible: true },
  { title: 'event', value: ({ event }) => event },
  count('expected'),
  count('pushed'),
  count('late'),
  count('recovered'),
  count('missing'),
];

/** What the counts mean; what --check found is told as its error. */
function verdict(
  rows: readonly CountRow[],
  { dryRun, check, fetched }: { dryRun: boolean; check: boolean; fetched: number },
): string[] {
  if (rows.length === 0) return ['Nothing was asked for in that time, so nothing can be missing.'];
  const sum = (key: keyof typeof none) => rows.reduce((total, row) => total + row[key], 0);
  const [expected, missing] = [sum('expected'), sum('missing')];
  const uncounted = uncountedTexts(sum('unreadable'), sum('undecided'));
  const events = expected === 1 ? '1 event' : `${whole(expected)} events`;
  const left = dryRun ? [`Without --dry-run ${missing === 1 ? 'it is' : 'they are'} fetched.`] : [];
  if (fetched > 0)
    return [
      `${whole(fetched)} of ${events} ${fetched === 1 ? 'was missing and is' : 'were missing and are'} fetched.`,
      ...uncounted,
    ];
  if (missing === 0) return [`Nothing is missing: ${events}.`, ...uncounted];
  if (check) return uncounted;
  return [
    `${whole(missing)} of ${events} ${missing === 1 ? 'is' : 'are'} missing.`,
    ...left,
    ...uncounted,
  ];
}

function uncountedTexts(unreadable: number, undecided: number): string[] {
  const texts: string[] = [];
  if (unreadable > 0)
    texts.push(
      `${whole(unreadable)} records of the catalogue could not be read and are not counted.`,
    );
  if (undecided > 0)
    texts.push(
      `${whole(undecided)} ${undecided === 1 ? 'record lacks' : 'records lack'} what the filter asks for, so that nobody can tell whether ${undecided === 1 ? 'it is' : 'they are'} owed; not counted.`,
    );
  return texts;
}

function asked(cost: { requests: number; answersMs: number }, seconds: number): string {
  const requests = cost.requests === 1 ? '1 request' : `${cost.requests} requests`;
  return `${requests}, ${seconds} s (${inSeconds(cost.answersMs)} s for the catalogue's answers).`;
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
