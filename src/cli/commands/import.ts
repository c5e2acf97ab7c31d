/** `earshot import`: copies the notifications of another data directory. */

import { hash } from 'node:crypto';
import { dirname, join, resolve } from 'node:path';
import { dataSections, loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { type CatalogueEvent, coversEvent } from '../../domain/completeness.ts';
import { readNotifications } from '../../domain/notification.ts';
import {
  type Delivery,
  notificationSources,
  type Quarantine,
  type Receipt,
} from '../../domain/ports.ts';
import { decodeStored } from '../../http/request-body.ts';
import { databaseFileName, inodeOf } from '../../store/engine/database.ts';
import type { DataPlace } from '../../store/engine/disk-limit.ts';
import { recoveredEvent } from '../../store/log/recovered-events.ts';
import { catchUpIndex } from '../../store/products/index-maintenance.ts';
import { openProducts } from '../../store/products/products.ts';
import { openStoreReader, type Store, type StoreReader } from '../../store/store.ts';
import { createClosers } from '../closers.ts';
import { defineCommand } from '../command.ts';
import { jsonOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { openConfiguredStore } from '../open-store.ts';
import { createProgressLine, printJson } from '../output.ts';

export const importCommand = defineCommand('import', {
  description: 'Import the notifications of another data directory, for example of an old host.',
  flags: (command) =>
    command
      .argument('<folder>', 'path of the other data directory (never changed)')
      .addOption(jsonOption()),
  help: `The receiver can run meanwhile. Duplicates are stored once, so you can interrupt the command and run
the command again. Times of receipt are preserved. Quarantined bodies are imported into the
quarantine. A notification with the source "reconcile" is a duplicate if this receiver has already
received a push of the same event.

Fields of --json: notifications, stored, duplicates, quarantined. notifications is the number of
notifications that were read. stored is the number of new notifications.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot import /mnt/old-host/data                             into the default data directory
  $ earshot import /mnt/old-host/data --data-dir /srv/earshot     into /srv/earshot
  $ earshot import /mnt/old-host/data --json                      print JSON`,
  run: importFrom,
});

async function importFrom(io: Io, { json }: { json?: true }, folder: string): Promise<void> {
  const place = loadConfig(io, dataSections);
  checkFolder(resolve(folder), place.dataDir);
  const { stdout, stderr, signal } = io;
  const closers = createClosers();
  try {
    const from = openStoreReader(folder);
    closers.add(() => from.close(), 'the other store');
    const to = await openConfiguredStore(place, io);
    closers.add(() => to.close(), 'the store');
    const pushedHere = openPushedHere(place, signal);
    closers.add(() => pushedHere.close(), 'the index');
    const counts = await importLog(from, to, { stderr, signal, pushedHere });
    if (json) return await printJson(stdout, counts, 'line');
    const { notifications, stored, duplicates, quarantined } = counts;
    stderr.write(
      `Notifications read: ${notifications}. Stored: ${stored}. Duplicates: ${duplicates}. Bodies quarantined: ${quarantined}.\n`,
    );
  } finally {
    await closers.closeAll();
  }
}

/** Checks the other folder. Errors of the store would refer to our own data directory. */
function checkFolder(folder: string, dataDir: string): void {
  const refuse = (message: string, advice: string) => new AppError('usage', message, { advice });
  const inode = inodeOf(join(folder, databaseFileName));
  if (inode === -1) {
    const near = [join(folder, 'data'), dirname(folder)].find(
      (one) => inodeOf(join(one, databaseFileName)) !== -1,
    );
    throw refuse(
      `There is no ${databaseFileName} in ${folder}.`,
      near === undefined
        ? 'Specify the path of the other data directory.'
        : `Did you mean ${near}?`,
    );
  }
  if (inode === inodeOf(join(dataDir, databaseFileName))) {
    throw refuse(`${folder} is the data directory itself.`, 'Specify another data directory.');
  }
}

interface ImportCounts {
  /** Read from the other store. */
  notifications: number;
  stored: number;
  duplicates: number;
  quarantined: number;
}

/** Maximum notifications in one commit, and in memory. */
const batchMax = 200;

type Context = Pick<Io, 'stderr' | 'signal'> & { pushedHere: ReturnType<typeof openPushedHere> };

type Bodies = Pick<Quarantine, 'quarantined' | 'quarantineEntry'>;

type Target = Pick<Store, 'accept'> & Bodies;

/**
 * Imports the log and the quarantine. An event recovered there and pushed here is a duplicate. Rejects with
 * `cancelled` on interruption; stored notifications remain.
 */
export async function importLog(from: StoreReader, to: Target, io: Context): Promise<ImportCounts> {
  const counts = { notifications: 0, stored: 0, duplicates: 0, quarantined: 0 };
  const quarantined = await bodiesOf(from, { released: false }, io);
  const known = await bodiesOf(to, { released: true }, io);
  const quarantinedKeys = new Set(quarantined.map(({ key }) => key));
  const knownKeys = new Set(known.map(({ key }) => key));
  const total = (await from.counts()).notifications;
  const progress = createProgressLine(io.stderr);
  const batch = createBatch(to, counts, io);
  let lastKey = '';
  for await (const row of from.find({ order: 'oldest' })) {
    throwIfCancelled(io);
    counts.notifications += 1;
    const done = counts.notifications;
    if (done % 1_000 === 0 || done === total) progress.show(`${done} of ${total} notifications`);
    const { subscription, receivedAtUs } = row;
    const source = notificationSources.find((known) => known === row.source) ?? 'push';
    const { bytes: body, encoding } = await from.original(row.position);
    const encoded = encoding === null ? undefined : decodeStored(body, encoding);
    const delivery: Delivery = { body, encoded, subscription, receivedAtUs, source, headers: [] };
    const key = keyOf(delivery);
    // A quarantined body is imported with the quarantine, including its valid notifications.
    if (quarantinedKeys.has(key)) continue;
    // Valid notifications of a body in our quarantine are already in the log.
    if (knownKeys.has(key)) counts.duplicates += 1;
    // Notifications of one body are consecutive: each body is added once.
    else if (key !== lastKey) await batch.add(delivery);
    lastKey = key;
  }
  progress.done();
  await batch.flush();
  await importQuarantine(from, to, { quarantined, known, counts, io });
  return counts;
}

/** Imports the quarantine. Afterwards there are at least as many equal bodies as in the other quarantine. */
async function importQuarantine(
  from: Bodies,
  to: Target,
  deps: {
    quarantined: QuarantinedBody[];
    known: QuarantinedBody[];
    counts: ImportCounts;
    io: Context;
  },
): Promise<void> {
  const { quarantined, known, counts, io } = deps;
  const left = new Map<string, number>();
  for (const { key } of known) left.set(key, (left.get(key) ?? 0) + 1);
  const batch = createBatch(to, counts, io);
  for (const { id, key } of quarantined) {
    throwIfCancelled(io);
    const here = left.get(key) ?? 0;
    left.set(key, here - 1);
    if (here > 0) continue;
    const entry = await from.quarantineEntry(id);
    const { body, encoding, headers, subscription, receivedAtUs } = entry;
    const encoded = encoding === null ? undefined : decodeStored(body, encoding);
    await batch.add({ body, encoded, subscription, receivedAtUs, source: 'push', headers });
  }
  await batch.flush();
}

type QuarantinedBody = Readonly<{ id: number; key: string }>;

/** Returns all bodies of a quarantine, oldest first. */
async function bodiesOf(
  quarantine: Bodies,
  options: { released: boolean },
  io: Context,
): Promise<QuarantinedBody[]> {
  const bodies: QuarantinedBody[] = [];
  for await (const { id } of quarantine.quarantined(options)) {
    throwIfCancelled(io);
    bodies.push({ id, key: keyOf(await quarantine.quarantineEntry(id)) });
  }
  return bodies.toReversed();
}

/** Identifies a body across two stores: its ids differ. */
function keyOf(delivery: Pick<Delivery, 'receivedAtUs' | 'subscription' | 'body'>): string {
  const { receivedAtUs, subscription, body } = delivery;
  return `${receivedAtUs} ${subscription ?? ''} ${hash('sha256', body, 'hex')}`;
}

function throwIfCancelled({ signal }: Pick<Context, 'signal'>): void {
  if (signal.aborted) {
    throw new AppError('cancelled', 'Interrupted.', {
      advice: 'Run the command again to continue.',
    });
  }
}

/** Stores deliveries in batches. */
function createBatch(to: Pick<Store, 'accept'>, counts: ImportCounts, io: Context) {
  let batch: Delivery[] = [];
  const flush = async () => {
    const known = await io.pushedHere.among(batch).catch((error: unknown) => {
      // An interruption of the indexing has its own error.
      throwIfCancelled(io);
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
 * Finds recovered events that were already pushed here, by the product index. The index is updated at the first
 * recovered event. `among` accepts up to 1,000 deliveries. It rejects with `unavailable` if the index cannot be
 * updated, and early if the signal is aborted.
 */
export function openPushedHere(place: DataPlace, signal: AbortSignal) {
  let opened: ReturnType<typeof openProducts> | undefined;

  /** A body has only one recovered event. */
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
