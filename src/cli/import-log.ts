/** Copies one store's notifications and quarantine into another, by the way that deliveries take. */
import { hash } from 'node:crypto';
import { AppError } from '../domain/app-error.ts';
import type { Delivery, Quarantine, Receipt } from '../domain/ports.ts';
import { decodeStored } from '../http/content-encoding.ts';
import type { Store, StoreReader } from '../store/store.ts';
import type { Io } from './io.ts';
import type { PushedHere } from './pushed-here.ts';

export interface ImportCounts {
  /** Read from the other store. */
  notifications: number;
  stored: number;
  duplicates: number;
  quarantined: number;
}

/** So many are stored in one commit, and no more are held in memory. */
const batchMax = 200;

type World = Pick<Io, 'stderr' | 'signal'> & { pushedHere: Pick<PushedHere, 'among'> };
type Bodies = Pick<Quarantine, 'quarantined' | 'quarantineEntry'>;
type Target = Pick<Store, 'accept'> & Bodies;

/**
 * An event that the other one looked up, and that was pushed here, is known. Rejects with `cancelled` when the user
 * ends it; what is stored by then stays.
 */
export async function importLog(from: StoreReader, to: Target, io: World): Promise<ImportCounts> {
  const counts = { notifications: 0, stored: 0, duplicates: 0, quarantined: 0 };
  const held = await bodiesOf(from, { released: false }, io);
  const known = await bodiesOf(to, { released: true }, io);
  const isHeld = new Set(held.map(({ key }) => key));
  const isKnown = new Set(known.map(({ key }) => key));
  const total = (await from.counts()).notifications;
  const take = createTaker(to, counts, io);
  let lastKey = '';
  for await (const row of from.find({ order: 'oldest' })) {
    endWhenAsked(io);
    counts.notifications += 1;
    tellProgress(counts.notifications, total, io);
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
  await take.flush();
  await importQuarantine(from, to, { held, known, counts, io });
  return counts;
}

/** Of equal bodies there are as many afterwards as the other quarantine holds, or more. */
async function importQuarantine(
  from: Bodies,
  to: Target,
  about: { held: HeldBody[]; known: HeldBody[]; counts: ImportCounts; io: World },
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

interface HeldBody {
  id: number;
  key: string;
}

/** Every body in a quarantine, oldest first. */
async function bodiesOf(
  quarantine: Bodies,
  options: { released: boolean },
  io: World,
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

function endWhenAsked({ signal }: Pick<World, 'signal'>): void {
  if (signal.aborted)
    throw new AppError('cancelled', 'Ended.', { advice: 'Run it again: it goes on.' });
}

/** Gathers deliveries into batches. */
function createTaker(to: Pick<Store, 'accept'>, counts: ImportCounts, io: World) {
  let batch: Delivery[] = [];
  const flush = async () => {
    const known = await knownAmong(batch, io);
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

async function knownAmong(batch: readonly Delivery[], io: World): Promise<ReadonlySet<Delivery>> {
  try {
    return await io.pushedHere.among(batch);
  } catch (error) {
    // The index was asked to end in the middle of its work.
    endWhenAsked(io);
    throw error;
  }
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
