/** A report of coverage for people: counts, a strip of hours, where something is missing, delays. */
import { type CoverageCounts, sumCounts } from '../../domain/coverage-report.ts';
import { shortDateUs } from '../../domain/notification-date.ts';
import { printable } from '../../domain/printable.ts';
import type { CoverageReport } from '../../domain/read-coverage.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { type Column, printTable } from '../table.ts';
import { writeOut } from '../write-out.ts';
import { printDelays } from './print-delays.ts';
import { stripLegend, stripLines } from './strip.ts';

type CountRow = CoverageCounts & { name: string; unknownHours: number; complete: number | null };

const whole = (value: number) => value.toLocaleString('en-US');

const columns: readonly Column<CountRow>[] = [
  { title: 'subscription', value: ({ name }) => name, flexible: true, widthMin: 6 },
  { title: 'expected', value: (row) => whole(row.expected), align: 'right' },
  { title: 'pushed', value: (row) => whole(row.pushed), align: 'right' },
  { title: 'late', value: (row) => whole(row.late), align: 'right' },
  { title: 'recovered', value: (row) => whole(row.recovered), align: 'right' },
  { title: 'missing', value: (row) => whole(row.missing), align: 'right' },
  { title: 'unknown', value: (row) => `${whole(row.unknownHours)} h`, align: 'right' },
  { title: 'complete', value: (row) => percent(row.complete), align: 'right' },
];

export async function printCoverage(
  io: Pick<Io, 'stdout' | 'env'>,
  { subscriptions, delays }: CoverageReport,
): Promise<void> {
  const rows = subscriptions.map(({ subscription: name, ...rest }) => ({ name, ...rest }));
  await printTable(io.stdout, columns, rows.length > 1 ? [...rows, sumRow(rows)] : rows);
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

function sumRow(rows: readonly CountRow[]): CountRow {
  const counts = sumCounts(rows);
  const unknownHours = rows.reduce((sum, row) => sum + row.unknownHours, 0);
  const isKnown = rows.some(({ complete }) => complete !== null);
  const { expected, missing } = counts;
  const share = expected === 0 ? 1 : (expected - missing) / expected;
  return { name: 'all', ...counts, unknownHours, complete: isKnown ? share : null };
}

/** Never rounded up to 100 %. */
export function percent(share: number | null): string {
  if (share === null) return '-';
  if (share === 1) return '100 %';
  return `${(Math.floor(share * 1_000) / 10).toFixed(1)} %`;
}
