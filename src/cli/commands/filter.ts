/** `earshot filter`: checks, explains and tries a $filter expression before it is registered. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { dataSections, loadConfig } from '../../config/config.ts';
import { loadSubscriptionsFile, subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/dates.ts';
import { type Entity, entities, type FilterTree } from '../../domain/filter-tree.ts';
import type { Products, QueryExplanation } from '../../domain/products.ts';
import { printable } from '../../domain/text.ts';
import { checkFilter } from '../../filter/check.ts';
import { describeFilter } from '../../filter/describe.ts';
import { type FilterFinding, isKnownRefusal } from '../../filter/finding.ts';
import { printFilter } from '../../filter/print.ts';
import { databaseFileName } from '../../store/engine/database.ts';
import { defineCommand, defineGroup, withParts } from '../command.ts';
import { entitiesOf, findingText, readFilter } from '../filter-text.ts';
import { addSpan, readTime } from '../flags.ts';
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
  description: 'Check a filter: errors with their place, and warnings.',
  flags: (command) =>
    withFilter(command).option('--json', 'as JSON: valid entity canonical findings'),
  help: `Exits 0 for a filter without errors, 2 for one with errors. Warnings are no errors: the filter can
be used, but it may not mean what it seems to, or the catalogue's answer is not known.

Fields of --json: valid, entity, canonical (the filter in one spelling; null for an invalid one),
findings. Each finding: severity (error or warning), code, message, expected, hint (null where there
is none), start and end: the place in UTF-16 units, end excluded.

Examples:
  $ earshot filter check "ContentDate/Start gt 2026-11-01T00:00:00Z"
  $ earshot filter check "DeletionDate gt 2026-11-01" --entity DeletedProducts
  $ earshot filter check --subscription alps-s2 --json`,
  run: async (io, flags: FilterFlags, expression: Expression) =>
    printCheck(await readFilterArgument(expression, flags, io), flags, io),
});

const explainCommand = defineCommand('explain', {
  description: 'Say a filter in plain words.',
  flags: (command) =>
    withFilter(command)
      .option('--plan', 'add which parts the product index answers, and how SQLite finds them')
      .option('--json', 'as JSON: entity canonical words index (null without --plan)'),
  help: `Fields of index in --json: narrowedBy byColumns byRecords plan. It is null without a data
directory, too.

Example:
  $ earshot filter explain "not (Online eq true) or endswith(Name,'_COG.SAFE')"`,
  run: async (io, flags: FilterFlags & { plan?: true }, expression: Expression) => {
    const { text, entity } = await readFilterArgument(expression, flags, io);
    const filter = readFilter(text, entity, io);
    const words = filter === null ? ['Everything matches.'] : describeFilter(filter);
    const index = flags.plan ? await indexPart({ entity, filter }, io) : null;
    if (flags.json) {
      const canonical = filter === null ? '' : printFilter(filter);
      const shown = { entity, canonical, words, index };
      return printJson(io.stdout, shown);
    }
    const lines = words.map(printable);
    if (index !== null) lines.push('', 'With the product index:', ...explanationLines(index));
    await writeOut(io.stdout, `${lines.join('\n')}\n`);
  },
});

interface TestFlags extends FilterFlags {
  since?: number;
  until?: number;
}

const testCommand = defineCommand('test', {
  description: 'Count the products received that match, by the day of their publication.',
  flags: (command, io) =>
    addSpan(withFilter(command), readTime(io), 'published (or deleted)').option(
      '--json',
      'as JSON: entity matching total share days',
    ),
  help: `A product without a date of publication counts on the day on which it was first received, and not at
all with --since or --until. Deleted products count on the day of their deletion. What your
subscriptions kept out was never received, so it cannot be counted.

Fields of --json: entity, matching, total (all products of that time), share (matching / total),
days (each: day, matching).

Example:
  $ earshot filter test "Online eq true and contains(Name,'MSIL2A')" --since 30d`,
  run: async (io, flags: TestFlags, expression: Expression) =>
    testFilter(await readFilterArgument(expression, flags, io), flags, io),
});

export const filterCommand = defineGroup('filter', {
  description: 'Check a $filter expression, explain it, try it on what has been received.',
  help: `Examples:
  $ earshot filter check "Collection/Name eq 'SENTINEL-2' and contains(Name,'_T31UFR_')"
  $ earshot filter explain --subscription alps-s2
  $ earshot filter test --subscription alps-s2 --since 30d`,
  commands: [checkCommand, explainCommand, testCommand],
});

function withFilter(command: Command): Command {
  return command
    .argument('[expression]', 'a $filter expression, in quotes')
    .addOption(
      new Option('--entity <entity>', 'what it is about (default: Products)').choices(entities),
    )
    .option('--subscription <name>', 'the filter of this subscription in earshot.config.ts');
}

/** Rejects with `usage` for a filter with an error. */
async function printCheck(
  { text, entity }: FilterArgument,
  { json }: FilterFlags,
  io: Io,
): Promise<void> {
  const { tree, findings } = checkFilter(text, entity);
  const errors = findings.filter(({ severity }) => severity === 'error');
  const valid = errors.length === 0;
  if (json) {
    // A blank one is what a subscription to everything has.
    const spelled = tree === null ? '' : printFilter(tree);
    const canonical = valid ? spelled : null;
    const shown = { valid, entity, canonical, findings: findings.map(toShown) };
    await printJson(io.stdout, shown);
  } else {
    for (const finding of findings) {
      await writeOut(io.stdout, `${findingText(text, finding, io, io.stdout)}\n`);
    }
  }
  if (!valid) {
    const count = errors.length === 1 ? 'an error' : `${errors.length} errors`;
    const why = errors.some(isKnownRefusal)
      ? 'The catalogue would refuse it.'
      : 'earshot cannot use it.';
    throw new AppError('usage', `The filter has ${count}. ${why}`);
  }
  if (!json) io.stderr.write(`The filter is valid for ${entity}.\n`);
}

/** Every field is always there, so that programs need not ask. */
function toShown({ severity, code, message, expected, hint, start, end }: FilterFinding) {
  return { severity, code, message, expected: expected ?? null, hint: hint ?? null, start, end };
}

/** Null, with the reason on stderr, where there is no index. */
async function indexPart(
  query: { entity: FilterArgument['entity']; filter: FilterTree | null },
  io: Io,
): Promise<QueryExplanation | null> {
  const { dataDir } = loadConfig(io, dataSections);
  const warn = (reason: string) =>
    void io.stderr.write(`The product index is not shown: ${reason}\n`);
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

/** As long as the longest day's. */
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
  if (total === 0 && isBounded)
    return `None of the ${what} here are of that time: check --since and --until.`;
  if (total === 0) return `There are no ${what} here yet to try it on.`;
  const percent = (share * 100).toFixed(share === 1 || share === 0 ? 0 : 1);
  const verb = matching === 1 ? 'matches' : 'match';
  return `${matching} of ${total} ${what} ${verb} (${percent} %)`;
}

/** Counted so often between two signs of life. */
const rowsPerSign = 1_000;

interface Matches {
  entity: Entity;
  /** Products that match. */
  matching: number;
  /** All products, of the same time. */
  total: number;
  /** `matching / total`; 0 where there are none. */
  share: number;
  /** Days with at least one, oldest first, UTC. */
  days: { day: string; matching: number }[];
}

/**
 * A product without a date of publication counts on the day on which it was first received; a tombstone
 * on that of its deletion. With a bound in `published`, only those count whose date lies within.
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
    if (io.signal.aborted) throw new AppError('cancelled', 'Ended before all were counted.');
    const dayUs = row.deletionUs ?? row.publicationUs ?? row.receivedAtUs;
    const day = formatDateUs(dayUs).slice(0, 10);
    counts.set(day, (counts.get(day) ?? 0) + 1);
    matching += 1;
    if (matching % rowsPerSign === 0) progress.show(`${matching} products match so far`);
  }
  progress.done();
  const days = [...counts]
    .map(([day, count]) => ({ day, matching: count }))
    .toSorted((a, b) => (a.day < b.day ? -1 : 1));
  return { entity, matching, total, share: total === 0 ? 0 : matching / total, days };
}

interface FilterArgument {
  text: string;
  entity: Entity;
}

/** Throws `usage` for neither or both of them, and for a name that is none. */
async function readFilterArgument(
  expression: Expression,
  { subscription, entity }: FilterFlags,
  io: Pick<Io, 'workingDir'>,
): Promise<FilterArgument> {
  if (expression !== undefined && subscription !== undefined) {
    throw new AppError('usage', 'Give either an expression or --subscription, not both.');
  }
  if (expression === undefined && subscription === undefined) {
    throw new AppError(
      'usage',
      `Write the expression in quotes, or name a subscription of ${subscriptionsFileName}: \`earshot filter check "Collection/Name eq 'SENTINEL-2'"\``,
    );
  }
  if (subscription === undefined) return { text: expression ?? '', entity: entity ?? 'Products' };
  return ofSubscription(subscription, entity, io);
}

async function ofSubscription(
  name: string,
  entity: Entity | undefined,
  { workingDir }: Pick<Io, 'workingDir'>,
): Promise<FilterArgument> {
  const all = await loadSubscriptionsFile(workingDir);
  if (all === null) {
    throw new AppError('usage', `There is no ${subscriptionsFileName} in ${workingDir}.`);
  }
  const found = all.find((one) => one.name === name);
  if (found === undefined) {
    const names = all.map((one) => one.name).join(', ') || 'none';
    throw new AppError(
      'usage',
      `${subscriptionsFileName} names no subscription "${name}". It names: ${names}.`,
    );
  }
  const [own = 'Products', other] = entitiesOf(found.events);
  if (other !== undefined && entity === undefined) {
    throw new AppError(
      'usage',
      `"${name}" wants deletions and other events: say which ones with --entity ${own} or --entity ${other}.`,
    );
  }
  return { text: found.filter, entity: entity ?? own };
}
