/** What the demo's filtered subscription is about, as the catalogue's filter and in the words of `query`. */
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { Box } from '../../domain/geometry.ts';
import { parseFilter } from '../../filter/parse.ts';

export const demoCollection = 'SENTINEL-2';

/**
 * From 20 to 60 degrees north, all around: the made-up satellites are where real ones could be, so any
 * one country may see none of them for hours.
 */
export const demoBox: Box = { west: -180, south: 20, east: 180, north: 60 };

const { west, south, east, north } = demoBox;
const corners = [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
  [west, south],
] as const;
const ring = corners.map((corner) => corner.join(' ')).join(',');

/** As it would be given to `register`. */
export const demoFilter = `Collection/Name eq '${demoCollection}' and OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${ring}))')`;

/** The same as a tree. */
export function demoTree(): FilterTree {
  return parseFilter(demoFilter).tree;
}

/** The place alone, as `query -- products --bbox` asks for it. */
export const demoPlace: FilterTree = {
  node: 'intersects',
  argument: 'area',
  srid: 4326,
  geometry: { type: 'Polygon', coordinates: [corners] },
};

/** The flags of `query` that ask for the same products as the filter. */
export const demoQueryFlags = `--collection ${demoCollection} --bbox=${[west, south, east, north].join(',')}`;
