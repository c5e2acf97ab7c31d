/** `earshot query products`: searches the product index with the catalogue's filter terms. */

import { Option } from 'commander';
import { type CommandContext, defineCommand } from '../../core/cli/command.ts';
import {
  addOutputForms,
  addSpan,
  addTableFlags,
  limitOption,
  type OutputFlags,
} from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { createProgressLine, writeOut } from '../../core/cli/output.ts';
import { outputForms, readColumns } from '../../core/cli/row-forms.ts';
import { loadConfig } from '../../core/config/config.ts';
import { consoleBase } from '../../core/http/network-address.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import { counted, countText, printable } from '../../core/terms/text.ts';
import { whyEmpty } from '../../filter/describe.ts';
import { type Entity, type FilterTree, joined } from '../../filter/filter-tree.ts';
import {
  defaultOrderOf,
  type FoundProduct,
  ordersOf,
  type ProductQuery,
} from '../../filter/products.ts';
import { withCurrentIndex } from './current-index.ts';
import { addProductFlags, compileFlags, type ProductFlags } from './flags.ts';
import { type ProductFormat, productFieldNames, writeProducts } from './output.ts';

interface QueryProductsFlags extends ProductFlags, OutputFlags<string> {
  orderby?: string;
  /** Time of receipt of the first notification about a product. */
  since?: number;
  until?: number;
  limit?: number;
  count?: true;
  columns?: string;
  wide?: true;
}

/** Default limit of tables; the other formats are unlimited. */
const tableRowsDefault = 50;

const ownForms = [...outputForms, 'geojson', 'geoparquet', 'ids'];

/** Returns the formats that features add. */
const formatsOf = ({ features }: Pick<Io, 'features'>): ProductFormat[] =>
  features.flatMap(({ productFormats = [] }) => productFormats);

export const queryProductsCommand = defineCommand('products', {
  description: 'Search products by their newest known state, or search deleted products.',
  flags: (command, io) => {
    addProductFlags(command, io).option(
      '--orderby <order>',
      'sort order: a field, then asc or desc (default: newest first)',
    );
    addSpan(command, io, 'time of the first receipt').addOption(
      limitOption({ note: `${tableRowsDefault} in tables, otherwise unlimited` }),
    );
    addOutputForms(command, [...ownForms, ...formatsOf(io).map(({ name }) => name)]);
    return addTableFlags(command).addOption(
      new Option('--count', 'print only the number of products').conflicts(['limit', 'output']),
    );
  },
  help: (
    io,
  ) => `A product must match all flags. 7d is the range from 7 days ago to now. In a range A..B, A and B are
dates, or times such as 2026-11-20T06:00Z. If B is a day, month or year, then the range includes all
of B.

Fields of --orderby: received, PublicationDate, ModificationDate, ContentDate/Start,
ContentDate/End, DeletionDate. received is the time of the first receipt.

Output formats:
  json, ndjson  product records of the catalogue
  ids           one product id per line
${formatsOf(io)
  .map(({ name, help }) => `  ${name.padEnd(13)} ${help}\n`)
  .join('')}  geojson       FeatureCollection (RFC 7946) with the columns of csv as properties
  geoparquet    file for DuckDB, geopandas and others (GeoParquet 1.1): the columns of csv with
                types, geometry and bbox; default order: ContentDate/Start asc
  csv           position productId productName collection platform productType processingLevel
                sensingStart sensingEnd publicationDate modificationDate sizeBytes online
                cloudCoverPercent orbitNumber relativeOrbitNumber orbitDirection tile
                processingBaseline receivedAt deletionDate deletionCause s3Path downloadUrl
Times are ISO 8601 UTC. A download from s3Path or downloadUrl needs an access token.

Examples:
  $ earshot query products --collection S2 --tile 31UFR --cloud-below 20 --sensed 7d   one tile
  $ earshot query products --bbox 5.5,45,11,48 --output geojson > alps.geojson     one area
  $ earshot query products --sensed 2026-11 --output geoparquet > month.parquet   one month
  $ earshot query products --area area.geojson --type S2MSI2A --count     count matches
  $ earshot query products --sensed 7d.. --max-age 30d                    no reprocessed scenes
  $ earshot query products --filter "Online eq false" --orderby "PublicationDate asc"   offline`,
  check: refuseTerminal,
  run: queryProducts,
});

/** A terminal would interpret bytes of a file as commands. */
function refuseTerminal({ output: form }: QueryProductsFlags, { stdout }: Io): void {
  if (form !== 'geoparquet' || stdout.isTTY !== true) return;
  throw new AppError('usage', 'geoparquet output is a binary file, not for a terminal.', {
    advice: 'Add > products.parquet to the command.',
  });
}

type Question = ProductQuery & { order: Order };

async function queryProducts(
  io: Io & Pick<CommandContext, 'version'>,
  flags: QueryProductsFlags,
): Promise<void> {
  const { output: form, wide = false } = flags;
  const format = formatsOf(io).find(({ name }) => name === form);
  if (format?.hasDeleted === false && flags.deleted !== undefined) {
    throw new AppError('usage', `A deleted product has no form in the format ${form}.`, {
      advice: 'Use --output geojson or ndjson.',
    });
  }
  const columns = readColumns(flags.columns, form, productFieldNames());
  const question = readQuestion(io, flags, columns);
  const place = loadConfig(io, ['data']);
  const isLinked = format !== undefined || ['csv', 'geojson', 'geoparquet'].includes(form);
  const hasLinks = columns !== undefined || isLinked;
  const catalogueUrl = hasLinks ? loadConfig(io, ['catalogueUrl']).catalogueUrl : '';
  const lines = await linesOf(format, io, catalogueUrl);
  await withCurrentIndex(place, io, async (products) => {
    const { stdout, stderr, signal, version } = io;
    if (flags.count) return writeOut(stdout, `${await products.count(question, signal)}\n`);
    const found = untilAborted(products.find(question, signal), signal);
    const { entity, order, limit } = question;
    const progress = createProgressLine(stderr);
    const onProgress = (count: number) => {
      if (!stdout.isTTY) progress.show(`${countText(count)} products`);
    };
    const deleted = entity === 'DeletedProducts';
    const options = { columns, wide, catalogueUrl, lines, deleted, orderedBy: order.by };
    const written = writeProducts(stdout, form, found, { ...options, version, onProgress });
    const { count } = await written.finally(progress.clear);
    if (count === 0 && form === 'table') {
      stderr.write(`${printable(await whyEmpty(products, question, signal))}\n`);
    } else if (count === limit) {
      stderr.write(`${counted(count, 'row')}. For more rows, set --limit.\n`);
    }
  });
}

/** Returns the line writer of a format of another feature. */
async function linesOf(format: ProductFormat | undefined, io: Io, catalogueUrl: string) {
  if (format === undefined) return {};
  const { console } = loadConfig(io, ['console']);
  const base = consoleBase(console);
  const line = await format.load();
  return { [format.name]: (product: FoundProduct) => line(product, { catalogueUrl, base }) };
}

async function* untilAborted<Row>(
  rows: AsyncIterable<Row>,
  signal: AbortSignal,
): AsyncGenerator<Row> {
  const interrupted = () => new AppError('cancelled', 'Interrupted: the output is incomplete.');
  try {
    for await (const row of rows) {
      if (signal.aborted) throw interrupted();
      yield row;
    }
  } catch (error) {
    // The next page is read ahead, and rejects first.
    throw signal.aborted && isAppError(error, 'cancelled') ? interrupted() : error;
  }
}

/** Compiles the flags to a query. Throws `usage` for invalid flags before anything is opened. */
function readQuestion(
  io: Io,
  flags: QueryProductsFlags,
  columns: readonly string[] | undefined,
): Question {
  const { output: form, tile, orderby, since, until, maxAge, limit } = flags;
  const known = tile === undefined ? flags : { ...flags, tile: orByName(tile) };
  const { entity, filter } = compileFlags(known, io);
  const order = orderby === undefined ? usualOrder(entity, form) : parseOrder(orderby, entity);
  return {
    entity,
    filter,
    received: { fromUs: since, untilUs: until },
    maxAgeUs: maxAge,
    order,
    limit: limit ?? (form === 'table' ? tableRowsDefault : undefined),
    // Output from the index alone is faster than with records.
    records: columns === undefined && !formsOfColumns.includes(form),
    footprints: form === 'geoparquet' ? 'exact' : false,
  };
}

/** Formats that need only the columns of the index. */
const formsOfColumns: readonly string[] = ['ids', 'csv', 'geoparquet'];

/** The row groups of a file are periods of sensing time. */
function usualOrder(entity: Entity, form: string): Order {
  if (form === 'geoparquet') return { by: 'ContentDate/Start', direction: 'asc' };
  return defaultOrderOf(entity);
}

/** Also matches the tile in the name: a record without attributes has no tile attribute (decision 45). */
function orByName(tile: FilterTree): FilterTree {
  if (tile.node === 'or') return joined('or', tile.terms.map(orByName)) ?? tile;
  if (tile.node !== 'attribute' || tile.literal.type !== 'text') return tile;
  const name = `_T${tile.literal.value}_`;
  return {
    node: 'or',
    terms: [tile, { node: 'text', function: 'contains', field: 'Name', text: name }],
  };
}

type Order = ReturnType<typeof defaultOrderOf>;

/** Parses a field (case-insensitive) and a direction (default: ascending). Throws `usage`. */
function parseOrder(text: string, entity: Entity): Order {
  const [field = '', direction = 'asc', ...more] = text.trim().split(/\s+/);
  const choices = ordersOf(entity);
  const by = choices.find((one) => one.toLowerCase() === field.toLowerCase());
  const lower = direction.toLowerCase();
  if (by !== undefined && more.length === 0 && (lower === 'asc' || lower === 'desc')) {
    return { by, direction: lower };
  }
  const of = entity === 'Products' ? 'products' : 'deleted products';
  throw new AppError(
    'usage',
    `--orderby "${text}" is not a sort order of ${of}. Use one of ${choices.join(', ')}, followed by asc or desc.`,
  );
}
