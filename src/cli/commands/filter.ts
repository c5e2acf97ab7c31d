/** `earshot filter`: checks, explains and tests a $filter expression. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { checkConfig, dataSections, loadConfig } from '../../config/config.ts';
import type { Environment } from '../../config/load.ts';
import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/dates.ts';
import { type Entity, entities, type FilterTree } from '../../domain/filter-tree.ts';
import type { Products, QueryExplanation } from '../../domain/products.ts';
import { likelyNames, printable } from '../../domain/text.ts';
import { checkFilter } from '../../filter/check.ts';
import { describeFilter } from '../../filter/describe.ts';
import { toFindingJson } from '../../filter/finding.ts';
import { printFilter } from '../../filter/print.ts';
import { readRegistrations } from '../../store/account.ts';
import { databaseFileName } from '../../store/engine/database.ts';
import { defineCommand, defineGroup, withParts } from '../command.ts';
import { entitiesOf, findingText, readFilter } from '../filter-text.ts';
import { addSpan, jsonOption, readTime } from '../flags.ts';
import type { Io } from '../io.ts';
import { type Column, createProgressLine, printJson, printTable, writeOut } from '../output.ts';
import { allOf, during, type TimeRange } from '../product-flags.ts';
import { explanationLines, withCurrentIndex } from '../product-index.ts';

interface FilterFlags {
  entity?: Entity;
  subscription?: string;
  json?: true;
}

type Expression = string | undefined;

const checkCommand = defineCommand('check', {
  description: 'Check a filter for errors and possible mistakes.',
  flags: (command) => withFilter(command).addOption(jsonOption()),
  help: `A filter with an error cannot be used. A filter with a warning can be used. A warning reports that
the filter possibly selects other products than intended, or that the catalogue does not document
this form of filter.

Fields of --json: valid, entity, canonical, findings.
  canonical   filter in a normalized form; null if the filter is invalid
  findings    list of findings with severity, code, message, expected, hint, start and end
  start, end  position of the finding in the filter, in UTF-16 units; end is exclusive

Exit codes: 0 no errors (warnings are possible), 1 failed, 2 errors in the filter or wrong usage.

Examples:
  $ earshot filter check "ContentDate/Start gt 2026-11-01T00:00:00Z"     check a filter
  $ earshot filter check "DeletionDate gt 2026-11-01" --entity DeletedProducts    for deletions
  $ earshot filter check --subscription alps                            check a configured filter`,
  run: async (io, flags: FilterFlags, expression: Expression) =>
    printCheck(await readFilterArgument(expression, flags, io), flags, io),
});

const explainCommand = defineCommand('explain', {
  description: 'Explain a filter in plain English.',
  flags: (command) =>
    withFilter(command)
      .option('--plan', 'also print the query plan of the product index')
      .addOption(jsonOption()),
  help: `Fields of --json: entity, canonical, words, index.
  canonical   filter in a normalized form
  words       explanation as a list of sentences
  index       narrowedBy, byColumns, byRecords and plan; null without --plan or without a product
              index
  narrowedBy  SQLite index and condition that limit the read products; null if all are read
  byColumns   conditions that need only the columns of the product index
  byRecords   conditions that also need the footprint or the original record of a product

Exit codes: 0 done, 1 failed, 2 errors in the filter or wrong usage.

Examples:
  $ earshot filter explain "not (Online eq true) or endswith(Name,'_COG.SAFE')"
  $ earshot filter explain --subscription alps         explain a configured filter
  $ earshot filter explain "Online eq true" --plan     also print the query plan`,
  run: async (io, flags: FilterFlags & { plan?: true }, expression: Expression) => {
    const { text, entity } = await readFilterArgument(expression, flags, io);
    const filter = readFilter(text, entity, io);
    const words = filter === null ? ['All products match.'] : describeFilter(filter);
    const index = flags.plan ? await indexPart({ entity, filter }, io) : null;
    if (flags.json) {
      const canonical = filter === null ? '' : printFilter(filter);
      const shown = { entity, canonical, words, index };
      return printJson(io.stdout, shown);
    }
    const lines = words.map(printable);
    if (index !== null) lines.push('', 'Product index:', ...explanationLines(index));
    await writeOut(io.stdout, `${lines.join('\n')}\n`);
  },
});

interface TestFlags extends FilterFlags {
  since?: number;
  until?: number;
}

const testCommand = defineCommand('test', {
  description: 'Count the received products that match a filter, by day of publication.',
  flags: (command, io) =>
    addSpan(withFilter(command), readTime(io), 'time of publication or deletion').addOption(
      jsonOption(),
    ),
  help: `The command counts only products that earshot has received. Deleted products are counted by day of
deletion. Products without a publication date are counted by day of the first receipt, and only if
--since and --until are not set.

Fields of --json: entity, matching, total, share, days.
  total  number of all received products of the time range
  share  matching divided by total

Exit codes: 0 done, 1 failed, 2 errors in the filter or wrong usage.

Examples:
  $ earshot filter test "contains(Name,'MSIL2A')" --since 30d                     last 30 days
  $ earshot filter test --subscription alps --json                              configured filter
  $ earshot filter test "DeletionDate gt 2026-11-01" --entity DeletedProducts     deletions`,
  run: async (io, flags: TestFlags, expression: Expression) =>
    testFilter(await readFilterArgument(expression, flags, io), flags, io),
});

export const filterCommand = defineGroup('filter', {
  description: 'Check, explain or test a $filter expression.',
  help: `Exit codes: 0 done, 1 failed, 2 errors in the filter or wrong usage.

Examples:
  $ earshot filter check "Collection/Name eq 'SENTINEL-2'"     find errors
  $ earshot filter explain --subscription alps                 explain in plain English
  $ earshot filter test --subscription alps --since 30d        count matching products`,
  commands: [checkCommand, explainCommand, testCommand],
});

function withFilter(command: Command): Command {
  return command
    .argument('[expression]', '$filter expression, in quotes')
    .addOption(
      new Option('--entity <entity>', 'entity of the filter (default: Products)').choices(entities),
    )
    .option('--subscription <name>', 'subscription name (of earshot.config.ts, or registered)');
}

/** Prints the findings. Rejects with `usage` for a filter with an error. */
async function printCheck(
  { text, entity }: FilterArgument,
  { json }: FilterFlags,
  io: Io,
): Promise<void> {
  const { tree, findings } = checkFilter(text, entity);
  const errors = findings.filter(({ severity }) => severity === 'error');
  const valid = errors.length === 0;
  if (json) {
    // A blank filter is valid: the subscription has all products.
    const normalized = tree === null ? '' : printFilter(tree);
    const canonical = valid ? normalized : null;
    const shown = { valid, entity, canonical, findings: findings.map(toFindingJson) };
    await printJson(io.stdout, shown);
  } else {
    for (const finding of findings) {
      await writeOut(io.stdout, `${findingText(text, finding, io, io.stdout)}\n`);
    }
  }
  if (!valid) {
    const count = errors.length === 1 ? 'an error' : `${errors.length} errors`;
    throw new AppError('usage', `The filter has ${count}.`);
  }
  if (!json) io.stderr.write(`The filter is valid for ${entity}.\n`);
}

/** Returns null without an index, with the reason on stderr. */
async function indexPart(
  query: { entity: FilterArgument['entity']; filter: FilterTree | null },
  io: Io,
): Promise<QueryExplanation | null> {
  const { dataDir } = loadConfig(io, dataSections);
  const warn = (reason: string) => void io.stderr.write(`No query plan: ${reason}\n`);
  if (!existsSync(join(dataDir, databaseFileName))) {
    warn(`there is no database in ${printable(dataDir)} (EARSHOT_DATA_DIR).`);
    return null;
  }
  try {
    return await withParts(io, ['products'], ({ products }) => products.explain(query));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    warn(printable(errorText(error)));
    return null;
  }
}

type Day = Matches['days'][number];

/** Maximum width of a bar, in characters. */
const barWidth = 30;

async function testFilter(
  { text, entity }: FilterArgument,
  { since, until, json }: TestFlags,
  io: Io,
): Promise<void> {
  const filter = readFilter(text, entity, io);
  await withCurrentIndex(loadConfig(io, dataSections), io, async (products) => {
    const published = { fromUs: since, untilUs: until };
    const matches = await matchesByDay(products, { entity, filter, published }, io);
    if (json) return printJson(io.stdout, matches);
    await printTable(io.stdout, columnsOf(matches.days, io), matches.days);
    await writeOut(io.stdout, `${summary(matches, since !== undefined || until !== undefined)}\n`);
  });
}

function columnsOf(days: readonly Day[], { stdout }: Pick<Io, 'stdout'>): Column<Day>[] {
  const most = days.reduce((max, { matching }) => Math.max(max, matching), 1);
  const bar = ({ matching }: Day) => '█'.repeat(Math.ceil((matching / most) * barWidth));
  return [
    { title: 'day (UTC)', value: ({ day }) => day },
    { title: 'products', value: ({ matching }) => String(matching), align: 'right' },
    ...(stdout.isTTY ? [{ title: '', value: bar }] : []),
  ];
}

function summary({ entity, matching, total, share }: Matches, isBounded: boolean): string {
  const what = entity === 'Products' ? 'products' : 'deleted products';
  if (total === 0 && isBounded) return `No ${what} in this time range. Check --since and --until.`;
  if (total === 0) return `No ${what} received yet.`;
  const percent = (share * 100).toFixed(share === 1 || share === 0 ? 0 : 1);
  const verb = matching === 1 ? 'matches' : 'match';
  return `${matching} of ${total} ${what} ${verb} (${percent} %)`;
}

/** Rows between two updates of the progress line. */
const rowsPerUpdate = 1_000;

interface Matches {
  entity: Entity;
  /** Number of matching products. */
  matching: number;
  /** Number of all products in the same time range. */
  total: number;
  /** `matching / total`; 0 without products. */
  share: number;
  /** Days with at least one, oldest first, UTC. */
  days: { day: string; matching: number }[];
}

/**
 * Counts products by day of publication, or of first receipt without a publication date; tombstones by day of
 * deletion. With a bound in `published`, counts only products with a date in the range.
 */
async function matchesByDay(
  products: Products,
  asked: { entity: Entity; filter: FilterTree | null; published: TimeRange },
  io: Pick<Io, 'stderr' | 'signal'>,
): Promise<Matches> {
  const { entity, filter, published } = asked;
  const dateField = entity === 'Products' ? 'PublicationDate' : 'DeletionDate';
  const within = during(dateField, published);
  const total = await products.count({ entity, filter: allOf(within) });
  const matched = allOf([...within, ...(filter === null ? [] : [filter])]);
  const counts = new Map<string, number>();
  const progress = createProgressLine(io.stderr);
  let matching = 0;
  for await (const { row } of products.find({ entity, filter: matched, records: false })) {
    if (io.signal.aborted)
      throw new AppError('cancelled', 'Interrupted before the count was complete.');
    const dayUs = row.deletionUs ?? row.publicationUs ?? row.receivedAtUs;
    const day = formatDateUs(dayUs).slice(0, 10);
    counts.set(day, (counts.get(day) ?? 0) + 1);
    matching += 1;
    if (matching % rowsPerUpdate === 0) progress.show(`${matching} products match so far`);
  }
  progress.clear();
  const days = [...counts]
    .map(([day, count]) => ({ day, matching: count }))
    .toSorted((a, b) => (a.day < b.day ? -1 : 1));
  return { entity, matching, total, share: total === 0 ? 0 : matching / total, days };
}

type FilterIo = Pick<Io, 'workingDir'> & Environment;

interface FilterArgument {
  text: string;
  entity: Entity;
}

/** Returns the filter of the expression or the subscription. Throws `usage` for neither, both, or an unknown name. */
async function readFilterArgument(
  expression: Expression,
  { subscription, entity }: FilterFlags,
  io: FilterIo,
): Promise<FilterArgument> {
  if (expression !== undefined && subscription !== undefined) {
    throw new AppError('usage', 'Use either an expression or --subscription, not both.');
  }
  if (expression === undefined && subscription === undefined) {
    throw new AppError(
      'usage',
      `The filter is missing. Give an expression in quotes, or --subscription: \`earshot filter check "Collection/Name eq 'SENTINEL-2'"\``,
    );
  }
  if (subscription === undefined) return { text: expression ?? '', entity: entity ?? 'Products' };
  return ofSubscription(subscription, entity, io);
}

async function ofSubscription(
  name: string,
  entity: Entity | undefined,
  io: FilterIo,
): Promise<FilterArgument> {
  const { dataDir } = checkConfig(io, ['dataDir']).config;
  const configured = (await loadSubscriptionsFile(io.workingDir)) ?? [];
  const isNamed = (one: { name: string }) => one.name === name;
  const isConfigured = configured.some(isNamed);
  const registered = isConfigured || dataDir === undefined ? [] : readRegistrations(dataDir);
  const found = [...configured, ...registered].find(isNamed);
  if (found === undefined) {
    const names = [...new Set([...configured, ...registered].map((one) => one.name))];
    const near = likelyNames(name, names).slice(0, 3).join(' or ');
    const known = `Known subscriptions: ${names.join(', ') || 'none'}.`;
    const advice = near === '' ? known : `Did you mean ${near}?`;
    throw new AppError('usage', `There is no subscription "${name}".`, { advice });
  }
  const [own = 'Products', other] = entitiesOf(found.events);
  if (other !== undefined && entity === undefined) {
    throw new AppError(
      'usage',
      `"${name}" has deletions and other events. Select one entity: --entity ${own} or --entity ${other}.`,
    );
  }
  return { text: found.filter, entity: entity ?? own };
}
