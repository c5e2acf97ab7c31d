/** Screen of the interactive demo: addresses, past day, incoming notifications, example queries and summaries. */

import { type Io, pause } from '../../core/cli/io.ts';
import { asCalled, painter, shorten, widthOf, wrapText } from '../../core/cli/output.ts';
import { shellText } from '../../core/page/browser/texts.ts';
import { hourUs } from '../../core/terms/dates.ts';
import { followLog, type NotificationRow } from '../../core/terms/ports.ts';
import { counted, countText, printable } from '../../core/terms/text.ts';
import { parseFilter } from '../../filter/parse.ts';
import { readSubscriptionCoverage } from '../coverage/coverage.ts';
import { stripLegend, stripLines } from '../coverage/draw-hours.ts';
import { notificationCells } from '../notifications/output.ts';
import { writeProducts } from '../products/output.ts';
import { openSummaries, waitForIndex } from './count.ts';
import {
  type DemoContext,
  type DemoFlags,
  demoFilter,
  demoName,
  demoQueryFlags,
} from './open-demo.ts';

/** Number of notifications after which a query by area, and summaries are shown. */
const areaQueryAfter = 8;
const summariesAfter = 16;

const pollMs = 150;

/** Start of the product name of a notification. */
const productColumn = 25;

/** Prints notifications as they are stored, until all are published or the user stops the demo. */
export async function showArrivals(
  io: Io,
  demo: DemoContext,
  { faults }: Pick<DemoFlags, 'faults'>,
): Promise<void> {
  const { receiver, sandbox, past } = demo;
  showAddresses(io, demo);
  if (past !== null) {
    io.stdout.write(`A simulated past day: ${counted(past.stored, 'notification')} stored, ${countText(past.missing)} of one hour missing.
The receiver compares its log with the catalogue, for the first time after 30 seconds.
`);
  }
  const atStop = faults ? 'recovers lost notifications and ends the demo' : 'ends the demo';
  const titles = painter(io, io.stdout)('dim', '    #  event      delay  product');
  io.stdout.write(`Ctrl-C ${atStop}.\n\n${titles}\n`);
  const stop = new AbortController();
  const signal = AbortSignal.any([io.signal, stop.signal]);
  let isCompared = past === null;
  const wait = async () => {
    if (!isCompared) isCompared = await showComparison(io, demo);
    // Reads the log once more after the last notification was published.
    if (demo.isPublished()) stop.abort();
    await pause(pollMs, signal);
  };
  const log = receiver.store;
  let count = 0;
  for await (const row of followLog({ log, afterPosition: past?.stored ?? 0, wait, signal })) {
    if (row.source === 'reconcile') continue;
    io.stdout.write(`${await arrival(io, demo, row)}\n`);
    count += 1;
    if (count === areaQueryAfter) await showAreaQuery(io, demo);
    if (count === summariesAfter) await showNewestSummaries(io, demo);
  }
  if (demo.isPublished()) await sandbox.finished;
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
  const endpoint = url === null ? '' : `  receiver  ${url}/notifications/${demoName}\n`;
  const commands = `  $ earshot status
  $ earshot query products ${demoQueryFlags}
  $ earshot query --event deleted
  $ earshot tail`;
  io.stdout.write(`  web page  ${paint('bold', `${consoleUrl}/`)}  (open it in a browser)
${endpoint}  sandbox   ${sandbox.controlUrl}  (observe and control it: /totals /events /subscriptions)

The catalogue publishes products of all missions worldwide. Only those that match the filter arrive.
All commands work on the demo's data in its folder. In another terminal:
  $ ${paint('bold', `cd ${shellText(folder)}`)}
${asCalled(commands, io)}

`);
}

/** Shows the hours of the first subscription, as `earshot coverage` does, once all are compared. Returns true then. */
async function showComparison(io: Io, { receiver: { store } }: DemoContext): Promise<boolean> {
  const nowUs = io.nowUs();
  const window = { sinceUs: nowUs - 25 * hourUs, untilUs: nowUs, nowUs };
  const all = await readSubscriptionCoverage(store.completeness, window);
  if (all.some(({ unknownHours }) => unknownHours > 0)) return false;
  const hours = all.find(({ subscription }) => subscription === demoName)?.hours ?? [];
  const paint = painter(io, io.stdout);
  const text = [...stripLines(hours, paint), `  ${stripLegend(hours, paint)}`].join('\n');
  const recovered = all.reduce((sum, one) => sum + one.recovered, 0);
  const found = counted(recovered, 'missing notification');
  io.stdout.write(`\nThe comparison found and fetched ${found}:\n${text}\n\n`);
  return true;
}

async function arrival(io: Io, { receiver }: DemoContext, row: NotificationRow): Promise<string> {
  const { place } = await notificationCells(row, receiver.store);
  const { event, receivedAtUs, notificationDateUs, productName, productId } = row;
  const delayMs = (receivedAtUs - (notificationDateUs ?? receivedAtUs)) / 1000;
  const colour = event === 'deleted' ? 'red' : event === 'modified' ? 'yellow' : 'green';
  const width = Math.max(12, widthOf(io.stdout) - productColumn);
  const name = shorten(printable(productName ?? productId), width);
  const shown = [
    String(row.position).padStart(5),
    painter(io, io.stdout)(colour, event.padEnd(8)),
    `${Math.max(0, Math.round(delayMs))} ms`.padStart(6),
    name,
  ];
  const fits = place !== null && name.length + 2 + place.length <= width;
  return [...shown, ...(fits ? [place] : [])].join('  ');
}

async function showNewestSummaries(io: Io, demo: DemoContext): Promise<void> {
  const limit = 3;
  const command = asCalled(`$ earshot query summaries --limit ${limit}`, io);
  const heading = `${painter(io, io.stdout)('bold', command)}  # by the sandbox's model`;
  await showSummaries(io, demo, { limit, heading });
}

async function showAreaQuery(io: Io, { receiver: { products } }: DemoContext): Promise<void> {
  const flags = `products ${demoQueryFlags} --limit 5`;
  const command = painter(io, io.stdout)('bold', asCalled(`$ earshot query ${flags}`, io));
  io.stdout.write(`\n${command}  # products by area\n`);
  await waitForIndex(products);
  const filter = parseFilter(demoFilter).tree;
  await writeProducts(io.stdout, 'table', products.find({ entity: 'Products', filter, limit: 5 }));
  io.stdout.write('\n');
}

/** Prints the newest summaries, if there are any, below a heading. */
export async function showSummaries(
  io: Io,
  demo: Pick<DemoContext, 'receiver'>,
  { limit, heading }: { limit: number; heading: string },
): Promise<void> {
  const texts = await openSummaries(io, demo);
  const paint = painter(io, io.stdout);
  const lines: string[] = [];
  for await (const { productName, text } of texts?.find({ state: 'done', limit }) ?? []) {
    if (text === null) continue;
    const name = shorten(printable(productName ?? ''), widthOf(io.stdout));
    const summary = wrapText(printable(text.text), '  ', io.stdout).join('\n');
    lines.push(`${paint('cyan', name)}\n${summary}\n`);
  }
  if (lines.length > 0) io.stdout.write(`\n${heading}\n${lines.join('')}\n`);
}
