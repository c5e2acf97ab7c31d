/**
 * The data folders that queries are measured on: a log of generated products, and its index. A day of the catalogue's
 * products is made in full once; other days are that day again, with ids of their own and with all dates moved. Making
 * each product anew would take minutes for a million.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRandom, type Random } from '../src/sandbox/clock.ts';
import { createProductGenerator } from '../src/sandbox/products/product-generator.ts';
import { toTimestamp } from '../src/sandbox/products/record.ts';
import { rebuildIndex } from '../src/store/products/index-maintenance.ts';
import { openStore } from '../src/store/store.ts';
import type { Progress } from './harness.ts';
import { type LogEntry, writeLog } from './log-writer.ts';
import {
  ackIdOf,
  type BodyTemplate,
  createBodyTemplate,
  productIdOf,
  writeIds,
} from './notifications.ts';
import { readMemory } from './processes.ts';
import { databaseFile } from './servers.ts';

/** What a folder holds and how long it took to make; sizes in bytes. */
export interface QueryData {
  readonly folder: string;
  readonly products: number;
  readonly notifications: number;
  /** Generating them and writing the log. */
  readonly fillSeconds: number;
  /** Building the index with nothing else running. */
  readonly indexSeconds: number;
  readonly notificationsPerSecond: number;
  readonly logBytes: number;
  readonly indexBytes: number;
  /** Most memory of this process until then; null where it cannot be read. */
  readonly peakResidentBytes: number | null;
}

/** Written last: a folder without it is incomplete. */
const summaryName = 'query-data.json';

/** Makes the data in a folder, or takes what an earlier run has left there complete. */
export async function prepareQueryData(
  folder: string,
  products: number,
  progress: Progress,
): Promise<QueryData> {
  const summaryFile = join(folder, summaryName);
  if (existsSync(summaryFile)) {
    // Written below, by this program.
    return { ...(JSON.parse(readFileSync(summaryFile, 'utf8')) as QueryData), folder };
  }
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const data = await createQueryData(folder, products, progress);
  writeFileSync(summaryFile, `${JSON.stringify(data, null, 2)}\n`);
  return data;
}

async function createQueryData(
  folder: string,
  products: number,
  progress: Progress,
): Promise<QueryData> {
  const store = await openStore({ dataDir: folder, nowUs: () => Date.now() * 1_000 });
  await store.close();
  const logFile = databaseFile(folder);
  progress.show(`${products} products: making the first day`);
  const startMs = performance.now();
  await writeLog(logFile, createProductLog(products), (written) =>
    progress.show(`${products} products: ${written} notifications written`),
  );
  const filledMs = performance.now();
  const { indexedPosition } = await rebuildIndex({
    dataDir: folder,
    onProgress: (done) =>
      progress.show(
        `${products} products: ${done.indexedPosition} of ${done.lastPosition} indexed`,
      ),
  });
  const indexSeconds = (performance.now() - filledMs) / 1_000;
  return {
    ...{ folder, products, notifications: indexedPosition },
    ...{ fillSeconds: (filledMs - startMs) / 1_000, indexSeconds },
    notificationsPerSecond: indexedPosition / indexSeconds,
    logBytes: statSync(logFile).size,
    indexBytes: statSync(join(folder, 'products-1.db')).size,
    peakResidentBytes: readMemory(process.pid)?.peakResidentBytes ?? null,
  };
}

const dayMs = 86_400_000;

/** What the catalogue publishes in a day (facts, catalogue 7), and the time between two. */
const productsPerDay = 32_000;
const slotMs = dayMs / productsPerDay;

/** When the first product of all is published, ms since 1970. */
const firstSlotMs = Date.UTC(2026, 0, 1);

/** A notification whose ids and dates can be overwritten. */
interface DatedTemplate {
  readonly body: BodyTemplate;
  readonly dates: DatePlaces;
}

/** A product of the day, in the order of publication, and what becomes of it so many slots later. */
interface DayProduct {
  readonly created: DatedTemplate;
  readonly changes: readonly (DatedTemplate & { readonly slotsLater: number })[];
}

// Some are published long after they were sensed, and some change later: after a minute or after days.
const lateShare = 0.04;
const lateMs = { min: 6 * 3_600_000, max: 1_500 * dayMs };
const modifiedShare = 0.05;
const deletedShare = 0.03;
const changeMs = { min: 60_000, max: 10 * dayMs };
const notifiedAfterMs = { min: 10_000, max: 90_000 };
const seed = 7;

/** Makes the first `count` products of the day, always the same ones. */
function createProductDay(count: number): DayProduct[] {
  const random = createRandom(~seed);
  const generator = createProductGenerator({ seed });
  const subscriptionId = random.uuid();
  const template = (event: string, product: { Id: string; Name: string }, atMs: number) => {
    const facts = { event, subscriptionId, notificationDate: new Date(atMs).toISOString() };
    const body = createBodyTemplate('observed', product, facts);
    return { body, dates: findDates(body.bytes) };
  };
  return Array.from({ length: count }, (_, slot): DayProduct => {
    const notifiedMs = Math.floor(firstSlotMs + slot * slotMs);
    const publishedMs = notifiedMs - random.integer(notifiedAfterMs.min, notifiedAfterMs.max);
    const lateByMs = random.chance(lateShare) ? drawSpanMs(random, lateMs) : 0;
    const published = toTimestamp(publishedMs, random.integer(0, 999));
    const product = {
      ...generator.next(publishedMs - lateByMs),
      ...{ PublicationDate: published, ModificationDate: published },
    };
    const changes: (DatedTemplate & { slotsLater: number })[] = [];
    const change = (event: string, changed: (atMs: number) => { Id: string; Name: string }) => {
      const slotsLater = Math.ceil(drawSpanMs(random, changeMs) / slotMs);
      const atMs = Math.floor(notifiedMs + slotsLater * slotMs);
      changes.push({ slotsLater, ...template(event, changed(atMs - 30_000), atMs) });
    };
    if (random.chance(modifiedShare)) change('modified', (at) => generator.modified(product, at));
    if (random.chance(deletedShare)) change('deleted', (at) => generator.deleted(product, at));
    return { created: template('created', product, notifiedMs), changes };
  });
}

/** Short spans are as likely as long ones: each order of magnitude has its share. */
function drawSpanMs(random: Random, { min, max }: { min: number; max: number }): number {
  return min * (max / min) ** random.next();
}

/** The run number that the ids are made of: no load has it. */
const run = 0xfffe;

/** Between the date of a notification and its receipt. */
const receiptDelayUs = 400_000;

/**
 * Tells of so many products, in the order of receipt. Changes that would come after the last of them are left out.
 * Each entry's body is overwritten by the next.
 */
function* createProductLog(products: number): Generator<LogEntry> {
  const day = createProductDay(Math.min(products, productsPerDay));
  const due = new Map<number, { slot: number; template: DatedTemplate }[]>();
  const templates = day.flatMap(({ created, changes }) => [created, ...changes]);
  const scratch = Buffer.alloc(Math.max(...templates.map(({ body }) => body.bytes.length)));
  let sequence = 0;
  const entry = (template: DatedTemplate, slot: number, nowSlot: number): LogEntry => {
    sequence += 1;
    return createEntry(scratch, template, { slot, nowSlot, sequence });
  };
  for (let slot = 0; slot < products; slot += 1) {
    const product = day[slot % day.length];
    if (product === undefined) throw new Error('there are no products');
    yield entry(product.created, slot, slot);
    for (const template of product.changes) {
      const dueSlot = slot + template.slotsLater;
      due.set(dueSlot, [...(due.get(dueSlot) ?? []), { slot, template }]);
    }
    for (const change of due.get(slot) ?? []) yield entry(change.template, change.slot, slot);
    due.delete(slot);
  }
}

/** `slot` is the product's own, `nowSlot` that of the notification. */
function createEntry(
  scratch: Buffer,
  { body: template, dates }: DatedTemplate,
  { slot, nowSlot, sequence }: { slot: number; nowSlot: number; sequence: number },
): LogEntry {
  const ackId = ackIdOf('observed', run, sequence);
  const productId = productIdOf(run, slot);
  const body = scratch.subarray(0, template.bytes.length);
  template.bytes.copy(body);
  writeDates(body, dates, Math.floor(slot / productsPerDay));
  writeIds(body, 0, template, { ackId, productId });
  const { event, subscriptionId } = template;
  const nameStart = template.bytes.indexOf(template.productName);
  const productName = body.toString('latin1', nameStart, nameStart + template.productName.length);
  const notificationDateUs = Math.floor((firstSlotMs + nowSlot * slotMs) * 1_000);
  const receivedAtUs = notificationDateUs + receiptDelayUs;
  return {
    ...{ ackId, productId, productName, event, subscriptionId },
    ...{ notificationDateUs, receivedAtUs, body },
  };
}

/**
 * Where dates stand in a text, three numbers for each: byte offset, form, days since 1970. A plain list, because a day
 * of products has about a million of them.
 */
type DatePlaces = Int32Array;

/** As records and names have them. Times of the day stay as they are, so that a moved text is as long as before. */
const dateForms = [
  { pattern: /20\d\d-\d\d-\d\d(?=T)/g, separator: '-' },
  { pattern: /20\d{6}(?=T\d{6})/g, separator: '' },
  { pattern: /20\d\d\/\d\d\/\d\d(?=\/)/g, separator: '/' },
] as const;

/** Finds them all; the text is ASCII. */
function findDates(bytes: Buffer): DatePlaces {
  const text = bytes.toString('latin1');
  const places = dateForms.flatMap(({ pattern }, form) =>
    [...text.matchAll(pattern)].flatMap(({ 0: date, index }) => {
      const digits = date.replaceAll(/\D/g, '');
      const iso = `${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}`;
      return [index, form, Date.parse(iso) / dayMs];
    }),
  );
  return Int32Array.from(places);
}

/** Writes the dates into a copy of the text, moved by so many days. */
function writeDates(target: Buffer, places: DatePlaces, days: number): void {
  if (days === 0) return;
  for (let at = 0; at < places.length; at += 3) {
    const [offset = 0, form = 0, day = 0] = places.subarray(at, at + 3);
    target.write(dateText(form, day + days), offset, 'latin1');
  }
}

/** By form and day: the same ones are wanted very often. */
const dateTexts: string[][] = dateForms.map(() => []);

function dateText(form: number, day: number): string {
  const known = dateTexts[form]?.[day];
  if (known !== undefined) return known;
  const iso = new Date(day * dayMs).toISOString().slice(0, 10);
  const text = iso.replaceAll('-', dateForms[form]?.separator ?? '');
  if (dateTexts[form] !== undefined) dateTexts[form][day] = text;
  return text;
}
