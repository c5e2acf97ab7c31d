/**
 * Data folders for query benchmarks: a log of generated products, and its index. One day of products is generated;
 * other days repeat it with other ids and shifted dates. Generating a million products would take minutes.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { catchUpIndex } from '../src/features/products/index-file/index-maintenance.ts';
import { createRandom, type Random } from '../src/sandbox/clock.ts';
import { createProductGenerator, toTimestamp } from '../src/sandbox/products/product-generator.ts';
import { openStore } from '../test/helpers/store.ts';
import type { Progress } from './harness.ts';
import { type LogEntry, writeLog } from './log-writer.ts';
import {
  ackIdOf,
  type BodyTemplate,
  createBodyTemplate,
  productIdOf,
  writeIds,
} from './notifications.ts';
import { databaseFile } from './servers.ts';

/** Contents of a folder and the time to create it; sizes in bytes. */
export interface QueryData {
  readonly folder: string;
  readonly products: number;
  readonly notifications: number;
  /** Time to generate the products and write the log. */
  readonly fillSeconds: number;
  /** Time to build the index with nothing else running. */
  readonly indexSeconds: number;
  readonly logBytes: number;
  readonly indexBytes: number;
}

/** Written last; a folder without it is incomplete. */
const summaryName = 'query-data.json';

/**
 * Creates the data in a folder, or reuses complete data of an earlier run. `firstMs` is the publication time of the
 * first product of new data.
 */
export async function prepareQueryData(
  folder: string,
  products: number,
  progress: Progress,
  firstMs = Date.UTC(2026, 0, 1),
): Promise<QueryData> {
  const summaryFile = join(folder, summaryName);
  if (existsSync(summaryFile)) {
    // Written below by this program.
    return { ...(JSON.parse(readFileSync(summaryFile, 'utf8')) as QueryData), folder };
  }
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const data = await createQueryData(folder, { products, firstMs }, progress);
  writeFileSync(summaryFile, `${JSON.stringify(data, null, 2)}\n`);
  return data;
}

async function createQueryData(
  folder: string,
  { products, firstMs }: { products: number; firstMs: number },
  progress: Progress,
): Promise<QueryData> {
  const store = await openStore({ dataDir: folder });
  await store.close();
  const logFile = databaseFile(folder);
  progress.show(`${products} products: generating the first day`);
  const startMs = performance.now();
  await writeLog(logFile, createProductLog(products, firstMs), (written) =>
    progress.show(`${products} products: ${written} notifications written`),
  );
  const filledMs = performance.now();
  const { indexedPosition } = await catchUpIndex({
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
    logBytes: statSync(logFile).size,
    indexBytes: statSync(join(folder, 'products-1.db')).size,
  };
}

const dayMs = 86_400_000;

/** Daily publications of the catalogue (facts, catalogue 7), and the interval between them. */
const productsPerDay = 32_000;
export const slotMs = dayMs / productsPerDay;

/** A notification whose ids and dates can be overwritten. */
interface DatedTemplate {
  readonly body: BodyTemplate;
  readonly dates: DatePositions;
}

/** A product of the day and its later changes. Products are in order of publication. */
interface DayProduct {
  readonly created: DatedTemplate;
  readonly changes: readonly (DatedTemplate & { readonly slotsLater: number })[];
}

// Some products are published long after sensing, and some change later, after a minute to days.
const lateShare = 0.04;
const lateMs = { min: 6 * 3_600_000, max: 1_500 * dayMs };
const modifiedShare = 0.05;
const deletedShare = 0.03;
const changeMs = { min: 60_000, max: 10 * dayMs };
const notifiedAfterMs = { min: 10_000, max: 90_000 };
const seed = 7;

/** Creates the first `count` products of the day, deterministic. */
function createProductDay(count: number, firstMs: number): DayProduct[] {
  const random = createRandom(~seed);
  const generator = createProductGenerator({ seed });
  const subscriptionId = random.uuid();
  const template = (event: string, product: { Id: string; Name: string }, atMs: number) => {
    const facts = { event, subscriptionId, notificationDate: new Date(atMs).toISOString() };
    const body = createBodyTemplate(product, facts);
    return { body, dates: findDates(body.bytes) };
  };
  return Array.from({ length: count }, (_, slot): DayProduct => {
    const notifiedMs = Math.floor(firstMs + slot * slotMs);
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

/** Draws a time span, uniform on a logarithmic scale. */
function drawSpanMs(random: Random, { min, max }: { min: number; max: number }): number {
  return min * (max / min) ** random.next();
}

/** Run number of the ids, not used by any load. */
const run = 0xfffe;

/** Time from the date of a notification to its receipt. */
const receiptDelayUs = 400_000;

/**
 * Generates the notifications of a number of products, in order of receipt, without changes after the last product.
 * Each entry overwrites the body of the previous one.
 */
function* createProductLog(products: number, firstMs: number): Generator<LogEntry> {
  const day = createProductDay(Math.min(products, productsPerDay), firstMs);
  const due = new Map<number, { slot: number; template: DatedTemplate }[]>();
  const templates = day.flatMap(({ created, changes }) => [created, ...changes]);
  const scratch = Buffer.alloc(Math.max(...templates.map(({ body }) => body.bytes.length)));
  let sequence = 0;
  const entry = (template: DatedTemplate, slot: number, nowSlot: number): LogEntry => {
    sequence += 1;
    return createEntry(scratch, template, { slot, nowMs: firstMs + nowSlot * slotMs, sequence });
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

/** `slot` is that of the product, `nowMs` the time of the notification. */
function createEntry(
  scratch: Buffer,
  { body: template, dates }: DatedTemplate,
  { slot, nowMs, sequence }: { slot: number; nowMs: number; sequence: number },
): LogEntry {
  const ackId = ackIdOf(run, sequence);
  const productId = productIdOf(run, slot);
  const body = scratch.subarray(0, template.bytes.length);
  template.bytes.copy(body);
  writeDates(body, dates, Math.floor(slot / productsPerDay));
  writeIds(body, 0, template, { ackId, productId });
  const { event, subscriptionId } = template;
  const nameStart = template.bytes.indexOf(template.productName);
  const productName = body.toString('latin1', nameStart, nameStart + template.productName.length);
  const notificationDateUs = Math.floor(nowMs * 1_000);
  const receivedAtUs = notificationDateUs + receiptDelayUs;
  return {
    ...{ ackId, productId, productName, event, subscriptionId },
    ...{ notificationDateUs, receivedAtUs, body },
  };
}

/**
 * Positions of dates in a text, three numbers per date: byte offset, form, days since 1970. A flat array, because a
 * day of products has about a million dates.
 */
type DatePositions = Int32Array;

/** Date forms of records and names. Times of day do not change, so that the length stays constant. */
const dateForms = [
  { pattern: /20\d\d-\d\d-\d\d(?=T)/g, separator: '-' },
  { pattern: /20\d{6}(?=T\d{6})/g, separator: '' },
  { pattern: /20\d\d\/\d\d\/\d\d(?=\/)/g, separator: '/' },
] as const;

/** Finds every date; the text is ASCII. */
function findDates(bytes: Buffer): DatePositions {
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

/** Writes the dates, shifted by `days`, into a copy of the text. */
function writeDates(target: Buffer, places: DatePositions, days: number): void {
  if (days === 0) return;
  for (let at = 0; at < places.length; at += 3) {
    const [offset = 0, form = 0, day = 0] = places.subarray(at, at + 3);
    target.write(dateText(form, day + days), offset, 'latin1');
  }
}

/** Cache by form and day. */
const dateTexts: string[][] = dateForms.map(() => []);

function dateText(form: number, day: number): string {
  const known = dateTexts[form]?.[day];
  if (known !== undefined) return known;
  const iso = new Date(day * dayMs).toISOString().slice(0, 10);
  const text = iso.replaceAll('-', dateForms[form]?.separator ?? '');
  if (dateTexts[form] !== undefined) dateTexts[form][day] = text;
  return text;
}
