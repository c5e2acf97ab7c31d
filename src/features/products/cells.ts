/** Columns of tables with products: the name is always there, the others as far as there is width. */

import type { Column } from '../../core/terms/report.ts';
import * as report from '../../core/terms/report.ts';
import { type ProductCells, type ProductFacts, productCells } from '../../filter/product-cells.ts';
import { productView } from '../../filter/product-view.ts';
import type { ProductRecord } from '../../filter/values.ts';
import { placeOf } from './places/places.ts';

/** Describes a product by its facts, its name, and the footprint in its record. */
export function cellsOfRecord(facts: ProductFacts, record: ProductRecord | null): ProductCells {
  return productCells(facts, record === null ? null : placeOf(productView(record).geometry()));
}

/** A table row with the cells of its product. */
export interface WithCells {
  row: { productName: string | null; productId: string };
  cells: ProductCells;
}

const cell = (title: string, name: keyof ProductCells, drop: number): Column<WithCells> => ({
  ...{ title, drop },
  value: ({ cells }) => cells[name],
});

/** Columns of every table with products. */
export const productColumns = {
  name: {
    ...{ title: 'product', isName: true },
    value: ({ row }: WithCells) => row.productName ?? row.productId,
  },
  cloud: { ...cell('cloud', 'cloud', 1), isNumber: true },
  place: cell('place', 'place', 2),
  sensed: cell('sensed (UTC)', 'sensed', 3),
  type: cell('type', 'type', 4),
  tile: cell('tile/orbit', 'tile', 5),
} as const satisfies Record<string, Column<WithCells>>;

export function timeColumn<Row>(
  name: string,
  timeOf: (row: Row) => number | null,
): Column<{ row: Row }> {
  return { title: `${name} (UTC)`, value: ({ row }) => report.time(timeOf(row)) };
}
