/** Screen of the interactive demo: addresses, incoming notifications, example queries. */

import type { NotificationRow } from '../../domain/ports.ts';
import { isIdentified, type ProductCells } from '../../domain/product-cells.ts';
import { followLog } from '../../domain/streams.ts';
import { printable } from '../../domain/text.ts';
import { asCalled } from '../called-as.ts';
import { type Io, pause } from '../io.ts';
import { notificationCells, writeNotifications } from '../notification-output.ts';
import { painter, shorten, widthOf } from '../output.ts';
import { writeProducts } from '../product-output.ts';
import { demoFilter, demoQueryFlags, demoTree } from './account.ts';
import type { DemoContext } from './context.ts';
import { waitForIndex } from './report.ts';
import { showSummaries } from './summaries.ts';

/** Number of notifications after which a query of the log, a query by area, and summaries are shown. */
const logQueryAfter = 6;
const areaQueryAfter = 12;
const summariesAfter = 16;

const pollMs = 150;

/** Start of the last column of a notification. */
const productColumn = 54;

/** Prints the first lines of the screen. */
export function showIntro(io: Io, isPull: boolean): void {
  const paint = painter(io, io.stdout);
  const what = isPull
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
  { faults }: { faults?: true },
): Promise<void> {
  showAddresses(io, demo);
  const paint = painter(io, io.stdout);
  const atStop = faults ? 'recovers lost notifications and ends the demo' : 'ends the demo';
  io.stdout.write(`Ctrl-C ${atStop}.

${paint('dim', '    #  of events  event     place               delay  product')}
`);
  const finished = new AbortController();
  const publishing = demo.sandbox.finished.finally(() => finished.abort());
  const stop = new AbortController();
  const signal = AbortSignal.any([io.signal, stop.signal]);
  const wait = async () => {
    // Reads the log once more after the last notification was published.
    if (finished.signal.aborted) stop.abort();
    await pause(pollMs, signal);
  };
  const log = demo.receiver.store;
  let count = 0;
  for await (const row of followLog({ log, afterPosition: 0, wait, signal })) {
    io.stdout.write(`${await arrival(io, demo, row)}\n`);
    count += 1;
    if (count === logQueryAfter) await showLogQuery(io, demo);
    if (count === areaQueryAfter) await showAreaQuery(io, demo);
    if (count === summariesAfter) await showNewestSummaries(io, demo);
  }
  if (finished.signal.aborted) await publishing;
}

/** Prints the last lines of the screen. */
export async function showFarewell(
  io: Io,
  { receiver, sandbox }: DemoContext,
  maintained: number | null,
): Promise<void> {
  const { notifications, duplicates, quarantined } = await receiver.store.counts();
  const { events } = sandbox.holdings();
  const stored = painter(io, io.stdout)('bold', `${notifications} notifications stored`);
  io.stdout.write(`
${stored}, ${duplicates} duplicates detected, ${quarantined} in quarantine.
The catalogue had ${events} events; ${sandbox.totals().published} of them matched the filter.
${maintained === null ? '' : `Maintenance checked ${maintained} subscriptions: no changes needed.\n`}Next: see the README for running the receiver on your own host.
`);
}

function showAddresses(io: Io, { receiver, dataDir, sandbox, settingsFile }: DemoContext): void {
  const paint = painter(io, io.stdout);
  io.stdout.write(`  web page  ${paint('bold', `${receiver.consoleUrl}/`)}  (open it in a browser)
${receiver.url === null ? '' : `  receiver  ${paint('cyan', `${receiver.url}/notifications/demo`)}\n`}  sandbox   ${paint('cyan', sandbox.controlUrl)}  (observe and control it: /totals /record /subscriptions)
  queries   ${paint('cyan', `${receiver.consoleUrl}/odata/v1/Products`)}
  data      ${paint('cyan', dataDir)}  (removed at the end)
  filter    ${paint('cyan', demoFilter)}

The catalogue publishes products of all missions worldwide. Only those that match the filter arrive.
All commands work on the demo's data. Paste this line into another terminal, in this folder:
  ${paint('bold', `set -a; . ${settingsFile}; set +a`)}
Then, for example:
${asCalled(
  `  $ earshot status
  $ earshot query products ${demoQueryFlags}
  $ earshot query --event deleted
  $ earshot tail`,
  io,
)}
`);
}

async function arrival(
  io: Io,
  { receiver, sandbox }: DemoContext,
  row: NotificationRow,
): Promise<string> {
  const paint = painter(io, io.stdout);
  const cells = await notificationCells(row, receiver.store);
  const delayMs = (row.receivedAtUs - (row.notificationDateUs ?? row.receivedAtUs)) / 1000;
  const colour = { deleted: 'red', modified: 'yellow' } as const;
  return [
    paint('dim', String(row.position).padStart(5)),
    paint('dim', String(sandbox.holdings().events).padStart(9)),
    paint(
      row.event in colour ? colour[row.event as keyof typeof colour] : 'green',
      row.event.padEnd(8),
    ),
    paint('cyan', (cells.short.place ?? 'no footprint').padEnd(16)),
    paint('dim', `${Math.max(0, Math.round(delayMs))} ms`.padStart(6)),
    productText(row, cells, widthOf(io.stdout) - productColumn),
  ].join('  ');
}

/** Returns the full name if it fits; otherwise mission, type and tile. */
function productText(row: NotificationRow, cells: ProductCells, width: number): string {
  const name = printable(row.productName ?? row.productId);
  const { mission, type, tile } = cells;
  if (name.length <= width || !isIdentified(cells)) return shorten(name, Math.max(12, width));
  return printable([mission, type, tile].filter((cell) => cell !== null).join('  '));
}

async function showLogQuery(io: Io, { receiver }: DemoContext): Promise<void> {
  const command = painter(io, io.stdout)('bold', asCalled('$ earshot query --limit 5', io));
  io.stdout.write(`\n${command}   the last notifications:\n`);
  await writeNotifications(io.stdout, 'table', receiver.store.find({ limit: 5 }), receiver.store);
  io.stdout.write('\n');
}

async function showNewestSummaries(io: Io, { receiver }: DemoContext): Promise<void> {
  const limit = 3;
  const command = asCalled(`$ earshot query summaries --limit ${limit}`, io);
  const heading = `${painter(io, io.stdout)('bold', command)}   summaries by the sandbox's model:`;
  await showSummaries(io, receiver, { limit, heading });
}

async function showAreaQuery(io: Io, { receiver: { products } }: DemoContext): Promise<void> {
  const flags = `products ${demoQueryFlags} --limit 5`;
  const command = painter(io, io.stdout)('bold', asCalled(`$ earshot query ${flags}`, io));
  io.stdout.write(`\n${command}   products by area:\n`);
  await waitForIndex(products);
  const query = { entity: 'Products', filter: demoTree(), limit: 5 } as const;
  await writeProducts(io.stdout, 'table', products.find(query));
  io.stdout.write('\n');
}
