/** Areas and times of searches as conditions: GeoJSON of any type, boxes, and intervals of sensing time. */
import { AppError } from '../../core/terms/app-error.ts';
import { formatDateUs, lostPlusAdvice, readDateUs } from '../../core/terms/dates.ts';
import {
  and,
  dateField,
  type Expression,
  expression,
  intersects,
  or,
} from '../../filter/builder.ts';
import type { Geometry, Position } from '../../filter/filter-tree.ts';
import {
  areaOfBox,
  readBox,
  readGeometries,
  warningOf,
  withShortEdges,
} from '../../filter/geometry/read-geometry.ts';
import { lineRing, linesOf } from '../../filter/geometry/ring.ts';
import { partOf } from '../../filter/values.ts';

/** Matches products with a footprint. */
export const everywhere: Expression = readBbox([-180, -90, 180, 90]).matching;

/**
 * Reads `[west, south, east, north]`, also with heights, which are ignored. Returns a condition on the footprint, and a
 * likely mistake; a box without height or width is a line. Throws `invalid`.
 */
export function readBbox(numbers: readonly number[]) {
  const [x1, y1, , x2, y2] = numbers;
  const box = readBox((numbers.length === 6 ? [x1, y1, x2, y2] : numbers).join(','));
  return { matching: withGeometry(areaOfBox(box)), warning: warningOf(box) };
}

/** Matches products whose footprint intersects GeoJSON, or an object with a `bbox`. Throws `invalid`. */
export function intersecting(value: unknown): Expression {
  const bbox = partOf(value, 'bbox');
  if (partOf(value, 'type') === undefined && Array.isArray(bbox))
    return readBbox(bbox.map(Number)).matching;
  const all = readGeometries(value);
  const lines = all.flatMap(linesOf);
  if (!lines.flat().every(([x, y]) => Math.abs(x) <= 180 && Math.abs(y) <= 90)) {
    const message =
      'Longitudes are from -180 to 180, latitudes from -90 to 90. Longitude is first.';
    throw new AppError('invalid', message);
  }
  const geometries = all.filter((one) => linesOf(one).length === 0);
  if (geometries.length === 0) return alongLines(lines);
  const areas = intersects({ type: 'GeometryCollection', geometries });
  return lines.length === 0 ? areas : or(alongLines(lines), areas);
}

function alongLines(lines: readonly (readonly Position[])[]): Expression {
  const coordinates = lines.map((line) => [lineRing(withShortEdges(line))]);
  return withGeometry({ type: 'MultiPolygon', coordinates });
}

function withGeometry(geometry: Geometry): Expression {
  return expression({ node: 'intersects', argument: 'area', srid: 4326, geometry });
}

/** `date-time` and `full-date` of RFC 3339, 5.6; the values are checked afterwards. */
const rfc3339 = /^\d{4}-\d\d-\d\d(?:t\d\d:\d\d:\d\d(?:\.\d+)?(?:z|[+-]\d\d:\d\d))?$/i;

/**
 * Matches products whose sensing time intersects a time, a whole day, or an interval with at least one end, which both are
 * included. Throws `invalid`.
 */
export function sensedDuring(text: string): Expression {
  const [first = '', last = first, ...more] = text.split('/').map((one) => one.trim());
  const fromUs = endOf(first, 'from');
  const toUs = endOf(last, 'to');
  if (fromUs !== null && toUs !== null && fromUs > toUs) {
    throw new AppError('invalid', 'The interval ends before it starts.');
  }
  if (more.length > 0 || (fromUs === null && toUs === null)) {
    const message =
      'datetime must be a time, or an interval such as 2026-11-20T00:00:00Z/2026-11-21T00:00:00Z, with .. for an open end.';
    throw new AppError('invalid', message);
  }
  return and(
    ...(toUs === null ? [] : [dateField('ContentDate/Start').le(formatDateUs(toUs))]),
    ...(fromUs === null ? [] : [dateField('ContentDate/End').ge(formatDateUs(fromUs))]),
  );
}

function endOf(text: string, side: 'from' | 'to'): number | null {
  if (text === '..' || text === '') return null;
  const isLastDay = side === 'to' && /^\d{4}-\d\d-\d\d$/.test(text);
  return readRfc3339(isLastDay ? `${text}T23:59:59.999999Z` : text);
}

/** Reads a day, which is its start, or a time, to microseconds since 1970. Throws `invalid`. */
export function readRfc3339(text: string): number {
  const written = JSON.stringify(text.slice(0, 60));
  if (!rfc3339.test(text)) {
    const message = `${written} is not a time of RFC 3339, such as 2026-11-20T06:00:00Z or 2026-11-20T06:00:00.5+01:00.`;
    throw new AppError('invalid', message, { advice: lostPlusAdvice(text) });
  }
  const us = readDateUs(text);
  if (us !== null) return us;
  throw new AppError('invalid', `${written} is not a valid time of the years 0000 to 9999, UTC.`);
}
