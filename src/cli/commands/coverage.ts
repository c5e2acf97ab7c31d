/** `earshot coverage`: compares the log with the catalogue, by hour. */

import { comparisonOff, loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { CompletenessReader } from '../../domain/completeness.ts';
import {
  type CoverageReport,
  type CoverageSummary,
  type HourState,
  isDue,
  notComparedText,
  type ReportedHour,
  readCoverage,
  sumCoverage,
  toCoverageJson,
} from '../../domain/coverage.ts';
import { formatDateUs, shortDateUs } from '../../domain/dates.ts';
import { countText } from '../../domain/formats.ts';
import type { DelayPercentiles, SubscriptionDelays } from '../../domain/products.ts';
import { printable } from '../../domain/text.ts';
import { dayUs, hourUs, weekUs } from '../../domain/time-units.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand, withParts } from '../command.ts';
import { addSpan, jsonOption, readTimeArgument, readWindow, type TimeArgument } from '../flags.ts';
import type { Io } from '../io.ts';
import { type Column, countColumn, painter, printJson, printTable, writeOut } from '../output.ts';
import { neverRegistered, unknownSubscription } from '../reconcile-listing.ts';

export const coverageCommand = defineCommand('coverage', {
  description: 'Show by hour which events of the catalogue are in the log, and which are missing.',
  flags: (command, io) =>
    addSpan(command, readTimeArgument(io), 'time of the event', '7d')
      .option('--subscription <name>', 'subscription name (default: all)')
      .addOption(jsonOption()),
  help: `An hour is due for comparison half an hour after the end of the hour. The receiver compares each due
hour with the catalogue, and again a day later. \`earshot reconcile\` compares immediately. Columns:
  expected   events in the catalogue that match the filter, since the start of the subscription
  pushed     events that were pushed within half an hour of the event
  late       events that were pushed later, or after earshot had fetched the event
  recovered  events that were not pushed, but fetched from the catalogue
  missing    events that are not in the log
  compared   number of compared hours, and number of due hours
  complete   share of the expected events that are in the log
An hour is shown as pruned if \`earshot prune\` has deleted notifications of this hour. p50 is the
median delay.

Fields of --json, also of /api/coverage of the private listener: since, until, comparison, missing,
subscriptions. Fields of each subscription: subscription, expected, pushed, late, recovered,
missing, state, comparedHours, unknownHours, pendingHours, complete, pushedShare, nextComparison,
hours, delays.
  state         not-compared, partly-compared or compared
  unknownHours  number of hours that are due, but not compared
  pendingHours  number of hours that are not due yet
  pushedShare   share of the expected events that were pushed
  delays        percentiles of the delays between sensing and receipt, in seconds

Exit codes: 0 nothing missing, 1 failed, 2 wrong usage or configuration, 3 events missing.

Examples:
  $ earshot coverage                                     coverage of the last seven days
  $ earshot coverage --since 24h --subscription alps     coverage of one subscription
  $ earshot coverage --since 2026-11-01 --until 2026-12-01 --json   one month, as JSON`,
  run: showCoverage,
});

interface CoverageFlags {
  since?: TimeArgument;
  until?: TimeArgument;
  subscription?: string;
  json?: true;
}

const noHour = 'The time range is empty: --since must be before --until and before now (UTC).';

/** Rejects with `differences` if events are missing. */
async function showCoverage(io: Io, flags: CoverageFlags): Promise<void> {
  const whyOff = comparisonOff(loadConfig(io, ['dataDir', 'reconcile', 'index']));
  const { subscription } = flags;
  const {
    fromUs: sinceUs,
    toUs: untilUs,
    nowUs,
  } = readWindow(flags, io, { backUs: weekUs, message: noHour });
  const window = { sinceUs, untilUs, subscription, nowUs };
  // Settings and flags are checked before anything is opened.
  await withParts(io, ['reader', 'products'], async ({ reader: { completeness }, products }) => {
    const report = await readCoverage({ completeness, products }, window, io.signal);
    if (report.subscriptions.length === 0) throw await nothingToShow(completeness, subscription);
    const document = toCoverageJson(report, whyOff);
    if (flags.json) await printJson(io.stdout, document);
    else await printCoverage(io, report, { comparisonOff: whyOff, nowUs });
    refuseMissing(report);
  });
}

async function nothingToShow(
  completeness: Pick<CompletenessReader, 'definitions'>,
  subscription: string | undefined,
): Promise<AppError> {
  const definitions = await completeness.definitions();
  const known = [...new Set(definitions.map((one) => one.subscription))];
  if (known.length === 0) return neverRegistered();
  if (subscription !== undefined && !known.includes(subscription)) {
    return unknownSubscription([subscription], known);
  }
  const message =
    subscription === undefined
      ? 'No subscription was registered in this data directory at that time.'
      : `Subscription ${subscription} was not registered in this data directory at that time.`;
  const advice = 'See `earshot subscriptions history`.';
  return new AppError('usage', message, { advice });
}

function refuseMissing({ subscriptions }: CoverageReport): void {
  const missing = subscriptions.reduce((sum, one) => sum + one.missing, 0);
  if (missing === 0) return;
  const events = missing === 1 ? '1 event is' : `${countText(missing)} events are`;
  const gaps = subscriptions.flatMap(({ hours }) => hours.filter((hour) => hour.missing > 0));
  const first = formatDateUs(Math.min(...gaps.map(({ hourUs }) => hourUs))).slice(0, 16);
  throw new AppError('differences', `${events} missing.`, {
    advice: `To fetch ${missing === 1 ? 'it' : 'them'}: \`earshot reconcile --since ${first}Z\`.`,
  });
}

type CountRow = Omit<CoverageSummary, 'subscription'> & { name: string };

const counts = ['expected', 'pushed', 'late', 'recovered', 'missing'] as const;

/** Count column; `-` if no hour was compared. */
const count = (title: (typeof counts)[number]): Column<CountRow> => ({
  title,
  value: (row) => (row.state === 'not-compared' ? '-' : countText(row[title])),
  align: 'right',
});

const duration = (key: 'p50Ms' | 'p90Ms' | 'p99Ms' | 'maxMs', title: string): Column<DelayRow> => ({
  title,
  value: ({ [key]: ms }) => shortDuration(ms),
  align: 'right',
});

const coverageColumns: readonly Column<CountRow>[] = [
  { title: 'subscription', value: ({ name }) => name, flexible: true, widthMin: 6 },
  ...counts.map(count),
  {
    title: 'compared',
    value: (row) =>
      `${countText(row.comparedHours)} of ${countText(row.comparedHours + row.unknownHours)} h`,
    align: 'right',
  },
  { title: 'complete', value: (row) => percent(row.complete), align: 'right' },
];

async function printCoverage(
  io: Pick<Io, 'stdout' | 'env'>,
  { subscriptions, delays }: CoverageReport,
  comparison: { comparisonOff: string | null; nowUs: number },
): Promise<void> {
  const rows = subscriptions.map(({ subscription: name, ...rest }) => ({ name, ...rest }));
  const sum = rows.length > 1 ? sumCoverage(subscriptions) : null;
  const last = sum === null ? [] : [{ name: 'all', ...sum }];
  await printTable(io.stdout, coverageColumns, [...rows, ...last]);
  const open = rows.filter(({ state }) => state === 'not-compared');
  for (const row of open) {
    const text = notComparedText(row, comparison);
    const next = isDue(row, comparison) ? ' To compare now: `earshot reconcile`.' : '';
    await writeOut(io.stdout, asCalled(`\n${printable(row.name)}: ${text}.${next}\n`, io));
  }
  const paint = painter(io, io.stdout);
  for (const { subscription, hours } of subscriptions) {
    const lines = stripLines(hours, paint);
    await writeOut(io.stdout, `\n${printable(subscription)}\n${lines.join('\n')}\n`);
    const gaps = hours.filter(({ missing }) => missing > 0);
    for (const { hourUs, missing } of gaps.slice(0, shownMax)) {
      const count = paint('red', `${countText(missing)} missing`);
      await writeOut(io.stdout, `  ${shortDateUs(hourUs)}  ${count}\n`);
    }
    const more = gaps.length - shownMax;
    if (more > 0) await writeOut(io.stdout, `  … and ${more} more hours (all with --json)\n`);
  }
  const all = subscriptions.flatMap(({ hours }) => hours);
  await writeOut(io.stdout, `\n${stripLegend(all, paint)}\n`);
  if (delays !== null) await printDelays(io, delays);
}

/** Maximum number of listed hours with missing events. */
const shownMax = 12;

/** Rounds down, so that an incomplete share is never shown as 100 %. */
function percent(share: number | null): string {
  if (share === null) return '-';
  if (share === 1) return '100 %';
  return `${(Math.floor(share * 1_000) / 10).toFixed(1)} %`;
}

interface DelayRow extends DelayPercentiles {
  name: string;
  delay: string;
}

const delayColumns: readonly Column<DelayRow>[] = [
  { title: 'subscription', value: ({ name }) => name, flexible: true, widthMin: 6 },
  { title: 'delay', value: ({ delay }) => delay },
  countColumn('count', 'of'),
  duration('p50Ms', 'p50'),
  duration('p90Ms', 'p90'),
  duration('p99Ms', 'p99'),
  duration('maxMs', 'longest'),
];

const delayNames = {
  sensingToPublication: 'sensing to publication',
  publicationToNotification: 'publication to notification',
  notificationToReceipt: 'notification to receipt',
} as const;

async function printDelays(
  { stdout }: Pick<Io, 'stdout'>,
  delays: readonly SubscriptionDelays[],
): Promise<void> {
  const rows = delays.flatMap((one) =>
    Object.entries(delayNames).flatMap(([key, delay]) => {
      const percentiles = one[key as keyof typeof delayNames];
      return percentiles === null ? [] : [{ name: one.subscription ?? '-', delay, ...percentiles }];
    }),
  );
  if (rows.length === 0) return;
  await writeOut(stdout, '\n');
  await printTable(stdout, delayColumns, rows);
}

/** `0.3 s`, `47 s`, `35 min`, `14 h`, `3 d`; negative if clocks disagree. */
function shortDuration(ms: number): string {
  const sign = ms < 0 ? '-' : '';
  const seconds = Math.abs(ms) / 1_000;
  if (seconds < 10) return `${sign}${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${sign}${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${sign}${minutes} min`;
  const hours = Math.round(minutes / 60);
  if (hours < 48) return `${sign}${hours} h`;
  return `${sign}${Math.round(hours / 24)} d`;
}

type Paint = ReturnType<typeof painter>;

/** Maximum number of days shown by hour. */
const hourlyDaysMax = 14;

const cellsPerLine = 61;

/** Characters and labels of the hour states, worst first. Readable without colours. */
const cells: Record<HourState, { sign: string; colour: Parameters<Paint>[0]; label: string }> = {
  missing: { sign: '!', colour: 'red', label: 'missing' },
  unknown: { sign: '·', colour: 'dim', label: 'unknown' },
  pending: { sign: '·', colour: 'dim', label: 'unknown' },
  recovered: { sign: '▒', colour: 'yellow', label: 'recovered' },
  late: { sign: '▓', colour: 'cyan', label: 'late' },
  pushed: { sign: '█', colour: 'green', label: 'pushed' },
  quiet: { sign: '░', colour: 'green', label: 'no event' },
  pruned: { sign: '-', colour: 'dim', label: 'pruned' },
  outside: { sign: ' ', colour: 'dim', label: '' },
};

const worstFirst = Object.keys(cells) as HourState[];

/**
 * Lines such as `  2026-11-14  ██▒█…` with 24 hours each; for more than two weeks, one character per day. They begin
 * with the first day that has any state.
 */
export function stripLines(hours: readonly ReportedHour[], paint: Paint): string[] {
  const days = byDay(hours);
  const shown = [...days];
  const first = shown.findIndex(([, states]) => worstOf(states) !== 'outside');
  shown.splice(0, first === -1 ? shown.length : first);
  if (days.size <= hourlyDaysMax) {
    return shown.map(([dayUs, states]) => `  ${dateOf(dayUs)}  ${painted(states, paint)}`);
  }
  const worst = shown.map(([, states]) => worstOf(states));
  const lines: string[] = [];
  for (let at = 0; at < worst.length; at += cellsPerLine) {
    const part = worst.slice(at, at + cellsPerLine);
    lines.push(`  ${dateOf(shown[at]?.[0] ?? 0)}  ${painted(part, paint)}`);
  }
  return lines;
}

/** Legend of the characters; includes pruned hours only if there are any. */
export function stripLegend(hours: readonly ReportedHour[], paint: Paint): string {
  const isPruned = hours.some(({ state }) => state === 'pruned');
  const shown = worstFirst
    .filter((state) => state !== 'outside' && state !== 'pending')
    .filter((state) => state !== 'pruned' || isPruned)
    .toReversed();
  const parts = shown.map((state) => `${painted([state], paint)} ${cells[state].label}`);
  return `${parts.join('   ')}   (UTC)`;
}

/** Groups the states by day, 24 hours each; hours before the first or after the last are outside. */
function byDay(hours: readonly ReportedHour[]): Map<number, HourState[]> {
  const days = new Map<number, HourState[]>();
  for (const { hourUs: atUs, state } of hours) {
    const day = Math.floor(atUs / dayUs) * dayUs;
    const states = days.get(day) ?? Array.from({ length: 24 }, () => 'outside' as const);
    states[Math.round((atUs - day) / hourUs)] = state;
    days.set(day, states);
  }
  return days;
}

function worstOf(states: readonly HourState[]): HourState {
  return worstFirst.find((state) => states.includes(state)) ?? 'outside';
}

/** Colours neighbours of the same state together. */
function painted(states: readonly HourState[], paint: Paint): string {
  let text = '';
  for (let at = 0; at < states.length; ) {
    const state = states[at] ?? 'outside';
    let end = at;
    while (states[end] === state) end += 1;
    text += paint(cells[state].colour, cells[state].sign.repeat(end - at));
    at = end;
  }
  return text;
}

function dateOf(us: number): string {
  return formatDateUs(us).slice(0, 10);
}
