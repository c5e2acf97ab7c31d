/** Writes products in every output format. */

import type { Output } from '../../core/cli/io.ts';
import { printTable } from '../../core/cli/print-report.ts';
import { type RowForms, type WrittenRows, writeRows } from '../../core/cli/row-forms.ts';
import { createCollector } from '../../core/host/serve-thread.ts';
import {
  productFields,
  productLinkFields,
  toProductJson,
  toProductLinks,
} from '../../core/terms/read-models.ts';
import type { Column } from '../../core/terms/report.ts';
import * as report from '../../core/terms/report.ts';
import { byteText } from '../../core/terms/text.ts';
import { type ProductCells, type ProductFacts, productCells } from '../../filter/product-facts.ts';
import { productView, toFeature } from '../../filter/product-view.ts';
import type { FoundProduct, ProductOrder } from '../../filter/products.ts';
import type { ProductRecord } from '../../filter/values.ts';
import { placeOf } from './places/places.ts';

/** A format of `query products`, as lines. */
export interface ProductFormat {
  name: string;
  /** True if deleted products have this format. */
  hasDeleted: boolean;
  /** Text for the help. */
  help: string;
  /** Returns the line of a product. `catalogueUrl` is the base of download URLs, `base` that of the private listener. */
  load: () => Promise<
    (product: FoundProduct, urls: { catalogueUrl: string; base: string }) => string
  >;
}

interface ProductOutputOptions {
  /** True if the products are deleted ones; changes the columns of the table. */
  deleted?: boolean;
  /** Sort field, shown as first column of the table. */
  orderedBy?: ProductOrder;
  /** Replaces the default columns of table and CSV. */
  columns?: readonly string[] | undefined;
  /** Tables ignore the terminal width. */
  wide?: boolean;
  /** Prefix of download URLs. */
  catalogueUrl?: string;
  /** Lines of the formats of other features, by name. */
  lines?: Readonly<Record<string, (product: FoundProduct) => string>>;
  /** Version of earshot, for the metadata of a file. */
  version?: string;
  /** Called from time to time with the number of written products. */
  onProgress?: (count: number) => void;
}

/** Writes products as a stream. GeoParquet needs exact footprints. */
export function writeProducts(
  output: Output,
  form: string,
  products: AsyncIterable<FoundProduct>,
  options: ProductOutputOptions = {},
): Promise<WrittenRows<FoundProduct>> {
  const { columns, catalogueUrl = '' } = options;
  const forms: RowForms<FoundProduct> = {
    table: (some) => printTable(output, columnsOf(options), shown(some), options),
    json: ({ record }) => record,
    fields: productFieldNames(),
    values: (product) => productValues(product, catalogueUrl),
    feature: (product) => toFeature(product, catalogueUrl),
    file: async (some) => {
      const { writeGeoParquet } = await import('./geoparquet.ts');
      const fields = columns ?? productFieldNames();
      await writeGeoParquet(output, some, { ...options, fields, catalogueUrl });
    },
    lines: { ...options.lines, ids: ({ row }) => row.productId },
  };
  // V8 alone would let the garbage of a million records grow by 100 MB.
  const collectGarbage = createCollector();
  const onRows = (count: number) => {
    options.onProgress?.(count);
    collectGarbage();
  };
  return writeRows(output, form, products, forms, { columns, onRows });
}

/** Returns the values of the columns of CSV. */
export function productValues(
  { row }: FoundProduct,
  catalogueUrl: string,
  summary?: { text: string; model: string | null },
): Readonly<Record<string, unknown>> {
  const { text, model } = summary ?? {};
  const links = toProductLinks(row, catalogueUrl);
  return { ...toProductJson(row), ...links, summary: text, summaryModel: model };
}

/** Field names for columns of table and CSV. */
export function productFieldNames({ texts = false }: { texts?: boolean } = {}): string[] {
  const textFields = texts ? ['summary', 'summaryModel'] : [];
  return [...productFields, ...productLinkFields, ...textFields];
}

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

async function* shown(products: AsyncIterable<FoundProduct>) {
  for await (const { row, record } of products) yield { row, cells: cellsOfRecord(row, record) };
}

type ProductColumn = Column<WithCells & Pick<FoundProduct, 'row'>>;

const { name, cloud, place, sensed, type, tile } = productColumns;

const size: ProductColumn = {
  ...{ title: 'size', isNumber: true, drop: 6 },
  value: ({ row }) => byteText(row.sizeBytes),
};

const cause: ProductColumn = { title: 'cause', value: ({ row }) => row.deletionCause };

/** First column of a table sorted by it. */
const orderColumns: Readonly<Record<ProductOrder, ProductColumn>> = {
  received: timeColumn('received', ({ receivedAtUs }) => receivedAtUs),
  PublicationDate: timeColumn('published', ({ publicationDateUs }) => publicationDateUs),
  ModificationDate: timeColumn('modified', ({ modificationDateUs }) => modificationDateUs),
  'ContentDate/Start': timeColumn('sensed', ({ sensingStartUs }) => sensingStartUs),
  'ContentDate/End': timeColumn('sensing end', ({ sensingEndUs }) => sensingEndUs),
  DeletionDate: timeColumn('deleted', ({ deletionDateUs }) => deletionDateUs),
};

function columnsOf({
  deleted = false,
  orderedBy = deleted ? 'DeletionDate' : 'received',
}: ProductOutputOptions): readonly ProductColumn[] {
  const usual = deleted
    ? [orderColumns.DeletionDate, name, cause, place, sensed, type, tile]
    : [name, cloud, place, sensed, type, tile, size];
  const first = orderColumns[orderedBy];
  return [first, ...usual.filter(({ title }) => title !== first.title)];
}
