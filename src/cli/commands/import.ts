/** `earshot import`: takes over what another data directory has received. */

import { hash } from 'node:crypto';
import { join } from 'node:path';
import { dataSections, loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { type CatalogueEvent, coversEvent } from '../../domain/completeness.ts';
import { readNotifications } from '../../domain/notification.ts';
import type { Delivery, Quarantine, Receipt } from '../../domain/ports.ts';
import { decodeStored } from '../../http/request-body.ts';
import { databaseFileName, inodeOf } from '../../store/engine/database.ts';
import type { DataPlace } from '../../store/engine/disk-limit.ts';
import { recoveredEvent } from '../../store/log/recovered-events.ts';
import { catchUpIndex } from '../../store/products/index-maintenance.ts';
import { openProducts } from '../../store/products/products.ts';
import { openStore, openStoreReader, type Store, type StoreReader } from '../../store/store.ts';
import { createClosers } from '../closers.ts';
import { defineCommand } from '../command.ts';
import type { Io } from '../io.ts';
import { createProgressLine, printJson } from '../output.ts';

export const importCommand = defineCommand('import', {
  description: 'Take over what another data directory has received, such as that of an old host.',
  flags: (command) =>
    command
      .argument('<folder>', 'the other data directory; it is only read')
      .option('--json', 'as one JSON object: notifications stored duplicates quarantined'),
  help: `Beside a running receiver, too. What both have is stored once, so it may be interrupted and run
again. Times of receipt are kept; bodies that were no notifications come along into the quarantine.
An event that the other one had looked up at the catalogue (source reconcile) and that was pushed
here is known already; the product index is brought up to date for that.

Fields of --json: notifications (read there), stored (new here), duplicates (known here already),
quarantined (bodies put into the quarantine here).

Example:
  $ earshot import /var/lib/earshot/from-the-old-host`,
  run: importFrom,
});

async function importFrom(io: Io, { json }: { json?: true }, folder: string): Promise<void> {
  const place = loadConfig(io, dataSections);
  checkFolder(folder, place.dataDir);
  const { stdout, stderr, signal, nowUs } = io;
  const closers = createClosers();
  try {
    const from = openStoreReader(folder);
    closers.add(() => from.close(), 'the other store');
    const to = await openStore({ ...place, nowUs });
    closers.add(() => to.close(), 'the store');
    const pushedHere = openPushedHere(place, signal);
    closers.add(() => pushedHere.close(), 'the index');
    const counts = await importLog(from, to, { stderr, signal, pushedHere });
    if (json) return await printJson(stdout, counts, 'line');
    const { notifications, stored, duplicates, quarantined } = counts;
    const held = quarantined === 0 ? '' : ` ${quarantined} bodies went into the quarantine.`;
    stderr.write(
      `${notifications} notifications read: ${stored} stored, ${duplicates} known already.${held}\n`,
    );
  } finally {
    await closers.closeAll();
  }
}

/** Words of the store speak of our own data directory; this is about the other one. */
function checkFolder(folder: string, dataDir: string): void {
  const refuse = (message: string, advice: string) => new AppError('usage', message, { advice });
  const inode = inodeOf(join(folder, databaseFileName));
  if (inode === -1) {
    throw refuse(
      `There is no ${databaseFileName} in ${folder}.`,
      'Name the folder that holds the other one.',
    );
  }
  if (inode === inodeOf(join(dataDir, databaseFileName))) {
    throw refuse(`${folder} is the data directory itself.`, 'Name the one to take over.');
  }
}

interface ImportCounts {
  /** Read from the other store. */
  notifications: number;
  stored: number;
  duplicates: number;
  quarantined: number;
}

/** So many are stored in one commit, and no more are held in memory. */
const batchMax = 200;

type Context = Pick<Io, 'stderr' | 'signal'> & { pushedHere: ReturnType<typeof openPushedHere> };

type Bodies = Pick<Quarantine, 'quarantined' | 'quarantineEntry'>;

type Target = Pick<Store, 'accept'> & Bodies;

/**
 * An event that the other one looked up, and that was pushed here, is known. Rejects with `cancelled` when the user
 * ends it; what is stored by then stays.
 */
export async function importLog(from: StoreReader, to: Target, io: Context): Promise<ImportCounts> {
  const counts = { notifications: 0, stored: 0, duplicates: 0, quarantined: 0 };
  const held = await bodiesOf(from, { released: false }, io);
  const known = await bodiesOf(to, { released: true }, io);
  const isHeld = new Set(held.map(({ key }) => key));
  const isKnown = new Set(known.map(({ key }) => key));
  const total = (await from.counts()).notifications;
  const progress = createProgressLine(io.stderr);
  const take = createTaker(to, counts, io);
  let lastKey = '';
  for await (const row of from.find({ order: 'oldest' })) {
    endWhenAsked(io);
    counts.notifications += 1;
    const done = counts.notifications;
    if (done % 1_000 === 0 || done === total) progress.show(`${done} of ${total} notifications`);
    const { subscription, receivedAtUs } = row;
    const source = row.source === 'reconcile' ? 'reconcile' : 'push';
    const { bytes: body, encoding } = await from.original(row.position);
    const encoded = encoding === null ? undefined : decodeStored(body, encoding);
    const delivery: Delivery = { body, encoded, subscription, receivedAtUs, source, headers: [] };
    const key = keyOf(delivery);
    // A body that holds other things, too, comes with the quarantine.
    if (isHeld.has(key)) continue;
    // All that can be read of it has been stored when it was put there.
    if (isKnown.has(key)) counts.duplicates += 1;
    // Notifications of one body follow each other: it is taken once.
    else if (key !== lastKey) await take.add(delivery);
    lastKey = key;
  }
  progress.done();
  await take.flush();
  await importQuarantine(from, to, { held, known, counts, io });
  return counts;
}

/** Of equal bodies there are as many afterwards as the other quarantine holds, or more. */
async function importQuarantine(
  from: Bodies,
  to: Target,
  about: { held: HeldBody[]; known: HeldBody[]; counts: ImportCounts; io: Context },
): Promise<void> {
  const { held, known, counts, io } = about;
  const left = new Map<string, number>();
  for (const { key } of known) left.set(key, (left.get(key) ?? 0) + 1);
  const take = createTaker(to, counts, io);
  for (const { id, key } of held) {
    endWhenAsked(io);
    const here = left.get(key) ?? 0;
    left.set(key, here - 1);
    if (here > 0) continue;
    const entry = await from.quarantineEntry(id);
    const { body, encoding, headers, subscription, receivedAtUs } = entry;
    const encoded = encoding === null ? undefined : decodeStored(body, encoding);
    await take.add({ body, encoded, subscription, receivedAtUs, source: 'push', headers });
  }
  await take.flush();
}

type HeldBody = Readonly<{ id: number; key: string }>;

/** Every body in a quarantine, oldest first. */
async function bodiesOf(
  quarantine: Bodies,
  options: { released: boolean },
  io: Context,
): Promise<HeldBody[]> {
  const bodies: HeldBody[] = [];
  for await (const { id } of quarantine.quarantined(options)) {
    endWhenAsked(io);
    bodies.push({ id, key: keyOf(await quarantine.quarantineEntry(id)) });
  }
  return bodies.toReversed();
}

/** Two stores have nothing else in common of a body: their ids differ. */
function keyOf(delivery: Pick<Delivery, 'receivedAtUs' | 'subscription' | 'body'>): string {
  const { receivedAtUs, subscription, body } = delivery;
  return `${receivedAtUs} ${subscription ?? ''} ${hash('sha256', body, 'hex')}`;
}

function endWhenAsked({ signal }: Pick<Context, 'signal'>): void {
  if (signal.aborted)
    throw new AppError('cancelled', 'Ended.', { advice: 'Run it again: it goes on.' });
}

/** Gathers deliveries into batches. */
function createTaker(to: Pick<Store, 'accept'>, counts: ImportCounts, io: Context) {
  let batch: Delivery[] = [];
  const flush = async () => {
    const known = await io.pushedHere.among(batch).catch((error: unknown) => {
      // The index was asked to end in the middle of its work.
      endWhenAsked(io);
      throw error;
    });
    counts.duplicates += known.size;
    const others = batch.filter((delivery) => !known.has(delivery));
    const receipts = await Promise.all(others.map((delivery) => to.accept(delivery)));
    batch = [];
    for (const receipt of receipts) count(receipt, counts);
  };
  return {
    flush,
    add: async (delivery: Delivery) => {
      batch.push(delivery);
      if (batch.length >= batchMax) await flush();
    },
  };
}

function count(receipt: Receipt, counts: ImportCounts): void {
  if (receipt.outcome !== 'duplicate') counts.stored += receipt.stored;
  if (receipt.outcome === 'rejected') counts.quarantined += 1;
  else counts.duplicates += receipt.duplicates;
}

/**
 * What was pushed stands in the product index, which is brought up to date when the first recovered event comes.
 * `among` finds, among up to 1,000 deliveries, the recovered events that a push has brought here. It rejects with
 * `unavailable` where that cannot be done, and early when the signal is aborted.
 */
export function openPushedHere(place: DataPlace, signal: AbortSignal) {
  let opened: ReturnType<typeof openProducts> | undefined;

  /** Recovered events come one to a body. */
  const recoveredIn = (delivery: Delivery): CatalogueEvent | null => {
    if (delivery.source !== 'reconcile') return null;
    const [item] = readNotifications(delivery.body).notifications;
    return item === undefined ? null : recoveredEvent(delivery, item);
  };

  return {
    among: async (deliveries: readonly Delivery[]): Promise<ReadonlySet<Delivery>> => {
      const found = deliveries.flatMap((delivery) => {
        const event = recoveredIn(delivery);
        return event === null ? [] : [{ delivery, event }];
      });
      const known = new Set<Delivery>();
      for (const [subscription, some] of Map.groupBy(found, (one) => one.event.subscription)) {
        if (opened === undefined) {
          await catchUpIndex({ ...place, signal });
          signal.throwIfAborted();
          opened = openProducts(place.dataDir);
        }
        const productIds = [...new Set(some.map(({ event }) => event.productId))];
        const pushes = await opened.pushedEvents({ subscription, productIds });
        const byProduct = Map.groupBy(pushes, ({ productId }) => productId.toLowerCase());
        for (const { delivery, event } of some) {
          const own = byProduct.get(event.productId.toLowerCase()) ?? [];
          if (own.some((push) => coversEvent(push, event))) known.add(delivery);
        }
      }
      return known;
    },
    close: async () => opened?.close(),
  };
}
