/** Table cells of a product: mission, type, sensing time, tile or orbit, cloud cover, place. */
import { shortDateUs } from '../domain/dates.ts';
import { parseProductName } from '../domain/naming/conventions.ts';
import { boxesOf } from '../filter/geometry/shape.ts';
import type { ProductRecord } from '../filter/product-record.ts';
import { productView } from '../filter/product-view.ts';
import type { ProductFacts } from '../store/products/product-rows.ts';
import type { Column } from './output.ts';

/** Unknown values are null. */
export interface ProductCells {
  /** `S2A`, `S5P`, `L8`. */
  mission: string | null;
  /** Product type, or processing level if the name has no type. */
  type: string | null;
  sensed: string | null;
  /** `32TQM R108`, `60000 R022`; path and row of Landsat as `190/027`. */
  tile: string | null;
  cloud: string | null;
  /** Centre of the footprint. */
  place: string | null;
  /** Short forms for a narrow terminal: the day, the tile or orbit, the place in whole degrees. */
  short: Record<'sensed' | 'tile' | 'cloud' | 'place', string | null>;
}

/** Describes a product by its facts, its name, and the footprint in its record. */
export function productCells(facts: ProductFacts, record: ProductRecord | null): ProductCells {
  const named = parseProductName(facts.productName ?? '');
  const { tile, orbitNumber, relativeOrbitNumber, cloudCoverPercent } = facts;
  const [, path, row] = /^path (\d+), row (\d+)$/.exec(named?.tile ?? '') ?? [];
  const square = tile ?? (path === undefined ? null : `${pad(path)}/${pad(row)}`);
  const relative = relativeOrbitNumber === null ? null : `R${pad(relativeOrbitNumber)}`;
  const parts = [square ?? orbitNumber, relative].filter((part) => part !== null);
  const middle = record === null ? null : middleOf(record);
  const sensed = toMinute(facts.sensingStartUs ?? named?.startUs ?? null);
  const cloud = cloudCoverPercent === null ? null : percentBelow(cloudCoverPercent);
  return {
    mission: facts.platform === null ? null : shortMission(facts.platform),
    type: facts.productType ?? named?.level ?? facts.processingLevel,
    sensed,
    tile: parts.length === 0 ? null : parts.join(' '),
    cloud: cloud === null ? null : `${cloud} %`,
    place: middle === null ? null : showPlace(middle, 1, '°'),
    short: {
      sensed: sensed?.slice(0, 'YYYY-MM-DD'.length) ?? null,
      tile: square ?? relative ?? (orbitNumber === null ? null : String(orbitNumber)),
      cloud: cloud === null ? null : `${cloud}%`,
      place: middle === null ? null : showPlace(middle, 0, ''),
    },
  };
}

/** `2026-11-20 06:00`; null for no time. */
export function toMinute(us: number | null): string | null {
  return us === null || Number.isNaN(us) ? null : shortDateUs(us);
}

/** `11-20 06:00Z`, for recent times; null for no time. */
export function toShortMinute(us: number | null): string | null {
  const minute = toMinute(us);
  return minute === null ? null : `${minute.slice('YYYY-'.length)}Z`;
}

function pad(number: number | string = ''): string {
  return String(number).padStart(3, '0');
}

/** Shortens `SENTINEL-2A` to `S2A` and `LANDSAT-8` to `L8`; other platforms are unchanged. */
function shortMission(platform: string): string {
  return platform.replace(/^SENTINEL-(?=\d)/i, 'S').replace(/^LANDSAT-(?=\d)/i, 'L');
}

/** Rounds down to one decimal: 19.96 must not appear as 20 in a list of less than 20 percent. */
function percentBelow(percent: number): string {
  const rounded = percent.toFixed(1);
  return Number(rounded) > percent ? (Number(rounded) - 0.1).toFixed(1) : rounded;
}

/** Centre of the footprint; null without one. */
function middleOf(record: ProductRecord): { latitude: number; longitude: number } | null {
  const shape = productView(record).footprint();
  const [first, second] = shape === null ? [] : boxesOf(shape);
  if (first === undefined) return null;
  // The second box is the part beyond the antimeridian.
  const east = second === undefined ? first.east : second.east + 360;
  const middle = (first.west + east) / 2;
  const longitude = middle > 180 ? middle - 360 : middle;
  return { latitude: (first.south + first.north) / 2, longitude };
}

/** `46.2°N 7.1°E`, or `46N 7E`. */
function showPlace(
  { latitude, longitude }: { latitude: number; longitude: number },
  digits: number,
  unit: string,
): string {
  const degrees = (value: number, positive: string, negative: string) =>
    `${Math.abs(value).toFixed(digits)}${unit}${value < 0 ? negative : positive}`;
  return `${degrees(latitude, 'N', 'S')} ${degrees(longitude, 'E', 'W')}`;
}

/** A table row with the cells of its product. */
export interface WithCells {
  row: { productName: string | null; productId: string };
  cells: ProductCells;
}

/** Columns of every table with products. */
export const productColumns = {
  mission: { title: 'sat', value: ({ cells }) => cells.mission ?? '-' },
  type: { title: 'type', value: ({ cells }) => cells.type ?? '-' },
  sensed: {
    title: 'sensed (UTC)',
    value: ({ cells }) => cells.sensed ?? '-',
    optionalRank: 0,
    preferred: true,
  },
  tile: { title: 'tile/orbit', value: ({ cells }) => cells.tile ?? '-' },
  cloud: {
    title: 'cloud',
    value: ({ cells }) => cells.cloud ?? '-',
    align: 'right',
    optionalRank: 1,
    preferred: true,
    short: shortColumn('cloud', 'cloud'),
  },
  place: {
    title: 'place',
    value: ({ cells }) => cells.place ?? '-',
    optionalRank: 2,
    preferred: true,
    short: shortColumn('place', 'place'),
  },
  /** Replaces the other cells of a product without any. */
  name: {
    title: 'name',
    value: ({ row }) => row.productName ?? row.productId,
    flexible: true,
    widthMin: 12,
    requiredBy: ({ cells }) => cells.mission === null,
    spanFrom: 'sat',
  },
} as const satisfies Record<string, Column<WithCells>>;

/** Short form of a column. */
export function shortColumn(
  title: string,
  of: keyof ProductCells['short'],
): Pick<Column<WithCells>, 'title' | 'value'> {
  return { title, value: ({ cells }) => cells.short[of] ?? '-' };
}

/** Time column, with a short form for a narrow terminal. */
export function timeColumn<Row>(
  name: string,
  timeOf: (row: Row) => number | null,
  upTo: 'minute' | 'second' = 'minute',
): Column<{ row: Row }> {
  return {
    title: `${name} (UTC)`,
    value: ({ row }) => {
      const us = timeOf(row);
      return us === null ? '-' : shortDateUs(us, upTo);
    },
    short: { title: name, value: ({ row }) => toShortMinute(timeOf(row)) ?? '-' },
  };
}
