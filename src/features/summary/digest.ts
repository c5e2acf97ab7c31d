/** Facts of the products that were first received in a period. */
import { setImmediate } from 'node:timers/promises';
import { dayUs, hourUs } from '../../core/terms/dates.ts';
import { andList, countText } from '../../core/terms/text.ts';
import { requireFilter } from '../../filter/check.ts';
import type { FoundProduct, ProductRow, Products } from '../../filter/products.ts';
import type { Places } from '../products/places/places.ts';
import { type Facts, insertValues } from './answer.ts';
import {
  codeOf,
  datePhrase,
  dayPhrase,
  durationPhrase,
  knownFacts,
  missionText,
  percentPhrase,
  sentenceOf,
  sizePhrase,
  timeOf,
} from './facts.ts';
import type { DigestScope } from './terms.ts';

export interface DigestSources {
  products: Pick<Products, 'find'>;
  places: () => Places;
}

/** Maximum number of products whose place is looked up: each takes about a millisecond of the main thread. */
const placesMax = 2_000;

/** Number of products after which the intake gets a turn. */
const restEvery = 32;

/** Delay after the publication from which a product counts as late. */
const lateUs = hourUs;

/** Reads the products of a period; null if there are none. Rejects with the signal's reason. */
export async function digestFacts(
  scope: DigestScope,
  sources: DigestSources,
  signal: AbortSignal,
): Promise<Facts | null> {
  const counted = createCount(sources.places);
  for await (const found of productsOf(scope, sources.products)) {
    counted.add(found);
    if (counted.products() % restEvery === 0) await setImmediate();
    signal.throwIfAborted();
  }
  return counted.products() === 0 ? null : counted.facts(scope);
}

async function* productsOf(
  { fromUs, untilUs, subscription, filter: text, maxAgeUs }: DigestScope,
  products: Pick<Products, 'find'>,
): AsyncGenerator<FoundProduct> {
  for (const entity of ['Products', 'DeletedProducts'] as const) {
    const filter = text === null ? null : requireFilter(text, 'Products');
    const received = { fromUs, untilUs };
    const query = { entity, filter, received, maxAgeUs, records: false, footprints: true } as const;
    yield* products.find(subscription === null ? query : { ...query, subscription });
  }
}

interface Scene {
  row: ProductRow;
  place: string | null;
}

function createCount(places: () => Places) {
  const [collections, types, over] = [createTally(), createTally(), createTally()];
  const clouds: number[] = [];
  const delaysUs: number[] = [];
  let [products, bytes, deleted, late, latestDelayUs] = [0, 0, 0, 0, 0];
  let clearest: (Scene & { cloud: number }) | null = null;
  let latest: (Scene & { sensedUs: number }) | null = null;
  return {
    products: () => products,
    add: ({ row, footprint }: FoundProduct) => {
      products += 1;
      if (row.deletionDateUs !== null) deleted += 1;
      bytes += Math.max(row.sizeBytes ?? 0, 0);
      collections.add(missionText({ ...row, platform: row.collection }) ?? 'other collections');
      types.add(codeOf(row.productType) ?? 'other types');
      const place = footprint && products <= placesMax ? places().placeOf(footprint) : null;
      if (place !== null) over.add(place);
      const { cloudCoverPercent: cloud, sensingStartUs: sensedUs, publicationDateUs } = row;
      if (cloud !== null && percentPhrase(cloud) !== null) {
        clouds.push(cloud);
        if (clearest === null || cloud < clearest.cloud) clearest = { row, place, cloud };
      }
      // Sensing cannot end in the future; a day allows for wrong clocks.
      if (sensedUs !== null && sensedUs < row.receivedAtUs + dayUs) {
        if (latest === null || sensedUs > latest.sensedUs) latest = { row, place, sensedUs };
        if (publicationDateUs !== null && publicationDateUs > sensedUs)
          delaysUs.push(publicationDateUs - sensedUs);
      }
      const receiptUs = row.receivedAtUs - (publicationDateUs ?? Number.POSITIVE_INFINITY);
      if (receiptUs > lateUs) late += 1;
      latestDelayUs = Math.max(latestDelayUs, receiptUs);
    },
    facts: (scope: DigestScope): Facts => {
      const delay = durationPhrase(medianOf(delaysUs));
      return knownFacts({
        count: countText(products),
        period: periodText(scope),
        subscription: scope.subscription,
        collections: collections.text(),
        types: types.text(),
        place: over.text(),
        cloud: percentPhrase(medianOf(clouds)),
        clearest: clearest && sceneText(clearest),
        latest: latest && sceneText(latest),
        delay: delay && `${delay} after sensing`,
        late:
          late === 0
            ? null
            : `${countText(late)} (at most ${durationPhrase(latestDelayUs)} after publication)`,
        deleted: deleted === 0 ? null : countText(deleted),
        size: sizePhrase(bytes),
      });
    },
  };
}

/** Returns `Sentinel-2A over northern Italy, 20 May 2024 10:15 UTC, 3 % cloud`. */
function sceneText({ row, place }: Scene): string {
  const cloud = percentPhrase(row.cloudCoverPercent);
  const parts = [datePhrase(row.sensingStartUs), cloud && `${cloud} cloud`].filter(Boolean);
  const over = place === null ? '' : ` over ${place}`;
  return [`${missionText(row) ?? 'a scene'}${over}`, ...parts].join(', ');
}

/** Returns the lower of the two middle values, so that it is a real one; null without values. */
function medianOf(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

/** `20 May 2024`, `20 May 2024 10:00 to 11:00 UTC`, or both ends with date and time. */
function periodText({ fromUs, untilUs }: DigestScope): string | null {
  const [day, lastDay] = [dayPhrase(fromUs), dayPhrase(untilUs - 1)];
  if (day === null || lastDay === null) return null;
  const isWhole = fromUs % dayUs === 0 && untilUs % dayUs === 0;
  if (isWhole) return day === lastDay ? day : `${day} to ${lastDay}`;
  if (day === lastDay && untilUs % dayUs !== 0)
    return `${day} ${timeOf(fromUs)} to ${timeOf(untilUs)} UTC`;
  return `${datePhrase(fromUs)} to ${datePhrase(untilUs)}`;
}

const namesMax = 4;

/** Counts names. Different ones are few, except places, of which there are at most `placesMax`. */
function createTally() {
  const counts = new Map<string, number>();
  return {
    add: (name: string) => void counts.set(name, (counts.get(name) ?? 0) + 1),
    /** Returns `Sentinel-2 (12), Sentinel-1 (3) and 2 others`, the most frequent first; null without names. */
    text: (): string | null => {
      const sorted = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
      const named = sorted
        .slice(0, namesMax)
        .map(([name, count]) => `${name} (${countText(count)})`);
      if (sorted.length > namesMax) named.push(`${sorted.length - namesMax} others`);
      return andList(named) || null;
    },
  };
}

/** Returns the text without a model. */
export function digestTemplate(facts: Facts): string {
  const clauses = [
    facts.count === '1' ? '{count} product' : '{count} products',
    ' received for {subscription}',
    ', {period}',
    ': {collections}',
    '. Places: {place}',
    '. Clearest: {clearest}',
    '. Latest: {latest}',
    '. Published {delay} (median)',
    '. Late: {late}',
    '. Deleted since: {deleted}',
  ];
  return insertValues(sentenceOf(clauses, facts), facts);
}
