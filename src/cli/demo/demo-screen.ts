/** What a newcomer sees: what starts, where it listens, notifications arriving, how to look further. */
import { z } from 'zod';
import { followLog } from '../../domain/follow-log.ts';
import type { LogCounts, NotificationRow } from '../../domain/ports.ts';
import { printable } from '../../domain/printable.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { writeRows } from '../notification-output.ts';
import { pause } from '../until-aborted.ts';
import type { DemoWorld } from './demo-world.ts';
import { placeOf } from './place.ts';

/** After so many notifications, a first query is shown. */
const firstQueryAfter = 12;
const pollMs = 150;

const bodySchema = z.looseObject({ value: z.unknown() });

/** The first thing on the screen. */
export function showIntro(io: Io): void {
  const paint = painter(io, io.stdout);
  io.stdout.write(`${paint('bold', 'earshot demo')}: a sandbox catalogue pushes to a receiver, over real HTTPS.
Making a throw-away certificate authority and starting the receiver …
`);
}

/** Shows notifications as they are stored, until all are published or the user ends it. */
export async function showArrivals(io: Io, world: DemoWorld): Promise<void> {
  showAddresses(io, world);
  const finished = new AbortController();
  const publishing = world.sandbox.finished.finally(() => finished.abort());
  const stop = new AbortController();
  const signal = AbortSignal.any([io.signal, stop.signal]);
  const wait = async () => {
    // Looks once more after the last one was published, then stops.
    if (finished.signal.aborted) stop.abort();
    await pause(pollMs, signal);
  };
  const log = world.receiver.store;
  let count = 0;
  for await (const row of followLog({ log, afterPosition: 0, wait, signal })) {
    io.stdout.write(`${await arrival(io, world, row)}\n`);
    count += 1;
    if (count === firstQueryAfter) await showFirstQuery(io, world);
  }
  if (finished.signal.aborted) await publishing;
}

/** The last thing on the screen. */
export function showFarewell(
  io: Io,
  { notifications, duplicates, quarantined }: LogCounts,
  maintained: number,
): void {
  const stored = painter(io, io.stdout)('bold', `${notifications} notifications stored`);
  io.stdout.write(`
${stored}, ${duplicates} duplicates recognised, ${quarantined} in quarantine.
Maintenance looked at ${maintained} subscriptions and found nothing to do.
Next: the README shows how to run the receiver on a host of your own.
`);
}

function showAddresses(io: Io, { receiver, dataDir, sandbox }: DemoWorld): void {
  const paint = painter(io, io.stdout);
  const command = (text: string) => paint('bold', `EARSHOT_DATA_DIR=${dataDir} npm run -s ${text}`);
  io.stdout.write(`  receiver  ${paint('cyan', `${receiver.url}/notifications/demo`)}
  sandbox   ${paint('cyan', sandbox.controlUrl)}  (watch and steer it: /totals /record /subscriptions)
  data      ${paint('cyan', dataDir)}  (removed at the end)

Look further from another terminal:
  ${command('query -- --event deleted')}
  ${command('earshot -- tail')}
Ctrl-C ends the demo.

${paint('dim', '    #  event     place             delay  product')}
`);
}

async function arrival(io: Io, { receiver }: DemoWorld, row: NotificationRow): Promise<string> {
  const paint = painter(io, io.stdout);
  const body: unknown = JSON.parse(Buffer.from(await receiver.store.body(row.position)).toString());
  const value = bodySchema.safeParse(Array.isArray(body) ? body[0] : body).data?.value;
  const delayMs = (row.receivedAtUs - (row.notificationDateUs ?? row.receivedAtUs)) / 1000;
  const colour = { deleted: 'red', modified: 'yellow' } as const;
  return [
    paint('dim', String(row.position).padStart(5)),
    paint(
      row.event in colour ? colour[row.event as keyof typeof colour] : 'green',
      row.event.padEnd(8),
    ),
    paint('cyan', placeOf(value).padEnd(14)),
    paint('dim', `${Math.max(0, Math.round(delayMs))} ms`.padStart(6)),
    printable(row.productName ?? row.productId),
  ].join('  ');
}

async function showFirstQuery(io: Io, { receiver }: DemoWorld): Promise<void> {
  const command = painter(io, io.stdout)('bold', '$ npm run query -- --limit 5');
  io.stdout.write(`\n${command}   what is in the store by now:\n`);
  await writeRows(io.stdout, 'table', receiver.store.find({ limit: 5 }));
  io.stdout.write('\n');
}
