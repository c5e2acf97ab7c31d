/** Reads the footprint of a product record: its `GeoFootprint` (GeoJSON), else its `Footprint` (well-known text). */
import type { AnyGeometry, Position, Ring, Rings } from '../domain/filter-tree.ts';
import { jsonOf } from '../domain/text.ts';
import { joinParts, partsOf } from './geometry/ring.ts';
import { type ProductRecord, partOf } from './product-record.ts';
import { asNumber } from './values.ts';

/**
 * Returns the geometry, in time linear in its length; null if neither form can be read. Rings may be open,
 * self-intersecting or out of range. Coordinates after the first two are ignored.
 */
export function footprintOf({ GeoFootprint, Footprint }: ProductRecord): AnyGeometry | null {
  return geometryOf(GeoFootprint) ?? (typeof Footprint === 'string' ? parseText(Footprint) : null);
}

/** Maximum nesting of collections. */
const depthMax = 8;

/** Reads GeoJSON without validation of the coordinates. Parts of a collection that cannot be read are left out. */
function geometryOf(value: unknown, depth = 0): AnyGeometry | null {
  const [type, coordinates] = [partOf(value, 'type'), partOf(value, 'coordinates')];
  if (type === 'GeometryCollection') {
    const members = depth < depthMax ? listOf(partOf(value, 'geometries')) : [];
    const geometries = members.flatMap((one) => geometryOf(one, depth + 1) ?? []);
    return geometries.length === 0 ? null : joinParts(partsOf({ type, geometries }));
  }
  if (type === 'Point' && isPosition(coordinates)) return { type, coordinates };
  if (type === 'MultiPoint' && isRing(coordinates)) return { type, coordinates };
  if (type === 'LineString' && isLine(coordinates)) return { type, coordinates };
  if (type === 'MultiLineString' && isListOf(coordinates, isLine)) return { type, coordinates };
  if (type === 'Polygon' && isRings(coordinates)) return { type, coordinates };
  if (type === 'MultiPolygon' && isListOf(coordinates, isRings)) return { type, coordinates };
  return null;
}

function isPosition(value: unknown): value is Position {
  return Array.isArray(value) && Number.isFinite(value[0]) && Number.isFinite(value[1]);
}

const isRing = (value: unknown): value is Ring => isListOf(value, isPosition);
const isRings = (value: unknown): value is Rings => isListOf(value, isRing);
const isLine = (value: unknown): value is Ring => isRing(value) && value.length > 1;

function isListOf<Item>(value: unknown, isItem: (item: unknown) => item is Item): value is Item[] {
  return Array.isArray(value) && value.length > 0 && value.every(isItem);
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const textForm = /^(?:geo(?:graphy|metry)')?(?:\s*SRID\s*=\s*4326\s*;)?([^';]*)'?$/i;

const types: Readonly<Record<string, AnyGeometry['type']>> = {
  POINT: 'Point',
  MULTIPOINT: 'MultiPoint',
  LINESTRING: 'LineString',
  MULTILINESTRING: 'MultiLineString',
  POLYGON: 'Polygon',
  MULTIPOLYGON: 'MultiPolygon',
  GEOMETRYCOLLECTION: 'GeometryCollection',
};

/** Words between parentheses and commas: a position, or a type. */
const words = /[^\s(),]+(?:\s+[^\s(),]+)*/g;

/** Parses `geography'SRID=4326;POLYGON ((…))'` as JSON: `["POLYGON",[[…]]]`. */
function parseText(text: string): AnyGeometry | null {
  const [, body = ''] = textForm.exec(text.trim()) ?? [];
  const lists = body.replaceAll(words, jsonOfWords).replaceAll('(', '[').replaceAll(')', ']');
  const [geometry, ...others] = objectsIn(jsonOf(`[${lists}]`), 0);
  return others.length === 0 ? geometryOf(geometry) : null;
}

/** `1 2 3` becomes `[1,2]`, and `POINT Z` becomes `"POINT",`, before its list. */
function jsonOfWords(text: string): string {
  const [first = '', ...others] = text.split(/\s+/);
  const numbers = [first, ...others].map(asNumber);
  if (!numbers.includes(null)) return JSON.stringify(numbers.slice(0, 2));
  const isEmpty = [first, ...others].at(-1)?.toUpperCase() === 'EMPTY';
  const type = first.toUpperCase().replace(/ZM?$|M$/, '');
  return `${JSON.stringify(type)},${isEmpty ? '[]' : ''}`;
}

/** Converts a list of types, each with its coordinates, to GeoJSON objects. */
function objectsIn(list: unknown, depth: number): unknown[] {
  const items = depth > depthMax ? [] : listOf(list);
  return items.flatMap((word, i): unknown[] => {
    if (typeof word !== 'string') return [];
    const [type, value] = [types[word], items[i + 1]];
    if (type === 'GeometryCollection') return [{ type, geometries: objectsIn(value, depth + 1) }];
    if (type === 'Point') return [{ type, coordinates: listOf(value)[0] }];
    // Each point may be in parentheses.
    const isLoose = type === 'MultiPoint';
    return [{ type, coordinates: isLoose ? listOf(value).map(onlyItem) : value }];
  });
}

function onlyItem(list: unknown): unknown {
  return Array.isArray(list) && list.length === 1 ? list[0] : list;
}
