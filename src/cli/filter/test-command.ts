/** `earshot filter test`: how many of the stored products a filter would have let through. */
import { dataSections, loadConfig } from '../../config/config.ts';
import type { Io } from '../io.ts';
import { withCurrentIndex } from '../products/current-index.ts';
import { type Column, printTable } from '../table.ts';
import { writeOut } from '../write-out.ts';
import type { FilterArgument } from './filter-argument.ts';
import { type Matches, matchesByDay } from './matches-by-day.ts';
import { readFilter } from './read-filter.ts';

type Day = Matches['days'][number];

/** As long as the longest day's. */
const barWidth = 30;

export async function testFilter(
  { text, entity }: FilterArgument,
  { since, until, json }: { since?: number; until?: number; json?: true },
  io: Io,
): Promise<void> {
  const filter = readFilter(text, entity, io);
  await withCurrentIndex(loadConfig(io, dataSections), io, async (products) => {
    const matches = await matchesByDay(
      products,
      { entity, filter, published: { fromUs: since, untilUs: until } },
      io,
    );
    if (json) return writeOut(io.stdout, `${JSON.stringify(matches, null, 2)}\n`);
    await printTable(io.stdout, columnsOf(matches.days, io), matches.days);
    await writeOut(io.stdout, `${summary(matches, since !== undefined || until !== undefined)}\n`);
  });
}

function columnsOf(days: readonly Day[], { stdout }: Pick<Io, 'stdout'>): Column<Day>[] {
  const most = days.reduce((max, { matching }) => Math.max(max, matching), 1);
  const bar = ({ matching }: Day) => '█'.repeat(Math.ceil((matching / most) * barWidth));
  return [
    { title: 'day (UTC)', value: ({ day }) => day },
    { title: 'products', value: ({ matching }) => String(matching), align: 'right' },
    ...(stdout.isTTY ? [{ title: '', value: bar }] : []),
  ];
}

function summary({ entity, matching, total, share }: Matches, isBounded: boolean): string {
  const what = entity === 'Products' ? 'products' : 'deleted products';
  if (total === 0 && isBounded)
    return `None of the ${what} here are of that time: check --since and --until.`;
  if (total === 0) return `There are no ${what} here yet to try it on.`;
  const percent = (share * 100).toFixed(share === 1 || share === 0 ? 0 : 1);
  const verb = matching === 1 ? 'matches' : 'match';
  return `${matching} of ${total} ${what} ${verb} (${percent} %)`;
}
