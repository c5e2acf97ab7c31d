/** Query benchmark: first pages and counts, on a small and on a large index. */
import { join } from 'node:path';
import {
  alignTable,
  figure,
  hasFaults,
  inMegabytes,
  megabytes,
  renderMachine,
  renderTargets,
  type TargetResult,
  target,
} from './figures.ts';
import {
  type BenchIo,
  type Benchmark,
  flag,
  integer,
  integerList,
  runBenchmark,
  word,
} from './harness.ts';
import { prepareQueryData } from './query-data.ts';
import {
  type CaseFigures,
  type Compared,
  measureQueries,
  openSubject,
  type QuerySubject,
} from './query-measure.ts';
import { createEndpoint } from './servers.ts';

const options = {
  rows: integerList('A,B', 'products of the small and the large index', {
    ...{ default: '10000,1000000', quick: '2000,20000', max: 100_000_000, count: 2 },
  }),
  values: integer('N', 'values per kind of query', {
    ...{ default: 50, quick: 10, min: 1, max: 10_000 },
  }),
  dir: word(
    'FOLDER',
    "folder for the data, 3 GB per million products (default: the system's temporary folder)",
  ),
  keep: flag('keep the data in products-A and products-B, and reuse existing data'),
  quick: flag('10 values; --rows 2000,20000 by default'),
  check: flag('exit 1 if a target is missed or a query scans the table'),
};

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(queries, argv, io);
}

const queries: Benchmark<typeof options> = {
  command: 'npm run bench:query --',
  about: `Generates products at the catalogue's rate of 32,000 a day, indexes them, and measures queries on a
small and on a large index: the first page of 50 and the count, on the index itself and over HTTP.
Each kind of query runs with many values, after a warm-up with others.`,
  options,
  closing: `Exit code: 0 done, 1 failed or (--check) a target was missed, 2 invalid usage.

Examples:
  npm run bench:query -- --quick
  npm run bench:query -- --rows 10000,10000000     forty minutes, 30 GB
  npm run bench:query -- --dir /mnt/disk --keep --json > queries.json`,
  refuse: ({ keep, dir }) => (keep && dir === undefined ? '--keep requires --dir' : null),
  async measure({ rows: [smallRows = 0, largeRows = 0], values, keep, check }, context) {
    const { cleanup, progress, folder, about } = context;
    const temporary = cleanup.temporaryFolder(folder);
    const setting = { endpoint: await createEndpoint(temporary), cleanup };
    const prepare = (rows: number) =>
      prepareQueryData(join(keep ? folder : temporary, `products-${rows}`), rows, progress);
    const data = { small: await prepare(smallRows), large: await prepare(largeRows) };
    const smallSubject = await openSubject(setting, data.small);
    const largeSubject = await openSubject(setting, data.large);
    const cases = await measureQueries(smallSubject, largeSubject, values, progress);
    const [small, large] = [sizeOf(smallSubject), sizeOf(largeSubject)];
    await largeSubject.close();
    await smallSubject.close();
    const targets = targetsOf(cases, large);
    const sizes = [String(smallRows), String(largeRows)];
    const intro = `Each kind of query with ${values} values after a warm-up, at both sizes in turn; first pages of 50 with records; HTTP over one connection to a separate server.`;
    return {
      report: { ...about, values, small, large, cases, targets },
      text: [
        renderMachine(about.machine, intro),
        renderData([small, large]),
        renderTimes('First page, newest first', cases, sizes, ['page', 'httpPage']),
        renderTimes('Count', cases, sizes, ['count', 'httpCount']),
        renderStac(cases, largeRows),
        renderOrders(cases, sizes),
        renderPlans(cases, largeRows),
        renderTargets(targets),
        `Repeat: ${about.command}`,
      ],
      hasFailed: hasFaults({ targets }, { check }),
    };
  },
};

/** Returns the contents of a data folder, and the memory of its server. */
function sizeOf({ data, state: { tombstones }, serverPeakBytes }: QuerySubject) {
  return { data, tombstones, serverPeakResidentBytes: serverPeakBytes() };
}

/** A faster first page over HTTP meets the target regardless of the ratio. */
const fastMs = 25;
const ratioMax = 4;

/** Compares first pages, counts, plans and sizes of the large index with the targets. */
function targetsOf(
  cases: readonly CaseFigures[],
  { data, serverPeakResidentBytes }: ReturnType<typeof sizeOf>,
): TargetResult[] {
  const scans = cases.reduce((sum, { plans }) => sum + plans.pageScans + plans.countScans, 0);
  const slowestCountMs = Math.max(...cases.map(({ httpCount }) => httpCount.large.maxMs));
  return [
    ...cases.map(({ name, httpPage: { small, large } }): TargetResult => {
      const value = large.medianMs / small.medianMs;
      return {
        name: `first page over HTTP, large / small: ${name}`,
        bound: `at most ${ratioMax}, or under ${fastMs} ms`,
        value,
        met: value <= ratioMax || large.medianMs < fastMs,
      };
    }),
    ...cases.flatMap(({ name, stac }) =>
      stac === null ? [] : target(`first page, STAC / OData: ${name}`, ratioOf(stac), { max: 1.5 }),
    ),
    target('slowest count over HTTP, exact or an estimate, ms', slowestCountMs, { max: 1_000 }),
    target('index, bytes per product', data.indexBytes / data.products, { max: 1_000 }),
    target('peak memory of the server, MB', inMegabytes(serverPeakResidentBytes), { max: 300 }),
    target('first pages and counts that scan the large table', scans, { max: 0 }),
  ];
}

function renderData(sizes: readonly ReturnType<typeof sizeOf>[]): string {
  const header = [
    ...['products', 'deleted', 'notifications', 'fill s', 'index s', 'indexed/s', 'log MB'],
    ...['index MB', 'peak MB', 'server peak MB'],
  ];
  const rows = sizes.map(({ data, tombstones, serverPeakResidentBytes }) => [
    ...[data.products, tombstones, data.notifications].map(String),
    ...[figure(data.fillSeconds, 1), figure(data.indexSeconds, 1)],
    figure(data.notificationsPerSecond),
    ...[data.logBytes, data.indexBytes, data.peakResidentBytes, serverPeakResidentBytes].map(
      megabytes,
    ),
  ]);
  return [
    alignTable([header, ...rows]),
    'Fill and index: measured when the data was created, with nothing else of this program running.',
  ].join('\n');
}

type Way = 'page' | 'httpPage' | 'count' | 'httpCount';

/** Formats small and large side by side, directly on the index and over HTTP. */
function renderTimes(
  title: string,
  cases: readonly CaseFigures[],
  sizes: readonly string[],
  ways: readonly [index: Way, http: Way],
): string {
  const header = ['index', 'HTTP'].flatMap((name) => [
    ...sizes.flatMap((size) => [`${name} ${size}: ms`, 'p95']),
    'ratio',
  ]);
  const rows = cases.map((one) => {
    // Shown because a page with fewer products is faster.
    const { small, large } = one[ways[0]];
    const found = [small, large].map(({ medianFound }) => figure(medianFound));
    return [one.name, ...found, ...ways.flatMap((way) => comparedCells(one[way]))];
  });
  return alignTable([[title, ...sizes.map((size) => `found in ${size}`), ...header], ...rows]);
}

function comparedCells({ small, large }: Compared): string[] {
  return [
    ...[small.medianMs, small.p95Ms, large.medianMs, large.p95Ms].map((ms) => figure(ms, 2)),
    figure(large.medianMs / small.medianMs, 1),
  ];
}

type InTurn = NonNullable<CaseFigures['stac']>;

function ratioOf({ odata, stac }: InTurn): number {
  return stac.medianMs / odata.medianMs;
}

function renderStac(cases: readonly CaseFigures[], products: number): string {
  const rows = cases.flatMap(({ name, stac: both }) => {
    if (both === null) return [];
    const { odata, stac } = both;
    const times = [odata.medianMs, odata.p95Ms, stac.medianMs, stac.p95Ms];
    return [[name, ...times.map((ms) => figure(ms, 2)), figure(ratioOf(both), 2)]];
  });
  const title = `First page over HTTP, ${products}`;
  return alignTable([[title, 'OData: ms', 'p95', 'STAC: ms', 'p95', 'ratio'], ...rows]);
}

function renderOrders(cases: readonly CaseFigures[], sizes: readonly string[]): string {
  const rows = cases.flatMap(({ name, orders }) =>
    orders.map(({ order, ...compared }) => [
      `${name}, ${order.by} ${order.direction}`,
      ...comparedCells(compared),
    ]),
  );
  const header = [...sizes.flatMap((size) => [`${size}: ms`, 'p95']), 'ratio'];
  return alignTable([['First page of the index, other orders', ...header], ...rows]);
}

function renderPlans(cases: readonly CaseFigures[], products: number): string {
  const header = ['walks', 'longest', 'page scans', 'count scans', 'narrowed by'];
  const rows = cases.map(({ name, plans }) => [
    name,
    String(plans.walks),
    `${figure(plans.longestWalkShare * 100, 2)} %`,
    String(plans.pageScans),
    String(plans.countScans),
    Object.entries(plans.narrowedBy)
      .map(([index, count]) => `${index} ${count}`)
      .join(', '),
  ]);
  return [
    alignTable([[`Plans, ${products}`, ...header], ...rows]),
    '',
    'A walk reads products in order until the page is full; beyond a tenth of all products it counts as a scan.',
    'A count without an index is a scan.',
  ].join('\n');
}
