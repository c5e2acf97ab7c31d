/** `earshot query products`: the products that notifications told of, in the catalogue's own terms. */
import { Option } from 'commander';
import { z } from 'zod';
import { dataSections, loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/dates.ts';
import type { Entity, FilterTree } from '../../domain/filter-tree.ts';
import { productLinkFields } from '../../domain/json-rows.ts';
import {
  defaultOrderOf,
  type ProductKey,
  type ProductOrder,
  type ProductQuery,
  type Products,
} from '../../domain/products.ts';
import { jsonOf } from '../../domain/text.ts';
import { orderableFields } from '../../filter/fields.ts';
import { printFilter } from '../../filter/print.ts';
import { defineCommand } from '../command.ts';
import {
  addOutputForms,
  addSpan,
  addTableFlags,
  limitOption,
  type OutputFlags,
  readTime,
} from '../flags.ts';
import type { Io } from '../io.ts';
import { writeOut } from '../output.ts';
import { addProductFlags, compileFlags, type ProductFlags } from '../product-flags.ts';
import { explanationLines, withCurrentIndex } from '../product-index.ts';
import { productFieldNames, withTexts, writeProducts } from '../product-output.ts';
import { type ProductForm, productForms, readColumns, reportNextPage } from '../row-forms.ts';

interface QueryProductsFlags extends ProductFlags, OutputFlags<ProductForm> {
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

/** Rows of a table without `--limit`; the other forms print all. */
const tableRowsDefault = 50;

export const queryProductsCommand = defineCommand('products', {
  description: 'Show products in their newest known state, or those that have been deleted.',
  flags: (command, io) => {
    addProductFlags(command, io).option(
      '--orderby <order>',
      'received, PublicationDate, ModificationDate, ContentDate/Start, ContentDate/End or DeletionDate; then asc or desc (default: newest first)',
    );
    addSpan(command, readTime(io), 'first received')
      .addOption(limitOption({ note: `table: ${tableRowsDefault}, else all` }))
      .option('--after <key>', 'go on after a page; it tells the key');
    return addTableFlags(addOutputForms(command, productForms))
      .option('--summaries', 'with a text about each, in every form')
      .addOption(
        new Option('--count', 'print how many there are').conflicts([
          'after',
          'limit',
          'output',
          'summaries',
        ]),
      )
      .addOption(
        new Option('--explain', 'print what the flags mean and how it is found').conflicts([
          'count',
          'summaries',
        ]),
      );
  },
  help: `All flags together must match. Text is compared exactly, and case counts. In --name, * at the end
means "starts with", at the beginning "ends with", and parts between two of them may come in any
order. Of A..B, B is part of the span when it is a day, a month or a year. --deleted shows
tombstones, with the date and cause of deletion.

The table shows what it is sorted by, when it was sensed, satellite, product type, tile or orbit.
Cloud cover, place, name and size follow where the terminal has the width.

json and ndjson: the record as the catalogue sent it. geojson: a FeatureCollection (RFC 7946). ids:
one a line. Columns of csv, and properties of geojson: position productId productName collection
platform productType processingLevel sensingStart sensingEnd publicationDate modificationDate
sizeBytes online cloudCoverPercent orbitNumber relativeOrbitNumber orbitDirection tile
processingBaseline receivedAt deletionDate deletionCause s3Path downloadUrl. Times are ISO 8601 UTC.
downloadUrl is EARSHOT_CATALOGUE_URL/odata/v1/Products(<productId>)/$value, empty for deleted
products; a download needs an access token. A record without attributes has the platform, type,
level, orbit and tile of its name. With --explain, --json gives entity filter orderby narrowedBy
byColumns byRecords plan.

--summaries: the text that \`summarize\` or a rule had written, else one made of the facts alone. In
json, ndjson and geojson it is summary {text model verified createdAt}, in csv the columns summary
summaryModel summaryVerified; ids get it after a tab.

Examples:
  $ earshot query products --collection S2 --tile 31UFR --cloud-below 20 --sensed 7d
  $ earshot query products --bbox 5.5,45,11,48 --published 2026-11 --output geojson > alps.geojson
  $ earshot query products --area area.geojson --type S2MSI2A --count
  $ earshot query products --name 'S2A_MSIL2A_*T32TQM*' --output ids
  $ earshot query products --deleted 7d --output csv
  $ earshot query products --sensed 24h --output csv --columns productName,downloadUrl
  $ earshot query products --published 24h --summaries
  $ earshot query products --filter "Online eq false" --orderby "PublicationDate asc"`,
  run: queryProducts,
});

type Question = ProductQuery & { order: Order };

async function queryProducts(io: Io, flags: QueryProductsFlags): Promise<void> {
  const { output: form, summaries: texts = false, wide = false } = flags;
  if (flags.explain && form !== 'table' && form !== 'json') {
    throw new AppError('usage', '--explain prints table or json.', {
      advice: 'Leave out --output, or use --json.',
    });
  }
  const columns = readColumns(flags.columns, form, productFieldNames({ texts }));
  const question = readQuestion(io, flags, columns);
  const place = loadConfig(io, dataSections);
  const hasLinks = columns !== undefined || form === 'csv' || form === 'geojson';
  const catalogueUrl = hasLinks ? loadConfig(io, ['catalogueUrl']).catalogueUrl : '';
  await withCurrentIndex(place, io, async (products) => {
    const { stdout, stderr, signal, nowUs } = io;
    if (flags.explain) return explain(io, products, question, flags.json === true);
    if (flags.count) return writeOut(stdout, `${await products.count(question, signal)}\n`);
    const found = untilAborted(products.find(question, signal), signal);
    const { dataDir } = place;
    const shown = texts ? withTexts(found, products, { dataDir, nowUs }) : found;
    const { entity, order, limit } = question;
    const options = { columns, texts, wide, catalogueUrl, orderedBy: order.by };
    const { count, last } = await writeProducts(stdout, form, shown, options);
    if (count === 0 && form === 'table') stderr.write(nothingMatches(question));
    if (last === undefined) return;
    const key = writePageKey(products.keyOf(last.row, question), entity, order);
    reportNextPage(io, { count, limit }, `--after ${key}`);
  });
}

async function* untilAborted<Row>(
  rows: AsyncIterable<Row>,
  signal: AbortSignal,
): AsyncGenerator<Row> {
  for await (const row of rows) {
    if (signal.aborted) throw new AppError('cancelled', 'Ended before the last product.');
    yield row;
  }
}

/** Reports every fault of the flags before anything is opened. */
function readQuestion(
  io: Io,
  flags: QueryProductsFlags,
  columns: readonly string[] | undefined,
): Question {
  const { output: form, tile, orderby, after, since, until, limit, summaries = false } = flags;
  const known = tile === undefined ? flags : { ...flags, tile: orByName(tile) };
  const { entity, filter } = compileFlags(known, io);
  const order = orderby === undefined ? defaultOrderOf(entity) : parseOrder(orderby, entity);
  // What needs no record is written from the columns of the index alone, which is faster.
  const needsRecords =
    columns === undefined
      ? form !== 'ids'
      : productLinkFields.some((field) => columns.includes(field));
  return {
    entity,
    filter,
    received: { fromUs: since, untilUs: until },
    order,
    after: after === undefined ? undefined : readPageKey(after, entity, order),
    limit: limit ?? (form === 'table' ? tableRowsDefault : undefined),
    records: needsRecords || summaries,
  };
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

function nothingMatches({ entity, after }: Question): string {
  if (after !== undefined) return 'Nothing follows.\n';
  return entity === 'Products'
    ? 'No product matches. Texts must match as a whole, and case counts. How it was understood: --explain\n'
    : 'No deleted product matches. How it was understood: --explain\n';
}

async function explain(
  { stdout }: Io,
  products: Products,
  question: Question,
  json: boolean,
): Promise<void> {
  const { entity, order, received = {} } = question;
  const explanation = await products.explain(question);
  const filter = question.filter === null ? '' : printFilter(question.filter);
  const orderby = `${order.by} ${order.direction}`;
  const { fromUs, untilUs } = received;
  const times = [
    ...(fromUs === undefined ? [] : [`from ${formatDateUs(fromUs)}`]),
    ...(untilUs === undefined ? [] : [`before ${formatDateUs(untilUs)}`]),
  ];
  const lines = [
    `asked of    ${entity}`,
    `filter      ${filter === '' ? '(none: every one)' : filter}`,
    ...(times.length === 0 ? [] : [`received    ${times.join(', ')}`]),
    `order       ${orderby}`,
    ...explanationLines(explanation),
  ];
  const shown = { entity, filter, orderby, ...explanation };
  await writeOut(stdout, `${json ? JSON.stringify(shown, null, 2) : lines.join('\n')}\n`);
}

/** Entity, field and direction of the order, value, position. */
const keySchema = z.tuple([z.string(), z.string(), z.string(), z.int().nullable(), z.int().min(0)]);

/** A word of letters, digits, `-` and `_`. It says the order, too, as it means nothing in another one. */
function writePageKey({ value, position }: ProductKey, entity: Entity, order: Order): string {
  const parts = [entity, order.by, order.direction, value, position];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** Throws `usage` for what is no key, or one of another order. */
function readPageKey(text: string, entity: Entity, order: Order): ProductKey {
  const parts = keySchema.safeParse(jsonOf(Buffer.from(text, 'base64url').toString())).data;
  if (parts === undefined) {
    throw new AppError(
      'usage',
      `--after ${text} is no key: use the one that the page before printed.`,
    );
  }
  const [ofEntity, by, direction, value, position] = parts;
  if (ofEntity === entity && by === order.by && direction === order.direction) {
    return { value, position };
  }
  const deleted = ofEntity === 'DeletedProducts' ? ' --deleted' : '';
  throw new AppError(
    'usage',
    `The key after --after belongs to --orderby "${by} ${direction}"${deleted}: use the same with it.`,
  );
}

type Order = NonNullable<ProductQuery['order']>;

/** Reads a field in any case and a direction, ascending unless told. Throws `usage`. */
function parseOrder(text: string, entity: Entity): Order {
  const [field = '', direction = 'asc', ...more] = text.trim().split(/\s+/);
  const choices: readonly ProductOrder[] = ['received', ...orderableFields[entity]];
  const by = choices.find((one) => one.toLowerCase() === field.toLowerCase());
  const wanted = direction.toLowerCase();
  if (by !== undefined && more.length === 0 && (wanted === 'asc' || wanted === 'desc')) {
    return { by, direction: wanted };
  }
  const of = entity === 'Products' ? 'products' : 'deleted products';
  throw new AppError(
    'usage',
    `--orderby "${text}" is no order of ${of}: use one of ${choices.join(', ')}, with asc or desc after it.`,
  );
}
