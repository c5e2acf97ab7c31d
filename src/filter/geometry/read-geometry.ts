/** Reads geometries: footprints of records, as far as they can be read; areas and boxes of users, which must be valid. */
import Flatbush from 'flatbush';
import { AppError } from '../../core/terms/app-error.ts';
import { jsonOf } from '../../core/terms/text.ts';
import type { AnyGeometry, Box, Geometry, Position, Ring, Rings } from '../filter-tree.ts';
import { asNumber, type ProductRecord, partOf } from '../values.ts';
import { isClosed, joinParts, partsOf, pointsOf, polygonsOf } from './ring.ts';
import { boxesOf, toShape } from './shape.ts';

/**
 * Returns the footprint of a record: its `GeoFootprint` (GeoJSON), else its `Footprint` (well-known text). Takes time
 * linear in their length; null if neither can be read. Rings may be open,
 * self-intersecting or out of range. Coordinates after the first two are ignored.
 */
export function footprintOf({ GeoFootprint, Footprint }: ProductRecord): AnyGeometry | null {
  return (
    geometryOf(GeoFootprint) ?? (typeof Footprint === 'string' ? parseGeometry(Footprint) : null)
  );
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

/** Types of GeoJSON, by their name in well-known text. */
export const geometryTypes: Readonly<Record<string, AnyGeometry['type']>> = {
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

/** Parses `geography'SRID=4326;POLYGON ((…))'` as JSON: `["POLYGON",[[…]]]`. Null for another text. */
export function parseGeometry(text: string): AnyGeometry | null {
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
    const [type, value] = [geometryTypes[word], items[i + 1]];
    if (type === 'GeometryCollection') return [{ type, geometries: objectsIn(value, depth + 1) }];
    if (type === 'Point') return [{ type, coordinates: onlyItem(value) }];
    // Each point may be in parentheses.
    const isLoose = type === 'MultiPoint';
    return [{ type, coordinates: isLoose ? listOf(value).map(onlyItem) : value }];
  });
}

function onlyItem(list: unknown): unknown {
  return Array.isArray(list) && list.length === 1 ? list[0] : list;
}

/** GeoJSON has only one reference system since 2016; older files may name another (GeoJSON 2008, 3). */
const longitudeFirst = /(?:CRS:?84|EPSG:{1,2}4326|WGS ?84)$/i;

/** Member with the parts of each collection. */
const collections = new Map<unknown, string>([
  ['FeatureCollection', 'features'],
  ['GeometryCollection', 'geometries'],
]);

/**
 * Returns the geometries of a GeoJSON geometry, feature or collection, without heights: at least one. Throws AppError
 * `invalid`. `geometryFaults` checks the rings.
 */
export function readGeometries(value: unknown): AnyGeometry[] {
  const found = geometriesIn(value, 0);
  if (found.length > 0) return found;
  return refuse('The GeoJSON has no geometry. Add one, such as a Polygon.');
}

function geometriesIn(value: unknown, depth: number): AnyGeometry[] {
  const type = partOf(value, 'type');
  if (typeof type !== 'string') {
    return refuse('Not GeoJSON: it must be an object with a "type", such as {"type":"Polygon",…}.');
  }
  const system = partOf(partOf(partOf(value, 'crs'), 'properties'), 'name');
  if (typeof system === 'string' && !longitudeFirst.test(system)) {
    const name = JSON.stringify(system.slice(0, 60));
    refuse(
      `The GeoJSON has the reference system ${name}. Convert the coordinates to WGS 84 (EPSG:4326).`,
    );
  }
  if (depth > depthMax) refuse('The GeoJSON nests collections too deeply. Flatten it.');
  const member = collections.get(type);
  if (member !== undefined) {
    return listOf(partOf(value, member)).flatMap((one) => geometriesIn(one, depth + 1));
  }
  if (type === 'Feature') {
    const geometry = partOf(value, 'geometry');
    // A feature may have no geometry (RFC 7946, 3.2).
    return geometry === null ? [] : geometriesIn(geometry, depth + 1);
  }
  const read = geometryOf(value);
  if (read !== null && read.type !== 'GeometryCollection') return [withoutHeights(read)];
  const shown = JSON.stringify(type.slice(0, 40));
  return refuse(
    `The GeoJSON geometry of the type ${shown} cannot be read: positions must be lists of numbers, longitude first, nested as in RFC 7946.`,
  );
}

type Numbers = readonly unknown[];

function withoutHeights({ type, coordinates }: Exclude<AnyGeometry, { geometries: unknown }>) {
  const flat = (value: Numbers): Numbers =>
    typeof value[0] === 'number' ? value.slice(0, 2) : value.map((one) => flat(one as Numbers));
  // The nesting stays.
  return { type, coordinates: flat(coordinates) } as AnyGeometry;
}

/** Returns the geometries, all of which must be points or polygons. Throws AppError `invalid`. */
export function readAreas(value: unknown): Geometry[] {
  return readGeometries(value).map((geometry) => {
    if (isArea(geometry)) return geometry;
    return refuse(
      `The GeoJSON type ${JSON.stringify(geometry.type)} cannot be used in a filter. Use Point, MultiPoint, Polygon or MultiPolygon; convert a line to a narrow Polygon.`,
    );
  });
}

export function isArea(geometry: AnyGeometry): geometry is Geometry {
  return /Point$|Polygon$/.test(geometry.type);
}

/** Maximum number of reported faults. */
const faultsMax = 20;

/**
 * Returns up to 20 faults of a geometry for which the catalogue would refuse it, each with its place and correction:
 * positions out of range, rings that are not closed or have no area. Crossings are not searched: the catalogue does that.
 */
export function geometryFaults(geometry: Geometry): string[] {
  return [
    ...pointsOf(geometry).flatMap(positionFaults),
    ...polygonsOf(geometry).flat().flatMap(ringFaults),
  ].slice(0, faultsMax);
}

function ringFaults(ring: Ring): string[] {
  const faults = ring.flatMap(positionFaults);
  if (faults.length > 0) return faults;
  if (!isClosed(ring)) {
    return [
      `The ring that ends at ${ring.at(-1)?.join(' ')} is not closed: repeat its first position.`,
    ];
  }
  const corners = new Set(ring.map((position) => position.join(' ')));
  if (corners.size > 2) return [];
  return [
    `The ring at ${ring[0]?.join(' ')} has too few positions: it needs three different ones.`,
  ];
}

function positionFaults([longitude, latitude]: Position): string[] {
  if (Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90) return [];
  return [
    `${longitude} ${latitude} is out of range: longitude, the first number, is from -180 to 180, latitude from -90 to 90.`,
  ];
}

/** Joins points, or polygons that are apart, to one geometry; null for other areas. */
export function joinAreas(areas: readonly Geometry[]): Geometry | null {
  const [points, polygons] = [areas.flatMap(pointsOf), areas.flatMap(polygonsOf)];
  const mayTouch = areas.length === 1 || polygons.length === 0;
  const joined = joinParts({ points, lines: [], polygons });
  return isArea(joined) && (mayTouch || areApart(areas)) ? joined : null;
}

/** True if the bounding boxes do not touch: parts that touch may make a geometry invalid. */
function areApart(areas: readonly Geometry[]): boolean {
  const boxes = areas.flatMap((area, owner) =>
    boxesOf(toShape(area)).map((box) => ({ box, owner })),
  );
  const index = new Flatbush(boxes.length);
  for (const { box } of boxes) index.add(box.west, box.south, box.east, box.north);
  index.finish();
  return boxes.every(({ box: { west, south, east, north }, owner }) => {
    const others = index.search(west, south, east, north, (i) => boxes[i]?.owner !== owner);
    return others.length === 0;
  });
}

function refuse(message: string): never {
  throw new AppError('invalid', message);
}

/** Maximum length of an edge. One of more than 180 degrees would be read as the shorter way round the globe. */
const edgeMaxDegrees = 90;

const advice = 'The order is west,south,east,north.';

export interface BoundingBox {
  /** A point for a box without extent; two polygons for a box across the antimeridian (west > east). */
  geometry: Geometry;
  /** A likely mistake in the box; null if there is none. */
  warning: string | null;
}

/** Throws `invalid`, also for a box that is a line. `geometryFaults` checks whether the sides are far enough apart. */
export function parseBoundingBox(text: string): BoundingBox {
  const box = readBox(text);
  const isNarrow = widthOf(box) === 0;
  if (isNarrow !== (box.south === box.north)) {
    const isTurn = isNarrow && box.west !== box.east;
    const hint = isTurn ? ' 180 and -180 are the same meridian.' : '';
    refuse(`The box has no area.${hint} Widen it, or use a point.`);
  }
  return { geometry: areaOfBox(box), warning: warningOf(box) };
}

/** Returns the sides of a box, also of one without area. Throws `invalid`. */
export function readBox(text: string): Box {
  const numbers = text.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  const [west = 0, south = 0, east = 0, north = 0] = numbers;
  if (numbers.length !== 4 || !numbers.every(Number.isFinite)) {
    refuse('Use west,south,east,north in degrees, such as 5.5,45,11,48.');
  }
  const box = { west, south, east, north };
  if (Math.abs(west) > 180 || Math.abs(east) > 180 || !isLatitude(south) || !isLatitude(north)) {
    refuse(
      `Longitudes are from -180 to 180, latitudes from -90 to 90; ${numbers.join(',')} is out of range. ${advice}`,
    );
  }
  if (south > north) {
    refuse(`South (${south}) is greater than north (${north}). ${advice}`);
  }
  return box;
}

const isLatitude = (degrees: number) => Math.abs(degrees) <= 90;

/**
 * Warns about a box across the antimeridian whose longitudes could be latitudes. It spans more than half the globe,
 * so latitudes were probably written first, from the northern corner: `48,6,45,11`.
 */
export function warningOf(box: Box): string | null {
  const { west, south, east, north } = box;
  if (west <= east || Math.abs(west) > 90 || Math.abs(east) > 90) return null;
  return `The box spans ${Math.round(widthOf(box))} degrees of longitude, across the antimeridian. ${advice} If you wrote latitudes first, use ${[south, east, north, west].join(',')}.`;
}

/** Width in degrees, at most 360; -180 and 180 are the same meridian. */
function widthOf({ west, east }: Box): number {
  return east >= west ? east - west : east + 360 - west;
}

/**
 * Returns a box as a geometry: split at the antimeridian (RFC 7946, 3.1.9), as it is unknown how the catalogue reads an
 * edge across it. A box without height or width becomes a ring without area, or a point.
 */
export function areaOfBox(box: Box): Geometry {
  const { south, north } = box;
  const isNarrow = widthOf(box) === 0;
  if (isNarrow && south === north) return { type: 'Point', coordinates: [box.west, south] };
  const [west, east] = isNarrow
    ? [box.west, box.west]
    : [box.west === 180 ? -180 : box.west, box.east === -180 ? 180 : box.east];
  if (west <= east) return { type: 'Polygon', coordinates: [outline({ ...box, west, east })] };
  const coordinates = [[outline({ ...box, east: 180 })], [outline({ ...box, west: -180 })]];
  return { type: 'MultiPolygon', coordinates };
}

/** Builds a closed, counter-clockwise ring. */
function outline({ west, south, east, north }: Box): Ring {
  const corners = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ] as const;
  return withShortEdges(corners);
}

/** Adds positions to long edges of a line. */
export function withShortEdges(line: readonly Position[]): Position[] {
  return line.flatMap((to, i) => {
    const from = line[i - 1] ?? to;
    const steps = Math.max(1, Math.ceil(Math.abs(to[0] - from[0]) / edgeMaxDegrees));
    const at = (one: number, other: number, step: number) => one + ((other - one) * step) / steps;
    return Array.from(
      { length: steps },
      (_, step): Position =>
        step === steps - 1 ? to : [at(from[0], to[0], step + 1), at(from[1], to[1], step + 1)],
    );
  });
}
