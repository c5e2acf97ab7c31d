/** Query benchmark: first pages and counts over HTTP, on a small and on a large index. */
import { join } from 'node:path';
import { type Column, inMegabytes, renderTable, type TargetResult, target } from './figures.ts';
import { defineBenchmark, flag, integer, integers } from './harness.ts';
import { prepareQueryData } from './query-data.ts';
import { type CaseFigures, type Compared, measureQueries, openSubject } from './query-measure.ts';
import { createEndpoint } from './servers.ts';

/** A faster first page meets the target regardless of the ratio. */
const fastMs = 25;
const ratioMax = 4;

export const benchmark = defineBenchmark({
  command: 'npm run bench:query --',
  about: `Generates products at the catalogue's rate of 32,000 a day, indexes them, and measures queries over HTTP on a
small and on a large index (3 GB per million products): the first page of 50 and the count. Each kind of query runs
with many values, after a warm-up with others, at both sizes in turn.`,
  options: {
    rows: integers(
      'products of the small and the large index',
      [10_000, 1_000_000],
      [2_000, 20_000],
    ),
    values: integer('values per kind of query', 50, 10),
    keep: flag('keep the data in products-N, and reuse existing data'),
  },
  refuse: ({ keep, dir }) => (keep && dir === undefined ? '--keep requires --dir' : null),
  async measure({ rows: [smallRows = 0, largeRows = 0], values, keep }, context) {
    const { cleanup, progress, folder } = context;
    const temporary = cleanup.temporaryFolder(folder);
    const endpoint = await createEndpoint(temporary);
    const open = async (rows: number) => {
      const place = join(keep ? folder : temporary, `products-${rows}`);
      return openSubject({ endpoint, cleanup }, await prepareQueryData(place, rows, progress));
    };
    const [small, large] = [await open(smallRows), await open(largeRows)];
    const cases = await measureQueries(small, large, values, progress);
    const sizes = [small, large].map(({ data, serverPeakBytes }) => {
      return { ...data, serverPeakBytes: serverPeakBytes() };
    });
    await large.close();
    await small.close();
    return {
      setting: `${values} values of each kind of query after a warm-up; one connection`,
      figures: { sizes, cases },
      text: [
        renderTable(sizes, [
          ['products', ({ products }) => String(products)],
          ['notifications', ({ notifications }) => notifications],
          ['fill s', ({ fillSeconds }) => fillSeconds, 1],
          ['index s', ({ indexSeconds }) => indexSeconds, 1],
          ['indexed/s', ({ notifications, indexSeconds }) => notifications / indexSeconds],
          ['log MB', ({ logBytes }) => inMegabytes(logBytes)],
          ['index MB', ({ indexBytes }) => inMegabytes(indexBytes)],
          ['server peak MB', ({ serverPeakBytes }) => inMegabytes(serverPeakBytes)],
        ]),
        renderCompared('First page, newest first', cases, ({ page }) => page),
        renderCompared('Count', cases, ({ count }) => count),
        ...(cases[0]?.orders ?? []).map(({ order }, i) =>
          renderCompared(`First page, ${order}`, cases.slice(0, -1), ({ orders }) => orders[i]),
        ),
        renderTable(cases, [
          [`At ${largeRows}`, ({ name }) => name],
          ['STAC / OData', ({ stacRatio }) => stacRatio, 2],
        ]),
      ],
      targets: targetsOf(cases, sizes[1]),
    };
  },
});

/** Compares first pages, counts and sizes of the large index with the targets. */
function targetsOf(
  cases: readonly CaseFigures[],
  large: { products: number; indexBytes: number; serverPeakBytes: number | null } | undefined,
): TargetResult[] {
  const slowestCountMs = Math.max(...cases.map(({ count }) => count.large.maxMs));
  const bytes = large === undefined ? null : large.indexBytes / large.products;
  return [
    ...cases.map(({ name, page: { small, large } }): TargetResult => {
      const value = large.medianMs / small.medianMs;
      return {
        name: `first page, large / small: ${name}`,
        bound: `at most ${ratioMax}, or under ${fastMs} ms`,
        value,
        met: value <= ratioMax || large.medianMs < fastMs,
      };
    }),
    ...cases.flatMap(({ name, stacRatio }) =>
      stacRatio === null
        ? []
        : target(`first page, STAC / OData: ${name}`, stacRatio, { max: 1.5 }),
    ),
    target('slowest count, exact or an estimate, ms', slowestCountMs, { max: 1_000 }),
    target('index, bytes per product', bytes, { max: 1_000 }),
    target('peak memory of the server, MB', inMegabytes(large?.serverPeakBytes ?? null), {
      max: 300,
    }),
  ];
}

/** Formats small and large side by side. */
function renderCompared(
  title: string,
  cases: readonly CaseFigures[],
  pick: (one: CaseFigures) => Compared | undefined,
): string {
  const columns = (['small', 'large'] as const).flatMap((size): Column<CaseFigures>[] => [
    // Shown because a page with fewer products is faster.
    [`found, ${size}`, (one) => pick(one)?.[size].medianFound ?? null],
    ['ms', (one) => pick(one)?.[size].medianMs ?? null, 2],
    ['p95', (one) => pick(one)?.[size].p95Ms ?? null, 2],
  ]);
  return renderTable(cases, [[title, ({ name }) => name], ...columns]);
}
