/** Screen of the interactive demo: addresses, past day, incoming notifications, example queries. */

import { shellText } from '../../console/page/browser/texts.ts';
import { readSubscriptionCoverage } from '../../domain/coverage.ts';
import { counted, countText } from '../../domain/formats.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import { followLog } from '../../domain/streams.ts';
import { printable } from '../../domain/text.ts';
import { hourUs } from '../../domain/time-units.ts';
import { parseFilter } from '../../filter/parse.ts';
import { asCalled } from '../called-as.ts';
import { stripLegend, stripLines } from '../hour-strip.ts';
import { type Io, pause } from '../io.ts';
import { notificationCells } from '../notification-output.ts';
import { painter, shorten, widthOf } from '../output.ts';
import { writeProducts } from '../product-output.ts';
import { demoFilter, demoName, demoQueryFlags } from './account.ts';
import type { DemoContext, DemoFlags } from './context.ts';
import { waitForIndex } from './report.ts';
import { showSummaries } from './summaries.ts';

/** Number of notifications after which a query by area, and summaries are shown. */
const areaQueryAfter = 8;
const summariesAfter = 16;

const pollMs = 150;

/** Start of the last column of a notification. */
const productColumn = 43;

/** Prints the first lines of the screen. */
export function showIntro(io: Io, { pull }: DemoFlags): void {
  const paint = painter(io, io.stdout);
  const what = pull
    ? `a receiver reads the queue of a sandbox catalogue.
Starting the receiver, without a certificate and without an open port …`
    : `a sandbox catalogue pushes to a receiver, over real HTTPS.
Creating a temporary certificate authority and starting the receiver …`;
  io.stdout.write(`${paint('bold', 'earshot demo')}: ${what}\n`);
}

/** Prints notifications as they are stored, until all are published or the user stops the demo. */
export async function showArrivals(
  io: Io,
  demo: DemoContext,
  { faults }: Pick<DemoFlags, 'faults'>,
): Promise<void> {
  showAddresses(io, demo);
  await showPast(io, demo);
  const paint = painter(io, io.stdout);
  const atStop = faults ? 'recovers lost notifications and ends the demo' : 'ends the demo';
  io.stdout.write(`Ctrl-C ${atStop}.

${paint('dim', '    #  event     place              delay  product')}
`);
  const { receiver, sandbox, past } = demo;
  const stop = new AbortController();
  const signal = AbortSignal.any([io.signal, stop.signal]);
  let isPublished = false;
  const note = () => {
    isPublished = true;
  };
  sandbox.finished.then(note, note);
  const wait = async () => {
    // Reads the log once more after the last notification was published.
    if (isPublished) stop.abort();
    await pause(pollMs, signal);
  };
  const log = receiver.store;
  let count = 0;
  let isMissing = past !== null;
  for await (const row of followLog({ log, afterPosition: past?.stored ?? 0, wait, signal })) {
    if (row.source === 'reconcile') {
      if (isMissing) isMissing = !(await showRecovered(io, demo));
      continue;
    }
    io.stdout.write(`${await arrival(io, demo, row)}\n`);
    count += 1;
    if (count === areaQueryAfter) await showAreaQuery(io, demo);
    if (count === summariesAfter) await showNewestSummaries(io, demo);
  }
  if (isPublished) await sandbox.finished;
}

/** Prints the last lines of the screen. */
export async function showFarewell(io: Io, { receiver, sandbox }: DemoContext): Promise<void> {
  const { notifications, duplicates, quarantined } = await receiver.store.counts();
  const stored = painter(io, io.stdout)('bold', `${countText(notifications)} notifications stored`);
  io.stdout.write(`
${stored}, ${sandbox.totals().delivered} of them during the demo.
${duplicates} duplicates detected, ${quarantined} in quarantine.
${asCalled('Next: set up a receiver on your own host: `earshot setup`', io)}
`);
}

function showAddresses(io: Io, { receiver, sandbox, folder }: DemoContext): void {
  const paint = painter(io, io.stdout);
  const { url, consoleUrl } = receiver;
  io.stdout.write(`  web page  ${paint('bold', `${consoleUrl}/`)}  (open it in a browser)
${url === null ? '' : `  receiver  ${paint('cyan', `${url}/notifications/${demoName}`)}\n`}  sandbox   ${paint('cyan', sandbox.controlUrl)}  (observe and control it: /totals /events /subscriptions)

The catalogue publishes products of all missions worldwide. Only those that match the filter arrive.
All commands work on the demo's data in its folder. In another terminal:
  $ ${paint('bold', `cd ${shellText(folder)}`)}
${asCalled(
  `  $ earshot status
  $ earshot query products ${demoQueryFlags}
  $ earshot query --event deleted
  $ earshot tail`,
  io,
)}

`);
}

/** Prints the coverage of the past day, in which an hour is missing. */
async function showPast(io: Io, { receiver, past }: DemoContext): Promise<void> {
  if (past === null) return;
  const { stored, missing } = past;
  const { lines, legend } = await strip(io, receiver);
  io.stdout.write(`A simulated past day: ${counted(stored, 'notification')} stored, ${countText(missing)} of one hour missing.
${lines}
${legend}
The receiver compares its log with the catalogue, for the first time after 30 seconds.
`);
}

/** Prints the coverage once nothing is missing; resolves with false before. */
async function showRecovered(io: Io, { receiver, past }: DemoContext): Promise<boolean> {
  const { lines, legend, missing } = await strip(io, receiver);
  if (missing > 0) return false;
  const found = counted(past?.missing ?? 0, 'missing notification');
  io.stdout.write(`\nThe comparison found and fetched ${found}:\n${lines}\n${legend}\n\n`);
  return true;
}

/** Returns the hours of the first subscription, as `earshot coverage` shows them. */
async function strip(io: Io, { store: { completeness } }: Pick<DemoContext['receiver'], 'store'>) {
  const nowUs = io.nowUs();
  const window = { sinceUs: nowUs - 25 * hourUs, untilUs: nowUs, nowUs };
  const all = await readSubscriptionCoverage(completeness, window);
  const hours = all.find(({ subscription }) => subscription === demoName)?.hours ?? [];
  const paint = painter(io, io.stdout);
  const missing = all.reduce((sum, one) => sum + one.missing, 0);
  const lines = stripLines(hours, paint).join('\n');
  return { lines, legend: `  ${stripLegend(hours, paint)}`, missing };
}

async function arrival(io: Io, { receiver }: DemoContext, row: NotificationRow): Promise<string> {
  const paint = painter(io, io.stdout);
  const cells = await notificationCells(row, receiver.store);
  const delayMs = (row.receivedAtUs - (row.notificationDateUs ?? row.receivedAtUs)) / 1000;
  const colour = { deleted: 'red', modified: 'yellow' } as const;
  return [
    paint('dim', String(row.position).padStart(5)),
    paint(
      row.event in colour ? colour[row.event as keyof typeof colour] : 'green',
      row.event.padEnd(8),
    ),
    paint('cyan', shorten(cells.place ?? 'no footprint', 16).padEnd(16)),
    paint('dim', `${Math.max(0, Math.round(delayMs))} ms`.padStart(6)),
    shorten(
      printable(row.productName ?? row.productId),
      Math.max(12, widthOf(io.stdout) - productColumn),
    ),
  ].join('  ');
}

async function showNewestSummaries(io: Io, { receiver }: DemoContext): Promise<void> {
  const limit = 3;
  const command = asCalled(`$ earshot query summaries --limit ${limit}`, io);
  const heading = `${painter(io, io.stdout)('bold', command)}  # by the sandbox's model`;
  await showSummaries(io, receiver, { limit, heading });
}

async function showAreaQuery(io: Io, { receiver: { products } }: DemoContext): Promise<void> {
  const flags = `products ${demoQueryFlags} --limit 5`;
  const command = painter(io, io.stdout)('bold', asCalled(`$ earshot query ${flags}`, io));
  io.stdout.write(`\n${command}  # products by area\n`);
  await waitForIndex(products);
  const filter = parseFilter(demoFilter).tree;
  const query = { entity: 'Products', filter, limit: 5 } as const;
  await writeProducts(io.stdout, 'table', products.find(query));
  io.stdout.write('\n');
}
