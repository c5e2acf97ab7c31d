/** `earshot filter`: checks, explains and tries a $filter expression before it is registered. */
import { Command, Option } from 'commander';
import { type Entity, entities } from '../../domain/filter-tree.ts';
import type { Io } from '../io.ts';
import { sinceOption, untilOption } from '../shared-flags.ts';
import { readTime } from '../time-argument.ts';

interface FilterFlags {
  entity?: Entity;
  subscription?: string;
  json?: true;
  plan?: true;
}

interface TestFlags extends FilterFlags {
  since?: number;
  until?: number;
}

export function filterCommand(io: Io): Command {
  return new Command('filter')
    .description('Check a $filter expression, explain it, try it on what has been received.')
    .addHelpText(
      'after',
      `
Examples:
  $ earshot filter check "Collection/Name eq 'SENTINEL-2' and contains(Name,'_T31UFR_')"
  $ earshot filter explain --subscription alps-s2
  $ earshot filter test --subscription alps-s2 --since 30d`,
    )
    .addCommand(checkCommand(io))
    .addCommand(explainCommand(io))
    .addCommand(testCommand(io));
}

function checkCommand(io: Io): Command {
  return withFilter(new Command('check'))
    .description('Check a filter: errors with their place, and warnings.')
    .option('--json', 'as JSON: valid entity canonical findings')
    .addHelpText(
      'after',
      `
Exits 0 for a filter without errors, 2 for one with errors. Warnings are no errors: the filter can
be used, but it may not mean what it seems to, or the catalogue's answer is not known.

Fields of --json: valid, entity, canonical (the filter in one spelling; null for an invalid one),
findings. Each finding: severity (error or warning), code, message, expected, hint (null where there
is none), start and end: the place in UTF-16 units, end excluded.

Examples:
  $ earshot filter check "ContentDate/Start gt 2026-11-01T00:00:00Z"
  $ earshot filter check "DeletionDate gt 2026-11-01" --entity DeletedProducts
  $ earshot filter check --subscription alps-s2 --json`,
    )
    .action(async (expression: string | undefined, flags: FilterFlags) => {
      const { checkAndTell } = await import('../filter/check-command.ts');
      await checkAndTell(await argument(expression, flags, io), flags, io);
    });
}

function explainCommand(io: Io): Command {
  return withFilter(new Command('explain'))
    .description('Say a filter in plain words.')
    .option('--plan', 'add which parts the product index answers, and how SQLite finds them')
    .option('--json', 'as JSON: entity canonical words index (null without --plan)')
    .addHelpText(
      'after',
      `
Fields of index in --json: narrowedBy byColumns byRecords plan. It is null without a data
directory, too.

Example:
  $ earshot filter explain "not (Online eq true) or endswith(Name,'_COG.SAFE')"`,
    )
    .action(async (expression: string | undefined, flags: FilterFlags) => {
      const { explainFilter } = await import('../filter/explain-command.ts');
      await explainFilter(await argument(expression, flags, io), flags, io);
    });
}

function testCommand(io: Io): Command {
  return withFilter(new Command('test'))
    .description('Count the products received that match, by the day of their publication.')
    .addOption(sinceOption(readTime(io), 'published (or deleted)'))
    .addOption(untilOption(readTime(io), 'published (or deleted)'))
    .option('--json', 'as JSON: entity matching total share days')
    .addHelpText(
      'after',
      `
A product without a date of publication counts on the day on which it was first received, and not at
all with --since or --until. Deleted products count on the day of their deletion. What your
subscriptions kept out was never received, so it cannot be counted.

Fields of --json: entity, matching, total (all products of that time), share (matching / total),
days (each: day, matching).

Example:
  $ earshot filter test "Online eq true and contains(Name,'MSIL2A')" --since 30d`,
    )
    .action(async (expression: string | undefined, flags: TestFlags) => {
      const { testFilter } = await import('../filter/test-command.ts');
      await testFilter(await argument(expression, flags, io), flags, io);
    });
}

async function argument(expression: string | undefined, flags: FilterFlags, io: Io) {
  const { readFilterArgument } = await import('../filter/filter-argument.ts');
  return readFilterArgument(expression, flags, io);
}

function withFilter(command: Command): Command {
  return command
    .argument('[expression]', 'a $filter expression, in quotes')
    .addOption(
      new Option('--entity <entity>', 'what it is about (default: Products)').choices(entities),
    )
    .option('--subscription <name>', 'the filter of this subscription in earshot.config.ts');
}
