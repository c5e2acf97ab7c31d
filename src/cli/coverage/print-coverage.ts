/** A report of coverage for people: counts, a strip of hours, where something is missing, delays. */
import { type CoverageSummary, sumCoverage } from '../../domain/coverage-report.ts';
import { shortDateUs } from '../../domain/notification-date.ts';
import { printable } from '../../domain/printable.ts';
import type { CoverageReport } from '../../domain/read-coverage.ts';
import { asCalled } from '../called-as.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { type Column, printTable } from '../table.ts';
import { writeOut } from '../write-out.ts';
import { isDue, notComparedText } from './not-compared.ts';
import { printDelays } from './print-delays.ts';
import { stripLegend, stripLines } from './strip.ts';

type CountRow = Omit<CoverageSummary, 'subscription'> & { name: string };

const whole = (value: number) => value.toLocaleString('en-US');

/** Nothing is claimed where nothing was compared. */
function count(title: 'expected' | 'pushed' | 'late' | 'recovered' | 'missing'): Column<CountRow> {
  return {
    title,
    value: (row) => (row.state === 'not-compared' ? '-' : whole(row[title])),
    align: 'right',
  };
}

const columns: readonly Column<CountRow>[] = [
  { title: 'subscription', value: ({ name }) => name, flexible: true, widthMin: 6 },
  count('expected'),
  count('pushed'),
  count('late'),
  count('recovered'),
  count('missing'),
  {
    title: 'compared',
    value: (row) =>
      `${whole(row.comparedHours)} of ${whole(row.comparedHours + row.unknownHours)} h`,
    align: 'right',
  },
  { title: 'complete', value: (row) => percent(row.complete), align: 'right' },
];

export async function printCoverage(
  io: Pick<Io, 'stdout' | 'env'>,
  { subscriptions, delays }: CoverageReport,
  comparison: { comparisonOff: string | null; nowUs: number },
): Promise<void> {
  const rows = subscriptions.map(({ subscription: name, ...rest }) => ({ name, ...rest }));
  const sum = rows.length > 1 ? sumCoverage(subscriptions) : null;
  await printTable(io.stdout, columns, sum === null ? rows : [...rows, { name: 'all', ...sum }]);
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
      await writeOut(
        io.stdout,
        `  ${shortDateUs(hourUs)}  ${paint('red', `${whole(missing)} missing`)}\n`,
      );
    }
    if (gone.length > shownMax) {
      await writeOut(
        io.stdout,
        `  … and in ${gone.length - shownMax} more hours (--json has all)\n`,
      );
    }
  }
  await writeOut(
    io.stdout,
    `\n${stripLegend(
      subscriptions.flatMap(({ hours }) => hours),
      paint,
    )}\n`,
  );
  if (delays !== null) await printDelays(io, delays);
}

/** Hours with missing events that are named one by one. */
const shownMax = 12;

/** Never rounded up to 100 %. */
export function percent(share: number | null): string {
  if (share === null) return '-';
  if (share === 1) return '100 %';
  return `${(Math.floor(share * 1_000) / 10).toFixed(1)} %`;
}
