/** Summaries of the existing products by mission and product type. */
import { joinedBox } from '../../../filter/geometry/ring.ts';
import type { CollectionSummary } from '../../../filter/products.ts';
import { type Database, prepared } from '../../../store/engine/database.ts';
import type { LongQuery } from './product-queries.ts';
import { type IdWindow, idWindows } from './search/drivers.ts';

/** Ids read between two pauses: some 50 ms. */
const windowSize = 20_000;

type Part = Omit<
  CollectionSummary,
  'box' | 'constellations' | 'platforms' | 'orbitDirections' | 'levels'
> & {
  west: number | null;
  south: number | null;
  east: number | null;
  north: number | null;
  /** Lists in JSON. */
  constellations: string;
  platforms: string;
  orbitDirections: string;
  levels: string;
};

/** A product has the boxes 2n and 2n+1; only the first decides about its count. */
const partSql = `SELECT p.collection AS mission, p.product_type AS productType,
    sum(b.id IS NULL OR b.id & 1 = 0) AS products,
    min(p.sensing_start_us) AS sensingStartUs, max(p.sensing_end_us) AS sensingEndUs,
    min(p.cloud_cover) AS cloudCoverMin, max(p.cloud_cover) AS cloudCoverMax,
    min(b.west) AS west, min(b.south) AS south, max(b.east) AS east, max(b.north) AS north,
    json_group_array(DISTINCT p.platform_name) AS constellations,
    json_group_array(DISTINCT p.platform_name ||
      CASE WHEN p.platform_serial GLOB '[A-Z]' THEN p.platform_serial ELSE '' END) AS platforms,
    json_group_array(DISTINCT p.orbit_direction) AS orbitDirections,
    json_group_array(DISTINCT p.processing_level) AS levels
  FROM product p LEFT JOIN product_box b ON b.id IN (2 * p.id, 2 * p.id + 1)
  WHERE p.id > ? AND p.id < ? AND p.deleted = 0
  GROUP BY p.collection, p.product_type`;

/** Reads the whole index: two seconds for a million products. Sorted by mission and product type. */
export async function summarizeCollections({
  index,
  call,
}: LongQuery): Promise<CollectionSummary[]> {
  const found = new Map<string, CollectionSummary>();
  for (const window of idWindows(index, windowSize)) {
    for (const part of partsOf(index, window)) {
      const key = JSON.stringify([part.mission, part.productType]);
      const known = found.get(key);
      found.set(key, known === undefined ? summaryOf(part) : joined(known, summaryOf(part)));
    }
    await call.pause();
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, summary]) => summary);
}

function partsOf(index: Database, { after, before }: IdWindow): Part[] {
  return prepared<[number, number], Part>(index, partSql).all(after, before);
}

function summaryOf(part: Part): CollectionSummary {
  const { west, south, east, north, constellations, platforms, orbitDirections, levels, ...rest } =
    part;
  const isKnown = west !== null && south !== null && east !== null && north !== null;
  return {
    ...rest,
    // The index stores 32 bits and widens the box (decision 53).
    box: isKnown
      ? {
          west: Math.max(-180, west),
          south: Math.max(-90, south),
          east: Math.min(180, east),
          north: Math.min(90, north),
        }
      : null,
    constellations: valuesIn(constellations),
    platforms: valuesIn(platforms),
    orbitDirections: valuesIn(orbitDirections),
    levels: valuesIn(levels),
  };
}

function valuesIn(json: string): string[] {
  const values: unknown = JSON.parse(json);
  const texts = Array.isArray(values) ? values.filter((value) => typeof value === 'string') : [];
  return texts.sort();
}

function joined(one: CollectionSummary, other: CollectionSummary): CollectionSummary {
  const both = (a: readonly string[], b: readonly string[]) => [...new Set([...a, ...b])].sort();
  const [first, second] = [one.box ?? other.box, other.box ?? one.box];
  return {
    ...one,
    products: one.products + other.products,
    sensingStartUs: extreme(Math.min, one.sensingStartUs, other.sensingStartUs),
    sensingEndUs: extreme(Math.max, one.sensingEndUs, other.sensingEndUs),
    cloudCoverMin: extreme(Math.min, one.cloudCoverMin, other.cloudCoverMin),
    cloudCoverMax: extreme(Math.max, one.cloudCoverMax, other.cloudCoverMax),
    box: first === null || second === null ? null : joinedBox(first, second),
    constellations: both(one.constellations, other.constellations),
    platforms: both(one.platforms, other.platforms),
    orbitDirections: both(one.orbitDirections, other.orbitDirections),
    levels: both(one.levels, other.levels),
  };
}

function extreme(
  choose: (a: number, b: number) => number,
  one: number | null,
  other: number | null,
): number | null {
  return one === null || other === null ? (one ?? other) : choose(one, other);
}
