/** Products as people and programs get them: table, JSON, NDJSON, CSV, GeoJSON, ids; with texts about them. */
import { stringify } from 'csv-stringify/sync';
import { productFields, toProductJson } from '../../domain/json-rows.ts';
import { printable } from '../../domain/printable.ts';
import type { FoundProduct } from '../../domain/products.ts';
import type { toTextJson } from '../../domain/summary-rows.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { productView } from '../../filter/product-view.ts';
import type { Output } from '../io.ts';
import { type Column, printTable } from '../table.ts';
import { wrapText } from '../wrap-text.ts';
import { writeForeign, writeOut } from '../write-out.ts';
import type { ProductForm } from './product-forms.ts';

type OutputProduct = ReturnType<typeof toProductJson>;

/** A product, with the text about it where texts were asked for. */
export interface ShownProduct extends FoundProduct {
  summary?: ReturnType<typeof toTextJson>;
}

/** Writes products as they come; returns how many there were. `texts` tells whether they have texts. */
export async function writeProducts(
  output: Output,
  form: ProductForm,
  products: AsyncIterable<ShownProduct>,
  { texts }: { texts: boolean } = { texts: false },
): Promise<number> {
  if (form === 'table') return texts ? writeTexts(output, products) : writeTable(output, products);
  const { between, tail } = frames[form];
  const { head, empty } =
    form === 'csv' && texts ? { head: headerWithTexts, empty: headerWithTexts } : frames[form];
  let count = 0;
  for await (const product of products) {
    await writeForeign(output, `${count === 0 ? head : between}${textOf(form, product)}`);
    count += 1;
  }
  await writeOut(output, count === 0 ? empty : tail);
  return count;
}

const header = `${productFields.join(',')}\n`;
const textFields = ['summary', 'summaryModel', 'summaryVerified'] as const;
const headerWithTexts = `${[...productFields, ...textFields].join(',')}\n`;
const lines = { head: '', between: '\n', tail: '\n', empty: '' };

/** What stands around the elements. */
const frames = {
  json: { head: '[\n', between: ',\n', tail: '\n]\n', empty: '[]\n' },
  ndjson: lines,
  csv: { ...lines, head: header, empty: header },
  geojson: {
    head: '{"type":"FeatureCollection","features":[\n',
    between: ',\n',
    tail: '\n]}\n',
    empty: '{"type":"FeatureCollection","features":[]}\n',
  },
  ids: lines,
};

function textOf(form: Exclude<ProductForm, 'table'>, product: ShownProduct): string {
  const { row, record, summary } = product;
  switch (form) {
    case 'json':
    case 'ndjson':
      return JSON.stringify(summary === undefined ? record : { ...record, summary });
    case 'geojson':
      return JSON.stringify(toFeature(product));
    case 'ids':
      // One line each, whatever the text holds.
      return summary === undefined ? row.productId : `${row.productId}\t${printable(summary.text)}`;
    case 'csv': {
      const values = toProductJson(row);
      const own = productFields.map((field) => values[field]);
      const { text, model, verified } = summary ?? {};
      const cells = summary === undefined ? own : [...own, text, model, verified];
      const cast = { boolean: String };
      // Names come from outside: a spreadsheet must not take one for a formula.
      return stringify([cells], { escape_formulas: true, cast, eof: false });
    }
  }
}

/** RFC 7946, 3.2; a product without a footprint has the geometry null. */
export function toFeature({ row, record, summary }: ShownProduct) {
  const geometry = productView(record).geometry();
  return {
    type: 'Feature',
    id: row.productId,
    geometry: geometry === null ? null : toGeoJson(geometry),
    properties: { ...toProductJson(row), ...(summary === undefined ? {} : { summary }) },
  };
}

/** The columns follow the first product: all of one answer are alive, or all are tombstones. */
async function writeTable(output: Output, products: AsyncIterable<FoundProduct>): Promise<number> {
  const iterator = products[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return 0;
  const { row } = first.value;
  const rows = async function* () {
    yield toProductJson(row);
    for await (const product of { [Symbol.asyncIterator]: () => iterator }) {
      yield toProductJson(product.row);
    }
  };
  const columns = row.deletionUs === null ? aliveColumns : goneColumns;
  return printTable(output, columns, rows());
}

/** Texts are for reading: each stands below its product. */
async function writeTexts(output: Output, products: AsyncIterable<ShownProduct>): Promise<number> {
  let count = 0;
  for await (const { row, summary } of products) {
    count += 1;
    const shown = toProductJson(row);
    const columns = row.deletionUs === null ? aliveColumns : goneColumns;
    const cells = columns.map(({ value }) => value(shown)).filter((cell) => cell !== '-');
    const doubt = summary?.verified === false ? ' (not verified)' : '';
    const text = wrapText(`${printable(summary?.text ?? '')}${doubt}`, '  ', output);
    await writeOut(output, `${printable(cells.join('  '))}\n${text.join('\n')}\n\n`);
  }
  return count;
}

const name: Column<OutputProduct> = {
  title: 'name',
  value: ({ productName, productId }) => productName ?? productId,
  flexible: true,
};

const aliveColumns: readonly Column<OutputProduct>[] = [
  { title: 'sensed (UTC)', value: ({ sensingStart }) => shortTime(sensingStart) },
  name,
  { title: 'type', value: ({ productType }) => productType ?? '-' },
  {
    title: 'cloud',
    value: ({ cloudCoverPercent }) =>
      cloudCoverPercent === null ? '-' : `${Math.round(cloudCoverPercent)} %`,
    align: 'right',
  },
  { title: 'size', value: ({ sizeBytes }) => formatSize(sizeBytes), align: 'right' },
];

const goneColumns: readonly Column<OutputProduct>[] = [
  { title: 'deleted (UTC)', value: ({ deletionDate }) => shortTime(deletionDate) },
  name,
  { title: 'cause', value: ({ deletionCause }) => deletionCause ?? '-' },
];

/** To the minute: `2026-11-20 06:00`. */
function shortTime(iso: string | null): string {
  return iso?.slice(0, 16).replace('T', ' ') ?? '-';
}

/** In the units of the catalogue's own pages: `1.7 GB` is 1.7 thousand million bytes. */
function formatSize(bytes: number | null): string {
  if (bytes === null) return '-';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  const value = bytes / 1000 ** step;
  return `${value.toFixed(step === 0 || value >= 100 ? 0 : 1)} ${units[step]}`;
}
