/** `earshot coverage`: shows, hour by hour, whether all that the catalogue published is here. */
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
import type { DelayPercentiles, SubscriptionDelays } from '../../domain/products.ts';
import { printable } from '../../domain/text.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand, withParts } from '../command.ts';
import { addSpan, readTimeArgument, readWindow, type TimeArgument } from '../flags.ts';
import type { Io } from '../io.ts';
import {
  type Column,
  countColumn,
  painter,
  printJson,
  printTable,
  whole,
  writeOut,
} from '../output.ts';
import { neverRegistered, unknownSubscription } from '../reconcile-listing.ts';

export const coverageCommand = defineCommand('coverage', {
  description: 'Show whether all that the catalogue published is here, hour by hour.',
  flags: (command, io) =>
    addSpan(command, readTimeArgument(io), 'hours', '7d')
      .option('--subscription <name>', 'only this one')
      .option('--json', 'as JSON: see below'),
  help: `Hours are those of the events: when a product was published, modified or deleted. An hour is
compared with the catalogue by the receiver, half an hour after its end and once more a day later,
or by \`earshot reconcile\`. Before that, its counts are not known. Columns:
  expected   events that the catalogue shows since the subscription began, with its filter
  pushed     pushed within half an hour of the event
  late       pushed later, or after the event had been recovered
  recovered  never pushed; fetched and written into the log
  missing    not in the log: expected without pushed, late and recovered
  compared   hours that were compared, of those that ended half an hour ago or earlier
  complete   the share of expected events that is in the log
Of hours that are shown as pruned, notifications were removed (\`earshot prune\`).

Delays: from the end of sensing to the publication, from there to the notification, and from there
to its receipt; half of all took no longer than p50.

--json: since until comparison (automatic, and the reason when not) missing subscriptions; of each
subscription the counts, state (not-compared, partly-compared, compared), comparedHours,
unknownHours (due, and not compared), pendingHours (not due yet), nextComparison, complete and told
(the shares of expected events that are in the log, and that were pushed), hours (hour, state and
counts), delays in seconds. The same on /api/coverage of the private listener.

Exit codes: 0 nothing is missing, 1 failed, 2 wrong usage or configuration, 3 something is missing.

Examples:
  $ earshot coverage
  $ earshot coverage --since 24h --subscription alps
  $ earshot coverage --since 2026-11-01 --until 2026-12-01 --json`,
  run: showCoverage,
});

interface CoverageFlags {
  since?: TimeArgument;
  until?: TimeArgument;
  subscription?: string;
  json?: true;
}

const weekUs = 7 * 86_400_000_000;

const noHour = 'There is no hour to show: --since must lie before --until and now (UTC).';

/** Rejects with `differences` when something is missing. */
async function showCoverage(io: Io, flags: CoverageFlags): Promise<void> {
  const whyOff = comparisonOff(loadConfig(io, ['dataDir', 'reconcile', 'index']));
  const { subscription } = flags;
  const {
    fromUs: sinceUs,
    toUs: untilUs,
    nowUs,
  } = readWindow(flags, io, { backUs: weekUs, message: noHour });
  const window = { sinceUs, untilUs, subscription, nowUs };
  // The settings and the window are checked before anything is opened.
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
  if (known.length === 0) return neverRegistered('then `earshot coverage` shows what came of it');
  if (subscription !== undefined && !known.includes(subscription)) {
    return unknownSubscription([subscription], known);
  }
  const what =
    subscription === undefined
      ? 'No subscription was registered in this data directory at that time.'
      : `There was no subscription ${subscription} in this data directory at that time.`;
  const advice = '`earshot subscriptions history` shows what was when.';
  return new AppError('usage', what, { advice });
}

function refuseMissing({ subscriptions }: CoverageReport): void {
  const missing = subscriptions.reduce((sum, one) => sum + one.missing, 0);
  if (missing === 0) return;
  const events = missing === 1 ? '1 event is' : `${whole(missing)} events are`;
  const gaps = subscriptions.flatMap(({ hours }) => hours.filter((hour) => hour.missing > 0));
  const first = formatDateUs(Math.min(...gaps.map(({ hourUs }) => hourUs))).slice(0, 16);
  throw new AppError('differences', `${events} missing.`, {
    advice: `\`earshot reconcile --since ${first}Z\` fetches ${missing === 1 ? 'it' : 'them'}.`,
  });
}

type CountRow = Omit<CoverageSummary, 'subscription'> & { name: string };

const counts = ['expected', 'pushed', 'late', 'recovered', 'missing'] as const;

/** Nothing is claimed where nothing was compared. */
const count = (title: (typeof counts)[number]): Column<CountRow> => ({
  title,
  value: (row) => (row.state === 'not-compared' ? '-' : whole(row[title])),
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
      `${whole(row.comparedHours)} of ${whole(row.comparedHours + row.unknownHours)} h`,
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
    const next = isDue(row, comparison) ? ' `earshot reconcile` compares now.' : '';
    await writeOut(io.stdout, asCalled(`\n${printable(row.name)}: ${text}.${next}\n`, io));
  }
  const paint = painter(io, io.stdout);
  for (const { subscription, hours } of subscriptions) {
    const lines = stripLines(hours, paint);
    await writeOut(io.stdout, `\n${printable(subscription)}\n${lines.join('\n')}\n`);
    const gone = hours.filter(({ missing }) => missing > 0);
    for (const { hourUs, missing } of gone.slice(0, shownMax)) {
      const count = paint('red', `${whole(missing)} missing`);
      await writeOut(io.stdout, `  ${shortDateUs(hourUs)}  ${count}\n`);
    }
    const more = gone.length - shownMax;
    if (more > 0) await writeOut(io.stdout, `  … and in ${more} more hours (--json has all)\n`);
  }
  const all = subscriptions.flatMap(({ hours }) => hours);
  await writeOut(io.stdout, `\n${stripLegend(all, paint)}\n`);
  if (delays !== null) await printDelays(io, delays);
}

/** Hours with missing events that are named one by one. */
const shownMax = 12;

/** Never rounded up to 100 %. */
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

/** `0.3 s`, `47 s`, `35 min`, `14 h`, `3 d`; with a minus where clocks disagree. */
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

const dayUs = 86_400_000_000;

/** Days that are shown hour by hour. */
const hourlyDaysMax = 14;

const cellsPerLine = 61;

/** Readable without colour, too; the worst first. */
const cells: Record<HourState, { sign: string; colour: Parameters<Paint>[0]; words: string }> = {
  missing: { sign: '!', colour: 'red', words: 'missing' },
  unknown: { sign: '·', colour: 'dim', words: 'unknown' },
  pending: { sign: '·', colour: 'dim', words: 'unknown' },
  recovered: { sign: '▒', colour: 'yellow', words: 'recovered' },
  late: { sign: '▓', colour: 'cyan', words: 'late' },
  pushed: { sign: '█', colour: 'green', words: 'pushed' },
  quiet: { sign: '░', colour: 'green', words: 'no event' },
  pruned: { sign: '-', colour: 'dim', words: 'pruned' },
  outside: { sign: ' ', colour: 'dim', words: '' },
};

const worstFirst = Object.keys(cells) as HourState[];

/**
 * Lines such as `  2026-11-14  ██▒█…`, 24 hours each; of more than two weeks one character a day. They begin with the
 * first day on which anything was asked for.
 */
function stripLines(hours: readonly ReportedHour[], paint: Paint): string[] {
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

/** What the characters mean; that of pruned hours only where there are some. */
function stripLegend(hours: readonly ReportedHour[], paint: Paint): string {
  const isPruned = hours.some(({ state }) => state === 'pruned');
  const told = worstFirst
    .filter((state) => state !== 'outside' && state !== 'pending')
    .filter((state) => state !== 'pruned' || isPruned)
    .toReversed();
  const parts = told.map((state) => `${painted([state], paint)} ${cells[state].words}`);
  return `${parts.join('   ')}   (UTC)`;
}

/** The states of each day's 24 hours; what lies before the first or after the last is outside. */
function byDay(hours: readonly ReportedHour[]): Map<number, HourState[]> {
  const days = new Map<number, HourState[]>();
  for (const { hourUs, state } of hours) {
    const day = Math.floor(hourUs / dayUs) * dayUs;
    const states = days.get(day) ?? Array.from({ length: 24 }, () => 'outside' as const);
    states[Math.round((hourUs - day) / 3_600_000_000)] = state;
    days.set(day, states);
  }
  return days;
}

function worstOf(states: readonly HourState[]): HourState {
  return worstFirst.find((state) => states.includes(state)) ?? 'outside';
}

/** Neighbours of one colour are painted together. */
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
