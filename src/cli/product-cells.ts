/** Columns of tables with products: the name is always there, the others as far as there is width. */
import { shortDateUs } from '../domain/dates.ts';
import { byteText } from '../domain/formats.ts';
import { type ProductCells, type ProductFacts, productCells } from '../domain/product-cells.ts';
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

/** Longer names than those of the catalogue do not displace other columns. */
export const nameKept = 110;

const cell = (
  title: string,
  name: keyof ProductCells,
  optionalRank: number,
): Column<WithCells> => ({ title, value: ({ cells }) => cells[name] ?? '-', optionalRank });

/** Columns of every table with products. */
export const productColumns = {
  name: {
    title: 'product',
    value: ({ row }: WithCells) => row.productName ?? row.productId,
    flexible: true,
    keep: nameKept,
  },
  cloud: { ...cell('cloud', 'cloud', 1), align: 'right' },
  place: cell('place', 'place', 2),
  sensed: cell('sensed (UTC)', 'sensed', 3),
  type: cell('type', 'type', 4),
  tile: cell('tile/orbit', 'tile', 5),
} as const satisfies Record<string, Column<WithCells>>;

export function sizeColumn<Row extends { sizeBytes: number | null }>(): Column<{ row: Row }> {
  const value = ({ row }: { row: Row }) => byteText(row.sizeBytes) ?? '-';
  return { title: 'size', value, align: 'right', optionalRank: 6 };
}

export function timeColumn<Row>(
  name: string,
  timeOf: (row: Row) => number | null,
): Column<{ row: Row }> {
  return {
    title: `${name} (UTC)`,
    value: ({ row }) => {
      const us = timeOf(row);
      return us === null ? '-' : shortDateUs(us);
    },
  };
}
