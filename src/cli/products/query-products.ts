/** Answers `earshot query products`: rows, a number, or how they would be found. */
import { readDataConfig } from '../../config/read-config.ts';
import { AppError } from '../../domain/app-error.ts';
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
import { writeOut } from '../write-out.ts';
import { compileFlags } from './compile-flags.ts';
import { withCurrentIndex } from './current-index.ts';
import { explanationLines } from './explanation.ts';
import { readPageKey, writePageKey } from './page-key.ts';
import type { ProductFlags } from './product-flags.ts';
import { formsWithRecords, type ProductForm, tableRowsDefault } from './product-forms.ts';
import { type Order, parseOrder } from './product-order.ts';
import { type ShownProduct, writeProducts } from './product-output.ts';
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
}

type Question = ProductQuery & { order: Order };

export async function queryProducts(io: Io, flags: QueryProductsFlags): Promise<void> {
  const { output: form } = flags;
  if (flags.explain && form !== 'table' && form !== 'json') {
    throw new AppError(
      'usage',
      '--explain prints table or json. Leave out --output, or use --json.',
    );
  }
  const question = readQuestion(io, flags, form);
  const place = readDataConfig(io);
  const { dataDir } = place;
  await withCurrentIndex(place, io, async (products) => {
    if (flags.explain) return explain(io, products, question, flags.json === true);
    if (flags.count) {
      return writeOut(io.stdout, `${await products.count(question, io.signal)}\n`);
    }
    await list(io, products, question, { form, texts: flags.summaries === true, dataDir });
  });
}

/** All that can be wrong with the flags is told before anything is opened. */
function readQuestion(io: Io, flags: QueryProductsFlags, form: ProductForm): Question {
  const { entity, filter } = compileFlags(flags, io);
  const { orderby, after, since, until } = flags;
  const order = orderby === undefined ? defaultOrderOf(entity) : parseOrder(orderby, entity);
  return {
    entity,
    filter,
    received: { fromUs: since, untilUs: until },
    order,
    after: after === undefined ? undefined : readPageKey(after, entity, order),
    limit: flags.limit ?? (form === 'table' ? tableRowsDefault : undefined),
    records: formsWithRecords.has(form) || flags.summaries === true,
  };
}

async function list(
  io: Io,
  products: Products,
  question: Question,
  { form, texts, dataDir }: { form: ProductForm; texts: boolean; dataDir: string },
): Promise<void> {
  let last: ProductRow | undefined;
  const found = products.find(question, io.signal);
  const told = texts ? withTexts(found, products, { dataDir, nowUs: io.nowUs }) : found;
  const shown = (async function* (): AsyncGenerator<ShownProduct> {
    for await (const product of told) {
      if (io.signal.aborted) throw new AppError('cancelled', 'Ended before the last product.');
      last = product.row;
      yield product;
    }
  })();
  const count = await writeProducts(io.stdout, form, shown, { texts });
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
