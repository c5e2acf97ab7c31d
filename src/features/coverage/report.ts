/** The report of coverage: which events of the catalogue are in the log, which are missing, and the commands that fetch them. */

import { formatDateUs, hourUs } from '../../core/terms/dates.ts';
import * as report from '../../core/terms/report.ts';
import { counted, countText } from '../../core/terms/text.ts';
import {
  type CoverageSummary,
  isDue,
  notComparedText,
  type SubscriptionCoverage,
  sumCoverage,
} from './coverage.ts';
import { hoursBlock } from './draw-hours.ts';

/** Ranges with missing events that are listed. */
const rangesMax = 20;

export interface CoverageContext {
  /** Why hours are not compared automatically; null when they are. */
  comparisonOff: string | null;
  nowUs: number;
}

/** Reports coverage. */
export function coverageReport(
  all: readonly SubscriptionCoverage[],
  context: CoverageContext,
): report.Report {
  const ranges = all.flatMap(missingRanges);
  const shown = ranges.toSorted((a, b) => b.fromUs - a.fromUs).slice(0, rangesMax);
  return {
    title: 'Coverage',
    blocks: [
      report.text(sumText(all)),
      countTable(all),
      ...(shown.length === 0 ? [] : [missingTable(shown)]),
      ...(ranges.length > shown.length
        ? [report.text(`And ${ranges.length - shown.length} older ranges (all with --json).`)]
        : []),
      ...openBlocks(all, context),
      hoursBlock(all),
    ],
  };
}

/** `240 events were expected in 24 compared hours: 236 are in the log, 4 are missing.` */
function sumText(all: readonly SubscriptionCoverage[]): string {
  const sum = sumCoverage(all);
  if (sum === null || (sum.comparedHours === 0 && sum.missing === 0)) {
    return 'No hour of this period was compared with the catalogue, so it is not known whether events are missing.';
  }
  const { expected, missing, comparedHours } = sum;
  const verb = (count: number) => (count === 1 ? 'is' : 'are');
  const kept = expected - missing;
  const rest =
    missing === 0 ? 'nothing is missing' : `${countText(missing)} ${verb(missing)} missing`;
  const hours = all.length === 1 ? counted(comparedHours, 'compared hour') : 'the compared hours';
  return `${counted(expected, 'event')} ${expected === 1 ? 'was' : 'were'} expected in ${hours}: ${countText(kept)} ${verb(kept)} in the log, ${rest}.`;
}

/** Not a name of a subscription: these are in lower case without blanks. */
const sumName = 'all together';

type CountRow = Omit<CoverageSummary, 'subscription'> & { name: string };

function countTable(all: readonly SubscriptionCoverage[]): report.Block {
  const count = (key: 'expected' | 'pushed' | 'late' | 'recovered' | 'missing') => ({
    ...{ title: key, isNumber: true },
    value: (row: CountRow) => (row.state === 'not-compared' ? null : row[key]),
  });
  const sum = all.length > 1 ? sumCoverage(all) : null;
  const rows: CountRow[] = all.map(({ subscription: name, hours: _, ...rest }) => ({
    name,
    ...rest,
  }));
  return report.table(
    'Events by subscription',
    [
      { title: 'subscription', grows: true, value: ({ name }: CountRow) => name },
      ...(['expected', 'pushed', 'late', 'recovered', 'missing'] as const).map(count),
      {
        ...{ title: 'compared', isNumber: true, drop: 1 },
        // Hours of several subscriptions have no sum.
        value: ({ name, comparedHours, unknownHours }: CountRow) =>
          name === sumName
            ? null
            : `${countText(comparedHours)} of ${countText(comparedHours + unknownHours)} h`,
      },
      {
        ...{ title: 'complete', isNumber: true },
        value: ({ complete }: CountRow) => (complete === null ? null : shareText(complete)),
      },
    ],
    [...rows, ...(sum === null ? [] : [{ name: sumName, ...sum }])],
  );
}

/** Rounds down, so that an incomplete share is never shown as 100 %. */
const shareText = (share: number) =>
  share === 1 ? '100 %' : `${(Math.floor(share * 1_000) / 10).toFixed(1)} %`;

/** Hours of a subscription with missing events, which follow each other. */
interface HourRange {
  subscription: string;
  fromUs: number;
  untilUs: number;
  missing: number;
}

function missingRanges({ subscription, hours }: SubscriptionCoverage): HourRange[] {
  const ranges: HourRange[] = [];
  for (const { hourUs: fromUs, missing } of hours) {
    if (missing === 0) continue;
    const last = ranges.at(-1);
    if (last?.untilUs === fromUs) {
      last.untilUs += hourUs;
      last.missing += missing;
    } else ranges.push({ subscription, fromUs, untilUs: fromUs + hourUs, missing });
  }
  return ranges;
}

function missingTable(ranges: readonly HourRange[]): report.Block {
  return report.table(
    'Missing events, newest first',
    [
      { title: 'missing', isNumber: true, value: ({ missing }: HourRange) => missing },
      { title: 'from (UTC)', value: ({ fromUs }: HourRange) => report.time(fromUs) },
      { title: 'to (UTC)', drop: 2, value: ({ untilUs }: HourRange) => report.time(untilUs) },
      { title: 'subscription', drop: 1, value: ({ subscription }: HourRange) => subscription },
      {
        ...{ title: 'to fetch them', isWhole: true, drop: 3 },
        value: (one: HourRange) => report.code(commandOf(one)),
      },
    ],
    ranges,
  );
}

function commandOf({ subscription, fromUs, untilUs }: HourRange): string {
  const minute = (us: number) => `${formatDateUs(us).slice(0, 16)}Z`;
  return `earshot reconcile --since ${minute(fromUs)} --until ${minute(untilUs)} --subscription ${subscription}`;
}

/** Explains why due hours are not compared, and what to do. */
function openBlocks(
  all: readonly SubscriptionCoverage[],
  context: CoverageContext,
): report.Block[] {
  const { comparisonOff } = context;
  const off = comparisonOff === null ? '' : ` Automatic comparison is off: ${comparisonOff}`;
  return all
    .filter(({ unknownHours, complete }) => unknownHours > 0 || complete === null)
    .map((one) => {
      const hours = counted(one.unknownHours, 'hour is', 'hours are');
      const state =
        one.complete === null
          ? `${notComparedText(one, context)}.`
          : `${hours} due, but not compared.${off}`;
      const next = isDue(one, context) ? ' To compare now: `earshot reconcile`.' : '';
      return report.text(`${one.subscription}: ${state}${next}`);
    });
}
