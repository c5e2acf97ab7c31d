/** Answers `earshot query products`: rows, a number, or how they would be found. */
import { readCatalogueUrl, readDataConfig } from '../../config/read-config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { FilterTree } from '../../domain/filter-tree.ts';
import { productLinkFields } from '../../domain/json-rows.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import {
  defaultOrderOf,
  type ProductQuery,
  type ProductRow,
  type Products,
} from '../../domain/products.ts';
import { printFilter } from '../../filter/print.ts';
import type { Io } from '../io.ts';
import type { OutputFlags } from '../shared-flags.ts';
import { readColumnNames } from '../table.ts';
import { writeOut } from '../write-out.ts';
import { compileFlags } from './compile-flags.ts';
import { withCurrentIndex } from './current-index.ts';
import { explanationLines } from './explanation.ts';
import { readPageKey, writePageKey } from './page-key.ts';
import type { ProductFlags } from './product-flags.ts';
import { type ProductForm, tableRowsDefault } from './product-forms.ts';
import { type Order, parseOrder } from './product-order.ts';
import {
  type ProductOutputOptions,
  productFieldNames,
  type ShownProduct,
  writeProducts,
} from './product-output.ts';
import { withTexts } from './with-texts.ts';

export interface QueryProductsFlags extends ProductFlags, OutputFlags<ProductForm> {
  orderby?: string;
  /** When the first notification about a product was received. */
  since?: number;
  until?: number;
  limit?: number;
  after?: string;
  count?: true;
  explain?: true;
  summaries?: true;
  columns?: string;
  wide?: true;
}

type Question = ProductQuery & { order: Order };

export async function queryProducts(io: Io, flags: QueryProductsFlags): Promise<void> {
  const { output: form } = flags;
  if (flags.explain && form !== 'table' && form !== 'json') {
    throw new AppError('usage', '--explain prints table or json.', {
      advice: 'Leave out --output, or use --json.',
    });
  }
  const columns = readColumns(flags, form);
  const question = readQuestion(io, flags, form, columns);
  const place = readDataConfig(io);
  const { dataDir } = place;
  const linked = columns !== undefined || form === 'csv' || form === 'geojson';
  const catalogueUrl = linked ? readCatalogueUrl(io) : '';
  await withCurrentIndex(place, io, async (products) => {
    if (flags.explain) return explain(io, products, question, flags.json === true);
    if (flags.count) {
      return writeOut(io.stdout, `${await products.count(question, io.signal)}\n`);
    }
    await list(io, products, question, {
      ...{ form, dataDir, columns },
      texts: flags.summaries === true,
      wide: flags.wide === true,
      orderedBy: question.order.by,
      catalogueUrl,
    });
  });
}

function readColumns(
  { columns, summaries }: QueryProductsFlags,
  form: ProductForm,
): string[] | undefined {
  if (columns === undefined) return undefined;
  if (form === 'table' || form === 'csv') {
    return readColumnNames(columns, productFieldNames({ texts: summaries === true }));
  }
  throw new AppError(
    'usage',
    `--columns chooses columns of a table or of csv, and ${form} has none.`,
    { advice: 'Use --output csv, or leave --columns out.' },
  );
}

/** Reports every fault of the flags before anything is opened. */
function readQuestion(
  io: Io,
  flags: QueryProductsFlags,
  form: ProductForm,
  columns: readonly string[] | undefined,
): Question {
  const { tile } = flags;
  const known = tile === undefined ? flags : { ...flags, tile: orByName(tile) };
  const { entity, filter } = compileFlags(known, io);
  const { orderby, after, since, until } = flags;
  const order = orderby === undefined ? defaultOrderOf(entity) : parseOrder(orderby, entity);
  return {
    entity,
    filter,
    received: { fromUs: since, untilUs: until },
    order,
    after: after === undefined ? undefined : readPageKey(after, entity, order),
    limit: flags.limit ?? (form === 'table' ? tableRowsDefault : undefined),
    records: needsRecords(form, columns) || flags.summaries === true,
  };
}

/** What needs no record is written from the columns of the index alone, which is faster. */
function needsRecords(form: ProductForm, columns: readonly string[] | undefined): boolean {
  if (columns !== undefined) return productLinkFields.some((field) => columns.includes(field));
  return form !== 'ids';
}

/** A record without attributes has no tile for the filter language, but its name has one (decision 45). */
function orByName(tile: FilterTree): FilterTree {
  if (tile.node === 'or') return { node: 'or', terms: tile.terms.map(orByName).flatMap(termsOf) };
  if (tile.node !== 'attribute' || tile.literal.type !== 'text') return tile;
  const name = `_T${tile.literal.value}_`;
  return {
    node: 'or',
    terms: [tile, { node: 'text', function: 'contains', field: 'Name', text: name }],
  };
}

function termsOf(tree: FilterTree): readonly FilterTree[] {
  return tree.node === 'or' ? tree.terms : [tree];
}

async function list(
  io: Io,
  products: Products,
  question: Question,
  { form, dataDir, ...options }: { form: ProductForm; dataDir: string } & ProductOutputOptions,
): Promise<void> {
  let last: ProductRow | undefined;
  const found = products.find(question, io.signal);
  const told = options.texts ? withTexts(found, products, { dataDir, nowUs: io.nowUs }) : found;
  const shown = (async function* (): AsyncGenerator<ShownProduct> {
    for await (const product of told) {
      if (io.signal.aborted) throw new AppError('cancelled', 'Ended before the last product.');
      last = product.row;
      yield product;
    }
  })();
  const count = await writeProducts(io.stdout, form, shown, options);
  if (count === 0 && form === 'table') io.stderr.write(nothingMatches(question));
  if (last === undefined || count !== question.limit) return;
  const { entity, order } = question;
  const key = writePageKey(products.keyOf(last, question), entity, order);
  io.stderr.write(`${count} shown. For what may follow: the same with --after ${key}\n`);
}

function nothingMatches({ entity, after }: Question): string {
  if (after !== undefined) return 'Nothing follows.\n';
  return entity === 'Products'
    ? 'No product matches. Texts must match as a whole, and case counts. How it was understood: --explain\n'
    : 'No deleted product matches. How it was understood: --explain\n';
}

async function explain(
  io: Io,
  products: Products,
  question: Question,
  json: boolean,
): Promise<void> {
  const { entity, filter, order, received } = question;
  const explanation = await products.explain(question);
  const shown = {
    entity,
    filter: filter === null ? '' : printFilter(filter),
    orderby: `${order.by} ${order.direction}`,
    ...explanation,
  };
  const times = [
    ...(received?.fromUs === undefined ? [] : [`from ${formatDateUs(received.fromUs)}`]),
    ...(received?.untilUs === undefined ? [] : [`before ${formatDateUs(received.untilUs)}`]),
  ];
  if (json) return writeOut(io.stdout, `${JSON.stringify(shown, null, 2)}\n`);
  const lines = [
    `asked of    ${entity}`,
    `filter      ${shown.filter === '' ? '(none: every one)' : shown.filter}`,
    ...(times.length === 0 ? [] : [`received    ${times.join(', ')}`]),
    `order       ${shown.orderby}`,
    ...explanationLines(explanation),
  ];
  await writeOut(io.stdout, `${lines.join('\n')}\n`);
}
