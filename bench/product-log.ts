/** The notifications of a month of products: each published in its slot, some modified or deleted later. */
import { writeIds } from './bodies.ts';
import type { LogEntry } from './log-writer.ts';
import { writeDates } from './moved-dates.ts';
import {
  createProductDay,
  type DatedTemplate,
  firstSlotMs,
  productsPerDay,
  slotMs,
} from './product-day.ts';
import { ackIdOf, productIdOf } from './request-ids.ts';

/** The run number that the ids are made of: no load has it. */
const run = 0xfffe;

/** Between the date of a notification and its receipt. */
const receiptDelayUs = 400_000;

interface DueChange {
  readonly slot: number;
  readonly template: DatedTemplate;
}

/**
 * Tells of so many products, in the order of receipt. Changes that would come after the last of them
 * are left out. Each entry's body is overwritten by the next.
 */
export function* createProductLog(products: number): Generator<LogEntry> {
  const day = createProductDay(Math.min(products, productsPerDay));
  const due = new Map<number, DueChange[]>();
  const largest = day.flatMap(({ created, changes }) => [created, ...changes]);
  const scratch = Buffer.alloc(Math.max(...largest.map(({ body }) => body.bytes.length)));
  let sequence = 0;
  const entry = (template: DatedTemplate, slot: number, nowSlot: number): LogEntry => {
    sequence += 1;
    return createEntry(scratch, template, { slot, nowSlot, sequence });
  };
  for (let slot = 0; slot < products; slot += 1) {
    const product = day[slot % day.length];
    if (product === undefined) throw new Error('there are no products');
    yield entry(product.created, slot, slot);
    for (const change of product.changes) {
      const dueSlot = slot + change.slotsLater;
      const others = due.get(dueSlot);
      if (others === undefined) due.set(dueSlot, [{ slot, template: change }]);
      else others.push({ slot, template: change });
    }
    for (const change of due.get(slot) ?? []) yield entry(change.template, change.slot, slot);
    due.delete(slot);
  }
}

/** `slot` is the product's own, `nowSlot` that of the notification. */
function createEntry(
  scratch: Buffer,
  { body, dates }: DatedTemplate,
  { slot, nowSlot, sequence }: { slot: number; nowSlot: number; sequence: number },
): LogEntry {
  const ackId = ackIdOf('observed', run, sequence);
  const productId = productIdOf(run, slot);
  const bytes = scratch.subarray(0, body.bytes.length);
  body.bytes.copy(bytes);
  writeDates(bytes, dates, Math.floor(slot / productsPerDay));
  writeIds(bytes, 0, body, { ackId, productId });
  const nameStart = body.bytes.indexOf(body.productName);
  const notificationDateUs = Math.floor((firstSlotMs + nowSlot * slotMs) * 1_000);
  return {
    ackId,
    productId,
    productName: bytes.toString('latin1', nameStart, nameStart + body.productName.length),
    event: body.event,
    subscriptionId: body.subscriptionId,
    notificationDateUs,
    receivedAtUs: notificationDateUs + receiptDelayUs,
    body: bytes,
  };
}
