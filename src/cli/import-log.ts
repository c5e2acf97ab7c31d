/** Copies one store's notifications and quarantine into another, by the way that deliveries take. */
import { AppError } from '../domain/app-error.ts';
import type { Delivery, QuarantineRow, Receipt } from '../domain/ports.ts';
import type { Store, StoreReader } from '../store/store.ts';
import type { Io } from './io.ts';

export interface ImportCounts {
  /** Read from the other store. */
  notifications: number;
  stored: number;
  duplicates: number;
  quarantined: number;
}

/** So many are stored in one commit, and no more are held in memory. */
const batchMax = 200;

type World = Pick<Io, 'stderr' | 'signal'>;

/** Rejects with `cancelled` when the user ends it; what is stored by then stays. */
export async function importLog(
  from: StoreReader,
  to: Pick<Store, 'accept' | 'quarantined'>,
  io: World,
): Promise<ImportCounts> {
  const counts = { notifications: 0, stored: 0, duplicates: 0, quarantined: 0 };
  const total = (await from.counts()).notifications;
  const take = createTaker(to, counts);
  const held = await keysOf(from.quarantined({ released: false }));
  for await (const row of from.find({ order: 'oldest' })) {
    if (io.signal.aborted) throw new AppError('cancelled', 'Ended. Run it again: it goes on.');
    counts.notifications += 1;
    const { subscription, receivedAtUs } = row;
    const source = row.source === 'reconcile' ? 'reconcile' : 'push';
    const body = await from.body(row.position);
    // A body that holds other things, too, comes with the quarantine.
    const isHeld = held.has(keyOf({ subscription, receivedAtUs, bodyBytes: body.byteLength }));
    if (!isHeld) await take.add({ body, subscription, receivedAtUs, source, headers: [] });
    tellProgress(counts.notifications, total, io);
  }
  await take.flush();
  await importQuarantine(from, to, counts);
  return counts;
}

async function importQuarantine(
  from: StoreReader,
  to: Pick<Store, 'accept' | 'quarantined'>,
  counts: ImportCounts,
): Promise<void> {
  const known = await keysOf(to.quarantined({ released: true }));
  const take = createTaker(to, counts);
  for await (const row of from.quarantined({ released: false })) {
    if (known.has(keyOf(row))) continue;
    const { body, headers } = await from.quarantineEntry(row.id);
    const { subscription, receivedAtUs } = row;
    await take.add({ body, subscription, receivedAtUs, source: 'push', headers });
  }
  await take.flush();
}

type Held = Pick<QuarantineRow, 'receivedAtUs' | 'bodyBytes' | 'subscription'>;

/** Bodies in quarantine are known by time, size and path: they have nothing else in common. */
function keyOf({ receivedAtUs, bodyBytes, subscription }: Held): string {
  return `${receivedAtUs} ${bodyBytes} ${subscription}`;
}

async function keysOf(rows: AsyncIterable<Held>): Promise<Set<string>> {
  const keys = new Set<string>();
  for await (const row of rows) keys.add(keyOf(row));
  return keys;
}

/** Gathers deliveries into batches. Notifications of one body follow each other: it is taken once. */
function createTaker(to: Pick<Store, 'accept'>, counts: ImportCounts) {
  let batch: Delivery[] = [];
  let last: Delivery | undefined;
  const flush = async () => {
    const receipts = await Promise.all(batch.map((delivery) => to.accept(delivery)));
    batch = [];
    for (const receipt of receipts) count(receipt, counts);
  };
  return {
    flush,
    add: async (delivery: Delivery) => {
      const isSame =
        last?.subscription === delivery.subscription &&
        Buffer.compare(last.body, delivery.body) === 0;
      last = { ...delivery, body: Uint8Array.from(delivery.body) };
      if (!isSame) batch.push(delivery);
      if (batch.length >= batchMax) await flush();
    },
  };
}

function count(receipt: Receipt, counts: ImportCounts): void {
  if (receipt.outcome !== 'duplicate') counts.stored += receipt.stored;
  if (receipt.outcome === 'rejected') counts.quarantined += 1;
  else counts.duplicates += receipt.duplicates;
}

function tellProgress(done: number, total: number, { stderr }: World): void {
  if (stderr.isTTY !== true || (done % 1_000 !== 0 && done !== total)) return;
  stderr.write(`\r${done} of ${total} notifications${done === total ? '\n' : ''}`);
}
