/** Delays, counted values and collections: queries of many rows, which pause so that others can run. */
import { DDSketch } from '@datadog/sketches-js';
import { hourOf } from '../../../core/terms/dates.ts';
import type { NotificationQuery } from '../../../core/terms/ports.ts';
import type { Box } from '../../../filter/filter-tree.ts';
import {
  type CollectionSummary,
  type DelayPercentiles,
  delayStages,
  type Facets,
  facetFields,
  type Products,
  type Timeliness,
  totalDelays,
} from '../../../filter/products.ts';
import { type Database, prepared } from '../../../store/engine/database.ts';
import { narrowByTime } from '../../../store/log/queries.ts';
import { readLog } from './product-file.ts';
import { type LongQuery, matches } from './product-queries.ts';
import { toProductRow } from './product-schema.ts';
import { conditionIf } from './search/conditions.ts';
import { idWindows } from './search/drivers.ts';
import { candidatesOf, planSearch } from './search/search.ts';

/** Rows between two pauses, about 20 ms. */
const rowsPerTurn = 10_000;
/** Groups whose percentiles are found between two pauses. */
const groupsPerTurn = 50;

/** Returns the delays by hour of receipt, and by collection, null first. */
export async function measureTimeliness(
  { index, log, call }: LongQuery,
  { collection: requested, ...query }: Parameters<Products['timeliness']>[0],
): Promise<Timeliness> {
  const stages = [...delayStages, ...totalDelays] as const;
  const total = stages.map(newSketch);
  const byHour: Groups<number> = new Map();
  const byCollection: Groups<string | null> = new Map();
  const rows = delayRows(
    index,
    readLog(() => narrowByTime(log, query)),
  );
  let examined = 0;
  for (const [collection, receivedUs, ...delaysUs] of rows) {
    examined += 1;
    if (examined % rowsPerTurn === 0) await call.pause();
    addTo(byCollection, collection, delaysUs);
    if (requested !== undefined && requested !== collection) continue;
    addAll(total, delaysUs);
    addTo(byHour, hourOf(receivedUs), delaysUs);
  }
  const hours = await sorted(byHour, call);
  const collections = await sorted(byCollection, call);
  return {
    total: percentilesOf(stages, total),
    hours: hours.map(([hourUs, delays]) => ({ hourUs, ...delays })),
    collections: collections.map(([collection, delays]) => ({ collection, ...delays })),
  };
}

/** Delays of each stage, by group. */
type Groups<Key> = Map<Key, readonly DDSketch[]>;

function addTo<Key>(groups: Groups<Key>, key: Key, delaysUs: readonly (number | null)[]): void {
  const sketches = groups.get(key) ?? delayStages.map(newSketch);
  groups.set(key, sketches);
  addAll(sketches, delaysUs);
}

/** Ignores unknown delays. */
function addAll(sketches: readonly DDSketch[], delaysUs: readonly (number | null)[]): void {
  for (const [i, sketch] of sketches.entries()) {
    const us = delaysUs[i] ?? null;
    if (us !== null) sketch.accept(us);
  }
}

/** Returns the percentiles of each group by key, null first. */
async function sorted<Key extends string | number | null>(
  groups: Groups<Key>,
  call: LongQuery['call'],
) {
  const found: [Key, ReturnType<typeof percentilesOf<(typeof delayStages)[number]>>][] = [];
  for (const [key, sketches] of groups) {
    found.push([key, percentilesOf(delayStages, sketches)]);
    if (found.length % groupsPerTurn === 0) await call.pause();
  }
  return found.sort(([a], [b]) => (a === null || (b !== null && a < b) ? -1 : 1));
}

function percentilesOf<Stage extends string>(
  stages: readonly Stage[],
  sketches: readonly DDSketch[],
) {
  const all = stages.map((stage, i) => [stage, percentilesIn(sketches[i])]);
  return Object.fromEntries(all) as Record<Stage, DelayPercentiles | null>;
}

/** Percentiles are within 1 %, so that the hours of months fit in memory: some kilobytes each. */
const newSketch = () => new DDSketch({ relativeAccuracy: 0.005 });

/** Percentiles are nearest ranks, the smallest delay that a percentage of all do not exceed. Null without delays. */
function percentilesIn(sketch: DDSketch | undefined): DelayPercentiles | null {
  if (sketch === undefined || sketch.count === 0) return null;
  const { count, min, max } = sketch;
  const at = (percent: number) => {
    // The library rounds the rank down: in the middle, no error of calculation changes it.
    const rank = Math.ceil((percent * count) / 100) - 0.5;
    const us = sketch.getValueAtQuantile(Math.min(1, rank / Math.max(1, count - 1)));
    return Math.min(Math.max(Number(us.toPrecision(4)), min), max) / 1_000_000;
  };
  const negative = sketch.negativeStore.count;
  return { count, negative, p50: at(50), p90: at(90), p99: at(99), max: max / 1_000_000 };
}

/**
 * A notification: collection, time of receipt, and delays in the order of `delayStages`, then of `totalDelays`. In
 * microseconds; null if a date is unknown.
 */
type DelayRow = [collection: string | null, receivedUs: number, ...delaysUs: (number | null)[]];

/**
 * Returns the delays of notifications between two positions and two times of receipt. Uses the PublicationDate of
 * the notification's own record, if there is one: the product's may come from a deletion and is then meaningless.
 * Recovered notifications have no NotificationDate (index-thread.ts).
 */
function delayRows(
  index: Database,
  { sinceUs, untilUs, subscription, afterPosition, beforePosition }: NotificationQuery,
): Iterable<DelayRow> {
  // Nothing was received in the period.
  if (afterPosition === undefined || beforePosition === undefined) return [];
  const [condition] = conditionIf('subscription = ?', subscription);
  const rows = index
    .prepare(
      `SELECT collection, received_us, published_us - sensing_end_us,
         notification_us - published_us, received_us - notification_us,
         iif(notification_us IS NULL OR published_us IS NULL, NULL, received_us - sensing_end_us),
         iif(notification_us IS NULL, NULL, received_us - published_us)
       FROM (
         SELECT e.*, p.sensing_end_us, p.collection,
           CASE event WHEN 'created' THEN coalesce(event_us, publication_us) END AS published_us
         FROM product_event e LEFT JOIN product p ON p.id = e.product
         WHERE position > ? AND position < ? AND received_us >= ? AND received_us < ?
       ) WHERE ${condition?.sql ?? 'TRUE'}`,
    )
    .raw()
    .iterate(afterPosition, beforePosition, sinceUs, untilUs, ...(condition?.values ?? []));
  return rows as Iterable<DelayRow>;
}

/** Products counted for facets: about 100 ms of work. */
const facetProductsMax = 10_000;
const facetValuesMax = 20;

/** Counts the newest matching products by value, the most frequent values first. */
export async function countFacets(
  { call, ...databases }: LongQuery,
  query: Parameters<Products['facets']>[0],
): Promise<Facets> {
  const plan = planSearch(query, databases.index);
  const counts = facetFields.map(() => new Map<string, number>());
  let counted = 0;
  let examined = 0;
  for (const candidate of candidatesOf(databases.index, plan, query)) {
    if ('after' in candidate) {
      await call.pause();
      continue;
    }
    examined += 1;
    if (examined % 1_000 === 0) await call.pause();
    if (!matches(databases, plan, candidate)) continue;
    const row = toProductRow(candidate);
    for (const [i, field] of facetFields.entries()) {
      const value = row[field];
      if (value !== null) counts[i]?.set(value, (counts[i].get(value) ?? 0) + 1);
    }
    counted += 1;
    if (counted >= facetProductsMax) break;
  }
  const values = facetFields.map((field, i) => [field, mostFrequent(counts[i] ?? new Map())]);
  return {
    counted,
    complete: counted < facetProductsMax,
    values: Object.fromEntries(values) as Facets['values'],
  };
}

function mostFrequent(counts: ReadonlyMap<string, number>) {
  return [...counts]
    .sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1))
    .slice(0, facetValuesMax)
    .map(([value, count]) => ({ value, count }));
}

/** Ids read between two pauses: some 50 ms. */
const windowSize = 20_000;

type ListName = 'constellations' | 'platforms' | 'orbitDirections' | 'levels';

/** A summary of some products. Lists are in JSON. */
type Part = Omit<CollectionSummary, ListName | 'box'> &
  Record<ListName, string> &
  Record<keyof Box, number | null>;

/** A product may have two boxes; only the first decides about its count. */
const partSql = `SELECT p.collection AS mission, p.product_type AS productType,
    sum(b.id IS NULL OR b.id & 128 = 0) AS products,
    min(p.sensing_start_us) AS sensingStartUs, max(p.sensing_end_us) AS sensingEndUs,
    min(p.cloud_cover) AS cloudCoverMin, max(p.cloud_cover) AS cloudCoverMax,
    min(b.west) AS west, min(b.south) AS south, max(b.east) AS east, max(b.north) AS north,
    json_group_array(DISTINCT p.platform_name) AS constellations,
    json_group_array(DISTINCT p.platform_name ||
      CASE WHEN p.platform_serial GLOB '[A-Z]' THEN p.platform_serial ELSE '' END) AS platforms,
    json_group_array(DISTINCT p.orbit_direction) AS orbitDirections,
    json_group_array(DISTINCT p.processing_level) AS levels
  FROM product p LEFT JOIN product_box b ON b.id IN (p.box_id, p.box_id + 128)
  WHERE p.id > ? AND p.id < ? AND p.deleted = 0
  GROUP BY p.collection, p.product_type`;

/** Reads the whole index: two seconds for a million products. Sorted by mission and product type. */
export async function summarizeCollections(query: LongQuery): Promise<CollectionSummary[]> {
  const { index, call } = query;
  const parts: Part[] = [];
  for (const { after, before } of idWindows(index, windowSize)) {
    parts.push(...prepared<[number, number], Part>(index, partSql).all(after, before));
    await call.pause();
  }
  const keyOf = ({ mission, productType }: Part) => JSON.stringify([mission, productType]);
  return [...Map.groupBy(parts, keyOf)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, ofCollection]) => summaryOf(ofCollection));
}

function summaryOf(parts: readonly Part[]): CollectionSummary {
  const { mission = null, productType = null } = parts[0] ?? {};
  type NumberName = Exclude<keyof Part, ListName | 'mission' | 'productType'>;
  const extreme = (choose: typeof Math.min, name: NumberName) => {
    const values = parts.flatMap((part) => part[name] ?? []);
    return values.length === 0 ? null : choose(...values);
  };
  const listOf = (name: ListName) => {
    const texts = parts.flatMap((part) => JSON.parse(part[name]) as (string | null)[]);
    return [...new Set(texts.filter((text) => text !== null))].sort();
  };
  const [west, south] = [extreme(Math.min, 'west'), extreme(Math.min, 'south')];
  const [east, north] = [extreme(Math.max, 'east'), extreme(Math.max, 'north')];
  const isKnown = west !== null && south !== null && east !== null && north !== null;
  return {
    ...{ mission, productType },
    products: parts.reduce((sum, part) => sum + part.products, 0),
    sensingStartUs: extreme(Math.min, 'sensingStartUs'),
    sensingEndUs: extreme(Math.max, 'sensingEndUs'),
    cloudCoverMin: extreme(Math.min, 'cloudCoverMin'),
    cloudCoverMax: extreme(Math.max, 'cloudCoverMax'),
    constellations: listOf('constellations'),
    platforms: listOf('platforms'),
    orbitDirections: listOf('orbitDirections'),
    levels: listOf('levels'),
    // The index stores 32 bits and widens the box (decision 53).
    box: isKnown
      ? {
          west: Math.max(-180, west),
          south: Math.max(-90, south),
          east: Math.min(180, east),
          north: Math.min(90, north),
        }
      : null,
  };
}
