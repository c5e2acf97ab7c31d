/** Delays as a table. */
import type { DelayPercentiles, SubscriptionDelays } from '../../domain/products.ts';
import type { Io } from '../io.ts';
import { type Column, printTable } from '../table.ts';
import { writeOut } from '../write-out.ts';

interface DelayRow extends DelayPercentiles {
  name: string;
  delay: string;
}

const columns: readonly Column<DelayRow>[] = [
  { title: 'subscription', value: ({ name }) => name, flexible: true, widthMin: 6 },
  { title: 'delay', value: ({ delay }) => delay },
  { title: 'of', value: ({ count }) => count.toLocaleString('en-US'), align: 'right' },
  { title: 'p50', value: ({ p50Ms }) => shortDuration(p50Ms), align: 'right' },
  { title: 'p90', value: ({ p90Ms }) => shortDuration(p90Ms), align: 'right' },
  { title: 'p99', value: ({ p99Ms }) => shortDuration(p99Ms), align: 'right' },
  { title: 'longest', value: ({ maxMs }) => shortDuration(maxMs), align: 'right' },
];

export async function printDelays(
  { stdout }: Pick<Io, 'stdout'>,
  delays: readonly SubscriptionDelays[],
): Promise<void> {
  const rows = delays.flatMap((one) => {
    const name = one.subscription ?? '-';
    return [
      rowOf(name, 'sensing to publication', one.sensingToPublication),
      rowOf(name, 'publication to notification', one.publicationToNotification),
      rowOf(name, 'notification to receipt', one.notificationToReceipt),
    ].flat();
  });
  if (rows.length === 0) return;
  await writeOut(stdout, '\n');
  await printTable(stdout, columns, rows);
}

function rowOf(name: string, delay: string, percentiles: DelayPercentiles | null): DelayRow[] {
  return percentiles === null ? [] : [{ name, delay, ...percentiles }];
}

/** `0.3 s`, `47 s`, `35 min`, `14 h`, `3 d`; with a minus where clocks disagree. */
export function shortDuration(ms: number): string {
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
