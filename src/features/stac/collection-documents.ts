/** `/stac/collections`: the list of collections, its selection and its pages. */
import type { Box } from '../../filter/filter-tree.ts';
import type { CollectionSummary, Products } from '../../filter/products.ts';
import { boxOf } from './areas.ts';
import { collectionId } from './collections.ts';
import { globe } from './description.ts';
import { type Interval, readInterval } from './interval.ts';
import { limitMax, pageToken, readPageToken, type StacSearch } from './search.ts';

/** Lists collections; rejects as `Products` does. */
export type CollectionList = () => Promise<readonly CollectionSummary[]>;

/** A list may be out of date by this multiple of the time that it takes to read. */
const reuseFactor = 20;

/** Maximum time to read the list. */
const listTimeoutMs = 60_000;

/**
 * Creates the list of collections, which reads the whole index: it is read again after changes, but costs at most a
 * twentieth of the time. `nowUs` is the clock.
 */
export function createCollectionList(products: Products, nowUs: () => number): CollectionList {
  let last: { position: number; readAtUs: number; tookUs: number } | undefined;
  let list: readonly CollectionSummary[] = [];
  let reading: Promise<readonly CollectionSummary[]> | undefined;
  const read = async (position: number, startUs: number) => {
    list = await products.collections(AbortSignal.timeout(listTimeoutMs));
    const endUs = nowUs();
    last = { position, readAtUs: endUs, tookUs: Math.max(0, endUs - startUs) };
    return list;
  };
  return async () => {
    const position = await products.indexedPosition();
    const startUs = nowUs();
    const isCurrent = last?.position === position;
    const isRecent =
      last !== undefined && Math.abs(startUs - last.readAtUs) < reuseFactor * last.tookUs;
    if (isCurrent || isRecent) return list;
    // Concurrent requests share one reading.
    reading ??= read(position, startUs).finally(() => {
      reading = undefined;
    });
    return reading;
  };
}

/**
 * Returns a page of the collections whose extents intersect box and interval, sorted by id; without a limit all of
 * them. Throws `invalid`.
 */
export function pageOfCollections(
  all: readonly CollectionSummary[],
  { bbox, datetime, limit = limitMax, token }: StacSearch,
) {
  const tests = [
    ...(bbox === undefined ? [] : [meets(boxOf(bbox))]),
    ...(datetime === undefined ? [] : [isSensedIn(readInterval(datetime))]),
  ];
  const matching = all
    .filter((one) => tests.every((test) => test(one)))
    .map((summary) => ({ id: collectionId(summary), summary }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const { rel, place } = readPageToken(token);
  const size = Math.min(limit, limitMax);
  const page =
    rel === 'next'
      ? matching.filter(({ id }) => id > place).slice(0, size)
      : matching.filter(({ id }) => id < place).slice(-size);
  const [first, last] = [page[0], page.at(-1)];
  return {
    collections: page.map(({ summary }) => summary),
    /** Number of collections on all pages. */
    matched: matching.length,
    /** Tokens of the other pages. */
    tokens: [
      ...(first === undefined || first === matching[0] ? [] : [pageToken('prev', first.id)]),
      ...(last === undefined || last === matching.at(-1) ? [] : [pageToken('next', last.id)]),
    ],
  };
}

type CollectionTest = (summary: CollectionSummary) => boolean;

const meets = (area: Box): CollectionTest => {
  const ranges = rangesOf(area);
  return ({ box }) => {
    const { west, south, east, north } = box ?? globe;
    const isBetween = south <= area.north && north >= area.south;
    return isBetween && ranges.some(([from, to]) => west <= to && east >= from);
  };
};

/** Returns the ranges of longitude, two for a box across the antimeridian. */
function rangesOf({ west, east }: Box): [number, number][] {
  if (west <= east) return [[west, east]];
  return [
    [west, 180],
    [-180, east],
  ];
}

const isSensedIn =
  ({ fromUs, toUs }: Interval): CollectionTest =>
  ({ sensingStartUs, sensingEndUs }) =>
    (sensingStartUs ?? -Infinity) <= (toUs ?? Infinity) &&
    (sensingEndUs ?? Infinity) >= (fromUs ?? -Infinity);
