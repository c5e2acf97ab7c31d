/** `earshot reconcile`: compares the log with the catalogue and recovers missing notifications. */

import { defineCommand, withParts } from '../../core/cli/command.ts';
import { addSpan, dryRunOption, jsonOption, readWindow } from '../../core/cli/flags.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { createLogger } from '../../core/cli/logger.ts';
import { createProgressLine, printJson, writeOut } from '../../core/cli/output.ts';
import { printTable } from '../../core/cli/print-report.ts';
import { loadConfig } from '../../core/config/config.ts';
import { type Closers, createClosers, waitForLock } from '../../core/host/job.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { dayUs, formatDateUs, hourOf, hourUs, shortDateUs } from '../../core/terms/dates.ts';
import type { Column } from '../../core/terms/report.ts';
import { counted, countText, lengthText, printable } from '../../core/terms/text.ts';
import type { Store } from '../../store/store.ts';
import { catchUpIndex, startIndexing } from '../products/index-file/index-maintenance.ts';
import { openProducts } from '../products/index-file/products.ts';
import { requireDefined } from './command.ts';
import { openListing, reconcile } from './reconcile.ts';
import { type ReconcileConfig, reconcileSections } from './settings.ts';
import {
  type FoundMissing,
  noCounts,
  type ReconcileProgress,
  type ReconcileTask,
  type TaskReport,
  type TimeWindow,
  tasksOf,
} from './tasks.ts';

export const reconcileCommand = defineCommand('reconcile', {
  description: 'Compare the log with the catalogue and fetch missing notifications.',
  flags: (command, io) =>
    addSpan(command, io, 'time of the event', '24h')
      .option('--subscription <name>', 'subscription name (repeatable; default: all)', collect)
      .addOption(dryRunOption())
      .option(
        '--check',
        'exit with code 3 if there is a problem (events are missing; --check fetches nothing)',
      )
      .addOption(jsonOption()),
  help: `The command queries the catalogue with the filter and the kinds of event of each registered
subscription. Missing events are added to the log with the source "reconcile". You can repeat the
command: the log contains no duplicates. The receiver runs the same comparison automatically
(EARSHOT_RECONCILE). The command also fetches events from before the start of the subscription. They
are not expected: --check and --dry-run omit them. The time range is extended to whole hours. After
an interruption, run the command again: events that were fetched are not fetched twice.

The catalogue has only the newest state of a product. Therefore these events cannot be fetched:
  - modifications before the last modification
  - publications of products that are deleted now

Fields of --json: from, to, requests, seconds, fetched, counts. Fields of each element of counts:
subscription, event, expected, pushed, late, recovered, missing, unreadable, undecided.
  fetched         number of events that were added to the log, also from before the subscription
  unreadable      number of records without a valid id or date
  undecided       number of records without a property that the filter needs
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
  since?: number;
  until?: number;
  subscription?: readonly string[];
  dryRun?: true;
  check?: true;
  json?: true;
}

/** Rejects with `differences` if `--check` finds missing events. */
export async function runReconcile(io: Io, flags: ReconcileFlags): Promise<void> {
  const config = loadConfig(io, reconcileSections);
  const requested = readWindow(flags, io, { backUs: dayUs });
  const closers = createClosers();
  const startedAtUs = io.nowUs();
  try {
    await withParts(io, ['store'], async ({ store }) => {
      const window = await wholeWindow(store, requested, io);
      const tasks = await plannedTasks(store, flags, window);
      const waiting = 'Waiting for another comparison (receiver or command) …';
      const lock = { io, waiting, signal: io.signal };
      // A list is not written anywhere, and its reader may be slow.
      if (!flags.dryRun) closers.add(await waitForLock(store.acquireLock, 'reconcile', lock));
      const deps = { config, store, flags, tasks, closers };
      const compared = await compare(io, deps).finally(closers.closeAll);
      const lengthUs = io.nowUs() - startedAtUs;
      const toUs = Math.min(window.toUs, io.nowUs());
      await printCompared(io, { ...compared, fromUs: window.fromUs, toUs, lengthUs }, flags);
      if (flags.check) refuseMissing(compared.reports, flags);
    });
  } catch (error) {
    if (!io.signal.aborted) throw error;
    const kept = 'What was fetched is kept; run the command again.';
    const text = flags.dryRun ? 'Nothing was written.' : kept;
    throw new AppError('cancelled', `Interrupted. ${text}`);
  }
}

/** Throws `differences` if events are missing. */
function refuseMissing(reports: readonly TaskReport[], { dryRun }: ReconcileFlags): void {
  const missing = reports.reduce((sum, report) => sum + report.missing, 0);
  if (missing === 0) return;
  throw new AppError('differences', `${counted(missing, 'event is', 'events are')} missing.`, {
    advice: `To fetch missing events, omit ${dryRun ? '--check and --dry-run' : '--check'}.`,
  });
}

/** Returns the whole hours of a range in the unpruned part of the log. Rejects with `usage` if nothing remains. */
async function wholeWindow(
  { completeness }: Pick<Store, 'completeness'>,
  requested: TimeWindow,
  { stderr }: Pick<Io, 'stderr'>,
): Promise<TimeWindow> {
  const fromUs = hourOf(requested.fromUs);
  const toUs = Math.ceil(requested.toUs / hourUs) * hourUs;
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
  { subscription: named = [], check, dryRun }: ReconcileFlags,
  window: TimeWindow,
): Promise<ReconcileTask[]> {
  const definitions = await completeness.definitions();
  const registrations = await administration.registrations();
  const known = requireDefined(definitions, named);
  const subscriptions = named.length === 0 ? known : named;
  const tasks = tasksOf({ definitions, registrations, window, subscriptions });
  return check || dryRun ? tasks.filter(({ isEarlier }) => !isEarlier) : tasks;
}

interface Deps {
  config: ReconcileConfig;
  store: Store;
  flags: ReconcileFlags;
  tasks: readonly ReconcileTask[];
  closers: Closers;
}

async function compare(io: Io, { config, store, flags, tasks, closers }: Deps) {
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
  const causes = new Set<string>();
  const { listing, nowUs } = openListing(config, io, ({ cause, waitMs }) => {
    if (causes.has(cause)) return;
    causes.add(cause);
    progress.clear();
    stderr.write(`${cause} Retrying in ${lengthText(waitMs * 1_000)} …\n`);
  });
  const { completeness } = store;
  // `--dry-run --check` lists missing events, writes nothing, and exits with 3.
  const mode = flags.dryRun ? 'preview' : flags.check ? 'check' : 'write';
  let fetched = 0;
  try {
    const reports = await reconcile(
      // Uses the catalogue's clock: it decides when an hour is complete.
      { listing, completeness, products, log: store, pause, nowUs, ownNowUs },
      {
        ...{ tasks, mode, signal, coverage: mode !== 'preview' },
        onProgress: (reached) => progress.show(progressText(reached, listing.spent().requests)),
        onMissing: async (event) => {
          if (event.recovered) fetched += 1;
          if (!flags.dryRun) return;
          progress.clear();
          await writeOut(io.stdout, missingLine(event, flags));
        },
      },
    );
    return { reports, fetched, requests: listing.spent().requests };
  } finally {
    progress.clear();
  }
}

/** Result of a comparison. */
interface Compared {
  fromUs: number;
  toUs: number;
  reports: readonly TaskReport[];
  requests: number;
  /** Number of events written into the log. */
  fetched: number;
  /** Duration of the comparison. */
  lengthUs: number;
}

/** Returns a missing event as one line, because the total is not known yet. */
function missingLine(
  { subscription, event, productId, productName, eventUs }: FoundMissing,
  { json }: ReconcileFlags,
): string {
  const date = formatDateUs(eventUs);
  if (json) return `${JSON.stringify({ subscription, event, productId, productName, date })}\n`;
  const name = printable(productName ?? productId);
  return `${shortDateUs(eventUs, 'second')}  ${event.padEnd(8)}  ${subscription}  ${name}\n`;
}

/** Prints the counts, and on stderr a summary of them. */
async function printCompared(
  { stdout, stderr }: Pick<Io, 'stdout' | 'stderr'>,
  { reports, requests, fetched, fromUs, toUs, lengthUs }: Compared,
  flags: ReconcileFlags,
): Promise<void> {
  const { dryRun, json } = flags;
  const rows = countRows(reports.filter(({ task }) => !task.isEarlier));
  if (json) {
    if (dryRun) return;
    await printJson(stdout, {
      ...{ from: formatDateUs(fromUs), to: formatDateUs(toUs), requests },
      seconds: Math.round(lengthUs / 100_000) / 10,
      ...{ fetched, counts: rows },
    });
    return;
  }
  if (!dryRun) await printTable(stdout, columns, rows);
  const sentences = [
    ...summaryOf(rows, fetched, flags),
    ...uncountedTexts(countRows(reports)),
    `${counted(requests, 'request')}, ${lengthText(lengthUs)}.`,
  ];
  stderr.write(`${sentences.join(' ')}\n`);
}

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
  { dryRun, check }: ReconcileFlags,
): string[] {
  if (rows.length === 0 && fetched === 0)
    return ['No expected events: no subscription existed in this time range.'];
  const missing = sumOf(rows, 'missing');
  const expected = counted(sumOf(rows, 'expected'), 'event');
  if (fetched > 0)
    return [`Recovered ${counted(fetched, 'missing event')}. Expected: ${expected}.`];
  if (missing === 0) return [`Nothing is missing. Expected: ${expected}.`];
  if (check && !dryRun) return [];
  const next = dryRun ? ' To fetch missing events, omit --dry-run.' : '';
  return [`Missing: ${countText(missing)} of ${expected}.${next}`];
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
function progressText(progress: ReconcileProgress, requests: number): string {
  const { task, tasks, tasksDone, upToUs, seen, total } = progress;
  return [
    `${task.subscription} ${task.event} (${Math.min(tasksDone + 1, tasks)} of ${tasks})`,
    `${countText(seen)}${total === null ? '' : ` of ${countText(total)}`} records`,
    shortDateUs(upToUs),
    counted(requests, 'request'),
  ].join(' · ');
}
