/** Measured kinds of query, each with many values from existing products. */

import { collectionId } from '../src/features/stac/collections.ts';
import {
  and,
  cloudCover,
  collection,
  deleted,
  type Expression,
  intersects,
  name,
  productType,
  sensed,
} from '../src/filter/builder.ts';
import type { Entity } from '../src/filter/filter-tree.ts';
import type { FoundProduct, Products } from '../src/filter/products.ts';
import { createRandom, type Random } from '../src/sandbox/clock.ts';
import { toNameTime } from '../src/sandbox/products/product-generator.ts';

/** A kind of query. */
export interface QueryCase {
  readonly name: string;
  readonly entity: Entity;
  readonly filters: readonly Expression[];
  /** The same filters in CQL2; absent where STAC has no such products. */
  readonly cql2?: ReadonlyMap<Expression, object>;
}

const hourMs = 3_600_000;
const windowMs = 6 * hourMs;
const box = { halfWidthDegrees: 5, halfHeightDegrees: 4 };
const polygon = { corners: 7, radiusDegrees: 3 };
/** Excludes places near the antimeridian and the poles, where shapes would have to be split. */
const farthest = { longitude: 170, latitude: 78 };

/** Parts of many names. */
const commonParts = ['MSIL2A', 'MSIL1C', 'IW_GRDH', 'IW_SLC', 'OL_1_EFR', 'S5P_NRTI', 'N0511'];

/** Properties of a product that queries use. */
interface Sample {
  readonly name: string;
  /** Ms since 1970. */
  readonly startMs: number;
  readonly collection: string;
  readonly productType: string;
  readonly tile: string | null;
  readonly place: readonly [longitude: number, latitude: number];
}

/** A filter in the language of the catalogue, and in CQL2. */
type InBoth = readonly [filter: Expression, cql2: object];

function compared(op: string, property: string, value: unknown): object {
  return { op, args: [{ property }, value] };
}

function both([one, oneInCql2]: InBoth, [other, otherInCql2]: InBoth): InBoth {
  return [and(one, other), { op: 'and', args: [oneInCql2, otherInCql2] }];
}

/** Creates `count` filters of each kind from random products; deterministic for an index. */
export async function createQueryCases(
  products: Products,
  lastPosition: number,
  count: number,
): Promise<QueryCase[]> {
  const random = createRandom(5);
  const samples = await drawSamples(products, lastPosition, count, random);
  const newestMs = await newestReceiptMs(products);
  const ofProducts = (title: string, filterOf: (sample: Sample, index: number) => InBoth) => {
    const both = samples.map(filterOf);
    const filters = both.map(([filter]) => filter);
    return { name: title, entity: 'Products', filters, cql2: new Map(both) } satisfies QueryCase;
  };
  const within = ({ startMs }: Sample): InBoth => {
    const fromMs = startMs - Math.floor(random.between(0, windowMs));
    const [from, until] = [new Date(fromMs), new Date(fromMs + windowMs)];
    const at = (op: string, date: Date) =>
      compared(op, 'datetime', { timestamp: date.toISOString() });
    return [
      and(sensed.from(from), sensed.until(until)),
      { op: 'and', args: [at('>=', from), at('<', until)] },
    ];
  };
  const containing = (part: string): InBoth => {
    const pattern = `%${part.replaceAll('_', String.raw`\_`)}%`;
    return [name.contains(part), compared('like', 'title', pattern)];
  };
  const inArea = (area: object): InBoth => [
    intersects(area),
    { op: 's_intersects', args: [{ property: 'geometry' }, area] },
  ];
  return [
    ofProducts('name exact', (sample) => [
      name.eq(sample.name),
      compared('=', 'title', sample.name),
    ]),
    ofProducts('name contains', (sample) => containing(rarePartOf(sample))),
    ofProducts('name contains, common', (_, index) =>
      containing(commonParts[index % commonParts.length] ?? ''),
    ),
    ofProducts('collection, type, 6 h', (sample) => {
      const { collection: mission, productType: type } = sample;
      return both(
        [
          and(collection(mission), productType.eq(type)),
          compared('=', 'collection', collectionId({ mission, productType: type })),
        ],
        within(sample),
      );
    }),
    ofProducts('box, 6 h', (sample) => both(inArea(boxAround(sample)), within(sample))),
    ofProducts('polygon, cloud cover', (sample) => {
      const percent = random.integer(5, 40);
      return both(inArea(polygonAround(sample)), [
        cloudCover.le(percent),
        compared('<=', 'eo:cloud_cover', percent),
      ]);
    }),
    {
      name: 'deleted since',
      entity: 'DeletedProducts',
      // From ten minutes to a day, like a program that resumes after a pause.
      filters: samples.map(() =>
        deleted.from(new Date(newestMs - Math.floor((hourMs / 6) * 144 ** random.next()))),
      ),
    },
  ];
}

async function drawSamples(
  products: Products,
  lastPosition: number,
  count: number,
  random: Random,
): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let tries = 0; samples.length < count; tries += 1) {
    if (tries > 100 * count + 1_000) throw new Error('too few products for queries');
    const after = { values: [], position: random.integer(1, lastPosition) };
    const query = { entity: 'Products', filter: null, after, limit: 1 } as const;
    for await (const found of products.find(query)) {
      const sample = sampleOf(found);
      if (sample !== null) samples.push(sample);
    }
  }
  return samples;
}

function sampleOf({ row, record }: FoundProduct): Sample | null {
  const { productName, sensingStartUs, collection: from, productType: type, tile } = row;
  const place = firstPosition(record.GeoFootprint);
  if (productName === null || sensingStartUs === null || from === null || type === null)
    return null;
  if (place === null) return null;
  const [longitude, latitude] = place;
  if (Math.abs(longitude) > farthest.longitude || Math.abs(latitude) > farthest.latitude)
    return null;
  const startMs = Math.floor(sensingStartUs / 1_000);
  return { name: productName, startMs, collection: from, productType: type, tile, place };
}

/** Returns the first position in a GeoJSON geometry. */
function firstPosition(geometry: unknown): readonly [number, number] | null {
  let inner: unknown = geometry;
  if (typeof inner !== 'object' || inner === null || !('coordinates' in inner)) return null;
  inner = inner.coordinates;
  while (Array.isArray(inner) && Array.isArray(inner[0])) inner = inner[0];
  if (!Array.isArray(inner)) return null;
  const [longitude, latitude] = inner;
  return typeof longitude === 'number' && typeof latitude === 'number'
    ? [longitude, latitude]
    : null;
}

/** Returns a selective part of a name: a tile, or the time of a scene. */
function rarePartOf({ tile, name: whole, startMs }: Sample): string {
  if (tile !== null) return `_T${tile}_`;
  return /\d{8}T\d{6}/.exec(whole)?.[0] ?? toNameTime(startMs);
}

function boxAround({ place: [longitude, latitude] }: Sample) {
  const [west, east] = [longitude - box.halfWidthDegrees, longitude + box.halfWidthDegrees];
  const [south, north] = [latitude - box.halfHeightDegrees, latitude + box.halfHeightDegrees];
  const ring = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ];
  return { type: 'Polygon', coordinates: [ring] };
}

function polygonAround({ place: [longitude, latitude] }: Sample) {
  const { corners, radiusDegrees } = polygon;
  const ring = Array.from({ length: corners + 1 }, (_, corner) => {
    const angle = (2 * Math.PI * (corner % corners)) / corners;
    return [
      longitude + radiusDegrees * Math.cos(angle),
      latitude + radiusDegrees * Math.sin(angle),
    ];
  });
  return { type: 'Polygon', coordinates: [ring] };
}

async function newestReceiptMs(products: Products): Promise<number> {
  for await (const { row } of products.find({ entity: 'Products', filter: null, limit: 1 })) {
    return Math.floor(row.receivedAtUs / 1_000);
  }
  throw new Error('the index is empty');
}
