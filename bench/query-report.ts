/** The result of the benchmark of queries as one object and as text for people. */
import type { Machine } from './machine.ts';
import type { CaseFigures, Compared, QueryFigures, SizeFigures } from './query-measure.ts';
import { machineLines, renderTargets } from './report.ts';
import { alignTable, figure, megabytes } from './table.ts';
import type { TargetResult } from './targets.ts';

/** What `--json` prints. Times in ms, sizes in bytes. */
export interface QueryReport extends QueryFigures {
  readonly machine: Machine;
  /** The command that repeats this run. */
  readonly command: string;
  /** Different values of each kind of query. */
  readonly values: number;
  readonly targets: readonly TargetResult[];
}

/** The report as text, ending with a line break. */
export function renderQueryReport(report: QueryReport): string {
  const { machine, values, small, large, cases, targets, command } = report;
  const sizes = [String(small.data.products), String(large.data.products)];
  const about = `Each kind of query with ${values} values after a warm-up, at both sizes in turn; first pages of 50 with records; HTTP over one connection to a server of its own.`;
  const parts = [
    [...machineLines(machine), about].join('\n'),
    renderData([small, large]),
    renderTimes('First page, newest first', cases, sizes, [
      { name: 'index', pick: ({ page }) => page },
      { name: 'HTTP', pick: ({ httpPage }) => httpPage },
    ]),
    renderTimes('Count', cases, sizes, [
      { name: 'index', pick: ({ count }) => count },
      { name: 'HTTP', pick: ({ httpCount }) => httpCount },
    ]),
    renderOrders(cases, sizes),
    renderPlans(cases, sizes[1] ?? ''),
    renderTargets(targets),
    `Repeat: ${command}`,
  ];
  return `${parts.join('\n\n')}\n`;
}

function renderData(sizes: readonly SizeFigures[]): string {
  const rows = sizes.map(({ data, tombstones, serverPeakResidentBytes }) => [
    String(data.products),
    String(tombstones),
    String(data.notifications),
    figure(data.fillSeconds, 1),
    figure(data.indexSeconds, 1),
    figure(data.notificationsPerSecond),
    megabytes(data.logBytes),
    megabytes(data.indexBytes),
    megabytes(data.peakResidentBytes),
    megabytes(serverPeakResidentBytes),
  ]);
  const header = [
    ...['products', 'deleted', 'notifications', 'fill s', 'index s', 'indexed/s', 'log MB'],
    ...['index MB', 'peak MB', 'server peak MB'],
  ];
  return [
    alignTable([header, ...rows]),
    'Fill and index: as measured when the data was made, with nothing else of this program running.',
  ].join('\n');
}

interface Column {
  readonly name: string;
  readonly pick: (figures: CaseFigures) => Compared;
}

/** Small and large beside each other, for each way of asking. */
function renderTimes(
  title: string,
  cases: readonly CaseFigures[],
  sizes: readonly string[],
  columns: readonly Column[],
): string {
  const header = columns.flatMap(({ name }) => [
    ...sizes.flatMap((size) => [`${name} ${size}: ms`, 'p95']),
    'ratio',
  ]);
  const rows = cases.map((one) => [
    one.name,
    ...foundCells(columns[0]?.pick(one)),
    ...columns.flatMap(({ pick }) => comparedCells(pick(one))),
  ]);
  return alignTable([[title, ...sizes.map((size) => `found in ${size}`), ...header], ...rows]);
}

/** A page with fewer products is faster for that alone. */
function foundCells(compared: Compared | undefined): string[] {
  const { small, large } = compared ?? {};
  return [figure(small?.medianFound ?? null), figure(large?.medianFound ?? null)];
}

function comparedCells({ small, large }: Compared): string[] {
  return [
    figure(small.medianMs, 2),
    figure(small.p95Ms, 2),
    figure(large.medianMs, 2),
    figure(large.p95Ms, 2),
    figure(large.medianMs / small.medianMs, 1),
  ];
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

function renderPlans(cases: readonly CaseFigures[], size: string): string {
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
    alignTable([
      [`Plans, ${size}`, 'walks', 'longest', 'page scans', 'count scans', 'narrowed by'],
      ...rows,
    ]),
    '',
    'A walk reads products in their order until the page is full; past a tenth of them it is a scan.',
    'A count that no index narrows is one.',
  ].join('\n');
}
