/** Table cells of a product: mission, type, sensing time, tile or orbit, cloud cover, place. */
import { shortDateUs } from '../domain/dates.ts';
import {
  isIdentified,
  type ProductCells,
  type ProductFacts,
  productCells,
  toMinute,
} from '../domain/product-cells.ts';
import type { ProductRecord } from '../filter/product-record.ts';
import { productView } from '../filter/product-view.ts';
import { placeOf } from '../places/places.ts';
import type { Column } from './output.ts';

/** Describes a product by its facts, its name, and the footprint in its record. */
export function cellsOfRecord(facts: ProductFacts, record: ProductRecord | null): ProductCells {
  return productCells(facts, record === null ? null : placeOf(productView(record).geometry()));
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
    short: { ...shortColumn('place', 'place'), cutTo: 8 },
  },
  /** Replaces the other cells of a product that they do not identify. */
  name: {
    title: 'name',
    value: ({ row }) => row.productName ?? row.productId,
    flexible: true,
    widthMin: 12,
    requiredBy: ({ cells }) => !isIdentified(cells),
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

/** `11-20 06:00Z`, for recent times; null for no time. */
export function toShortMinute(us: number | null): string | null {
  const minute = toMinute(us);
  return minute === null ? null : `${minute.slice('YYYY-'.length)}Z`;
}
