/**
 * A day of the catalogue's products, made in full once; other days are that day again, with ids of their
 * own and with all dates moved. Making each product anew would take minutes for a million.
 */
import { createProductGenerator } from '../src/sandbox/products/product-generator.ts';
import { toTimestamp } from '../src/sandbox/products/record.ts';
import { createRandom, type Random } from '../src/sandbox/random.ts';
import { type BodyTemplate, createBodyTemplate } from './bodies.ts';
import { type DatePlaces, findDates } from './moved-dates.ts';
import { ackIdOf } from './request-ids.ts';

/** What the catalogue publishes in a day (facts, catalogue 7), and the time between two. */
export const productsPerDay = 32_000;
export const slotMs = 86_400_000 / productsPerDay;

/** When the first product of all is published, ms since 1970. */
export const firstSlotMs = Date.UTC(2026, 0, 1);

/** A notification whose ids and dates can be overwritten. */
export interface DatedTemplate {
  readonly body: BodyTemplate;
  readonly dates: DatePlaces;
}

/** What becomes of a product some slots after it was published. */
export interface LaterChange extends DatedTemplate {
  readonly slotsLater: number;
}

/** A product of the day, in the order of publication. */
export interface DayProduct {
  readonly created: DatedTemplate;
  readonly changes: readonly LaterChange[];
}

// Some are published long after they were sensed, and some change later: after a minute or after days.
const lateShare = 0.04;
const lateMs = { min: 6 * 3_600_000, max: 1_500 * 86_400_000 };
const modifiedShare = 0.05;
const deletedShare = 0.03;
const changeMs = { min: 60_000, max: 10 * 86_400_000 };
const notifiedAfterMs = { min: 10_000, max: 90_000 };

/** Makes the first `count` products of the day; the same seed gives the same ones. */
export function createProductDay(count: number, seed = 7): DayProduct[] {
  const random = createRandom(~seed);
  const generator = createProductGenerator({ seed });
  const subscriptionId = random.uuid();
  const ackId = ackIdOf('observed', 0xffff, 0xffffffff);
  const template = (event: string, product: { Id: string; Name: string }, atMs: number) => {
    const notificationDate = new Date(atMs).toISOString();
    const body = createBodyTemplate({ product, event, subscriptionId, ackId, notificationDate });
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
    const changes: LaterChange[] = [];
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
