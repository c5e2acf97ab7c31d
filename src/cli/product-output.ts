/** Products as people and programs get them: table, JSON, NDJSON, CSV, GeoJSON, ids; with texts about them. */
import { stringify } from 'csv-stringify/sync';
import {
  productFields,
  productLinkFields,
  toProductJson,
  toProductLinks,
} from '../domain/json-rows.ts';
import type { FoundProduct, ProductOrder, Products } from '../domain/products.ts';
import { batches } from '../domain/streams.ts';
import { toTextJson } from '../domain/summaries.ts';
import { printable } from '../domain/text.ts';
import { toFeature } from '../filter/product-view.ts';
import { openStoreReader } from '../store/store.ts';
import { lazyPlaces } from '../summary/places/places.ts';
import { prepareProduct } from '../summary/worker/prepare.ts';
import type { Output } from './io.ts';
import {
  type Column,
  chosenColumns,
  printTable,
  wrapText,
  writeForeign,
  writeOut,
} from './output.ts';
import { type ProductCells, productCells, toMinute, toShortMinute } from './product-cells.ts';

/** A product, with the text about it where texts were requested. */
export interface ShownProduct extends FoundProduct {
  summary?: ReturnType<typeof toTextJson>;
}

export interface ProductOutputOptions {
  /** True when the products have texts. */
  texts?: boolean;
  /** What the products are sorted by; the table shows it. */
  orderedBy?: ProductOrder;
  /** Fields for table and CSV in place of the usual ones. */
  columns?: readonly string[] | undefined;
  /** Tables are not fitted to the terminal. */
  wide?: boolean;
  /** The beginning of download URLs. */
  catalogueUrl?: string;
}

/** Writes products as they come; returns how many there were. */
export async function writeProducts(
  output: Output,
  form: ProductForm,
  products: AsyncIterable<ShownProduct>,
  options: ProductOutputOptions = {},
): Promise<number> {
  if (form === 'table') return writeTable(output, products, options);
  const { between, tail } = frames[form];
  const header = `${fieldsOf(options).join(',')}\n`;
  const { head, empty } = form === 'csv' ? { head: header, empty: header } : frames[form];
  let count = 0;
  for await (const product of products) {
    await writeForeign(output, `${count === 0 ? head : between}${textOf(form, product, options)}`);
    count += 1;
  }
  await writeOut(output, count === 0 ? empty : tail);
  return count;
}

const textFields = ['summary', 'summaryModel', 'summaryVerified'] as const;

/** The names of fields that table and CSV can have. */
export function productFieldNames({ texts = false }: { texts?: boolean }): string[] {
  return [...productFields, ...productLinkFields, ...(texts ? textFields : [])];
}

function fieldsOf({ columns, texts }: ProductOutputOptions): readonly string[] {
  return columns ?? productFieldNames({ texts: texts === true });
}

function valuesOf(
  product: ShownProduct,
  { catalogueUrl = '' }: ProductOutputOptions,
): Readonly<Record<string, unknown>> {
  const { text: summary, model: summaryModel, verified: summaryVerified } = product.summary ?? {};
  return {
    ...toProductJson(product.row),
    ...toProductLinks(product, catalogueUrl),
    ...{ summary, summaryModel, summaryVerified },
  };
}

const lines = { head: '', between: '\n', tail: '\n', empty: '' };

/** What stands around the elements. */
const frames = {
  json: { head: '[\n', between: ',\n', tail: '\n]\n', empty: '[]\n' },
  ndjson: lines,
  csv: lines,
  geojson: {
    head: '{"type":"FeatureCollection","features":[\n',
    between: ',\n',
    tail: '\n]}\n',
    empty: '{"type":"FeatureCollection","features":[]}\n',
  },
  ids: lines,
};

function textOf(
  form: Exclude<ProductForm, 'table'>,
  product: ShownProduct,
  options: ProductOutputOptions,
): string {
  const { row, record, summary } = product;
  switch (form) {
    case 'json':
    case 'ndjson':
      return JSON.stringify(summary === undefined ? record : { ...record, summary });
    case 'geojson': {
      const feature = toFeature(product, options.catalogueUrl ?? '');
      if (summary === undefined) return JSON.stringify(feature);
      return JSON.stringify({ ...feature, properties: { ...feature.properties, summary } });
    }
    case 'ids':
      // One line each, whatever the text holds.
      return summary === undefined ? row.productId : `${row.productId}\t${printable(summary.text)}`;
    case 'csv': {
      const values = valuesOf(product, options);
      const cells = fieldsOf(options).map((field) => values[field]);
      const cast = { boolean: String };
      // Names come from outside: a spreadsheet must not take one for a formula.
      return stringify([cells], { escape_formulas: true, cast, eof: false });
    }
  }
}

/** The columns follow the first product: all of one answer are alive, or all are tombstones. */
async function writeTable(
  output: Output,
  products: AsyncIterable<ShownProduct>,
  options: ProductOutputOptions,
): Promise<number> {
  const { columns: fields, texts = false, wide = false } = options;
  if (fields !== undefined) {
    const chosen = chosenColumns<ShownProduct>(fields, (product) => valuesOf(product, options));
    return printTable(output, chosen, products);
  }
  if (texts) return writeTexts(output, products);
  const iterator = products[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return 0;
  const rows = async function* () {
    yield listed(first.value);
    for await (const product of { [Symbol.asyncIterator]: () => iterator }) yield listed(product);
  };
  return printTable(output, columnsOf(first.value, options.orderedBy), rows(), { wide });
}

/** Texts are for reading: each stands below its product. */
async function writeTexts(output: Output, products: AsyncIterable<ShownProduct>): Promise<number> {
  let count = 0;
  for await (const product of products) {
    count += 1;
    const { row, summary } = product;
    const { sensed, cloud } = productCells(row, product.record);
    const name = row.productName ?? row.productId;
    const cells =
      row.deletionUs === null
        ? [sensed, name, row.productType, cloud, formatSize(row.sizeBytes)]
        : [toMinute(row.deletionUs), name, row.deletionCause];
    const line = cells.filter((cell) => cell !== null && cell !== '-').join('  ');
    const doubt = summary?.verified === false ? ' (not verified)' : '';
    const text = wrapText(`${printable(summary?.text ?? '')}${doubt}`, '  ', output);
    await writeOut(output, `${printable(line)}\n${text.join('\n')}\n\n`);
  }
  return count;
}

/** A product with its cells, which several columns share. */
interface ListedProduct {
  row: FoundProduct['row'];
  cells: ProductCells;
}

function listed({ row, record }: FoundProduct): ListedProduct {
  return { row, cells: productCells(row, record) };
}

type ProductColumn = Column<ListedProduct>;

const mission: ProductColumn = { title: 'sat', value: ({ cells }) => cells.mission ?? '-' };

const type: ProductColumn = { title: 'type', value: ({ cells }) => cells.type ?? '-' };

const sensed: ProductColumn = {
  title: 'sensed (UTC)',
  value: ({ cells }) => cells.sensed ?? '-',
  optionalRank: 0,
  wanted: true,
};

const tile: ProductColumn = { title: 'tile/orbit', value: ({ cells }) => cells.tile ?? '-' };

const cloud: ProductColumn = {
  title: 'cloud',
  value: ({ cells }) => cells.cloud ?? '-',
  align: 'right',
  optionalRank: 1,
  wanted: true,
  short: { title: 'cloud', value: ({ cells }) => cells.short.cloud ?? '-' },
};

const place: ProductColumn = {
  title: 'place',
  value: ({ cells }) => cells.place ?? '-',
  optionalRank: 2,
  wanted: true,
  short: { title: 'place', value: ({ cells }) => cells.short.place ?? '-' },
};

const name: ProductColumn = {
  title: 'name',
  value: ({ row }) => row.productName ?? row.productId,
  flexible: true,
  widthMin: 12,
  optionalRank: 3,
  requiredBy: ({ cells }) => cells.mission === null,
  spanFrom: 'sat',
};

const size: ProductColumn = {
  title: 'size',
  value: ({ row }) => formatSize(row.sizeBytes),
  align: 'right',
  optionalRank: 4,
};

const deleted = timeColumn('deleted', ({ deletionUs }) => deletionUs);

const cause: ProductColumn = { title: 'cause', value: ({ row }) => row.deletionCause ?? '-' };

/** Shown first in a table that is sorted by it. */
const orderColumns: Readonly<Record<ProductOrder, ProductColumn>> = {
  received: timeColumn('received', ({ receivedAtUs }) => receivedAtUs),
  PublicationDate: timeColumn('published', ({ publicationUs }) => publicationUs),
  ModificationDate: timeColumn('modified', ({ modificationUs }) => modificationUs),
  'ContentDate/Start': sensed,
  'ContentDate/End': timeColumn('sensing end', ({ sensingEndUs }) => sensingEndUs),
  DeletionDate: deleted,
};

function timeColumn(
  what: string,
  timeOf: (row: FoundProduct['row']) => number | null,
): ProductColumn {
  return {
    title: `${what} (UTC)`,
    value: ({ row }) => toMinute(timeOf(row)) ?? '-',
    short: { title: what, value: ({ row }) => toShortMinute(timeOf(row)) ?? '-' },
  };
}

function columnsOf(
  { row }: FoundProduct,
  orderedBy: ProductOrder = row.deletionUs === null ? 'received' : 'DeletionDate',
): readonly ProductColumn[] {
  const usual =
    row.deletionUs === null
      ? [sensed, mission, type, tile, cloud, place, size, name]
      : [deleted, mission, type, sensed, tile, cause, place, name];
  const first = orderColumns[orderedBy];
  return [first, ...usual.filter(({ title }) => title !== first.title)];
}

/** In the units of the catalogue's own pages: `1.7 GB` is 1.7 thousand million bytes. */
function formatSize(bytes: number | null): string {
  if (bytes === null) return '-';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  const value = bytes / 1000 ** step;
  return `${value.toFixed(step === 0 || value >= 100 ? 0 : 1)} ${units[step]}`;
}

export const productForms = ['table', 'json', 'ndjson', 'csv', 'geojson', 'ids'] as const;

export type ProductForm = (typeof productForms)[number];

/** Rows of a table without `--limit`; the other forms print all. */
export const tableRowsDefault = 50;

/** Products whose texts are looked up together: as many as the index gives at once. */
const lookedUpMax = 64;

/** In the order in which they were found. */
export async function* withTexts(
  found: AsyncIterable<FoundProduct>,
  products: Products,
  { dataDir, nowUs }: { dataDir: string; nowUs: () => number },
): AsyncGenerator<ShownProduct> {
  const store = openStoreReader(dataDir);
  const places = lazyPlaces();
  const textOfFacts = async (product: FoundProduct) => {
    const { template: text } = await prepareProduct(product, { products, places });
    return { text, model: null, verified: true, doubts: [], createdAtUs: nowUs() };
  };
  try {
    for await (const batch of batches(found, lookedUpMax)) {
      const written = await store.summaries.textsOf(batch.map(({ row }) => row.productId));
      for (const product of batch) {
        const text = written.get(product.row.productId) ?? (await textOfFacts(product));
        yield { ...product, summary: toTextJson(text) };
      }
    }
  } finally {
    await store.close();
  }
}
