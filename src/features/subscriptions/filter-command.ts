/** `earshot filter`: checks and explains a $filter expression; and the findings about the filter of a subscription. */
import { type Command, Option } from 'commander';
import { registeredSubscriptions } from '../../admin/sql.ts';
import { defineCommand, defineGroup } from '../../core/cli/command.ts';
import { jsonOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { printJson, writeOut } from '../../core/cli/output.ts';
import { findingText, readFilter, unknownName } from '../../core/cli/row-forms.ts';
import { checkConfig } from '../../core/config/config.ts';
import { loadSubscriptionsFile } from '../../core/config/subscriptions-file.ts';
import { AppError } from '../../core/terms/app-error.ts';
import type { DesiredSubscription } from '../../core/terms/subscription.ts';
import { printable } from '../../core/terms/text.ts';
import { checkFilter, isBlankFilter } from '../../filter/check.ts';
import { describeFilter } from '../../filter/describe.ts';
import { type Entity, entities } from '../../filter/filter-tree.ts';
import { toFindingJson } from '../../filter/finding.ts';
import { printFilter } from '../../filter/print.ts';

interface FilterFlags {
  entity?: Entity;
  subscription?: string;
  json?: true;
}

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
  run: async (io, flags: FilterFlags, expression: string | undefined) =>
    printCheck(await readFilterArgument(expression, flags, io), flags, io),
});

const explainCommand = defineCommand('explain', {
  description: 'Explain a filter line by line.',
  flags: (command) => withFilter(command).addOption(jsonOption()),
  help: `To count the received products that match a filter: \`earshot query products --filter … --count\`.

Fields of --json: entity, canonical, words.
  canonical  filter in a normalized form
  words      explanation as a list of lines

Exit codes: 0 done, 1 failed, 2 errors in the filter or wrong usage.

Examples:
  $ earshot filter explain "not (Online eq true) or endswith(Name,'_COG.SAFE')"
  $ earshot filter explain --subscription alps         explain a configured filter
  $ earshot filter explain "Online eq true" --json     print JSON`,
  run: async (io, flags: FilterFlags, expression: string | undefined) => {
    const { text, entity } = await readFilterArgument(expression, flags, io);
    const filter = readFilter(text, entity, io);
    const words = filter === null ? ['All products match.'] : describeFilter(filter);
    if (flags.json) {
      const canonical = filter === null ? '' : printFilter(filter);
      return printJson(io.stdout, { entity, canonical, words });
    }
    await writeOut(io.stdout, `${words.map(printable).join('\n')}\n`);
  },
});

export const filterCommand = defineGroup('filter', {
  description: 'Check or explain a $filter expression.',
  help: `Exit codes: 0 done, 1 failed, 2 errors in the filter or wrong usage.

Examples:
  $ earshot filter check "Collection/Name eq 'SENTINEL-2'"     find errors
  $ earshot filter check --subscription alps                   check a configured filter
  $ earshot filter explain --subscription alps                 explain line by line`,
  commands: [checkCommand, explainCommand],
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
  const { tree, findings, errors } = checkFilter(text, entity);
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

interface FilterArgument {
  text: string;
  entity: Entity;
}

/** Returns the filter of the expression or the subscription. Throws `usage` for neither, both, or an unknown name. */
async function readFilterArgument(
  expression: string | undefined,
  { subscription, entity }: FilterFlags,
  io: Io,
): Promise<FilterArgument> {
  if (expression !== undefined && subscription !== undefined) {
    throw new AppError('usage', 'Use either an expression or --subscription, not both.');
  }
  if (expression !== undefined) return { text: expression, entity: entity ?? 'Products' };
  if (subscription === undefined) {
    throw new AppError(
      'usage',
      `The filter is missing. Give an expression in quotes, or --subscription: \`earshot filter check "Collection/Name eq 'SENTINEL-2'"\``,
    );
  }
  return ofSubscription(subscription, entity, io);
}

async function ofSubscription(
  name: string,
  entity: Entity | undefined,
  io: Io,
): Promise<FilterArgument> {
  const { dataDir } = checkConfig(io, ['dataDir']).config;
  const configured = (await loadSubscriptionsFile(io)) ?? [];
  const isNamed = (one: { name: string }) => one.name === name;
  const isConfigured = configured.some(isNamed);
  const registered = isConfigured || dataDir === undefined ? [] : registeredSubscriptions(dataDir);
  const found = [...configured, ...registered].find(isNamed);
  if (found === undefined) {
    const names = [...configured, ...registered].map((one) => one.name);
    throw unknownName('subscription', name, names);
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

/** Entities that a filter for these events applies to: deletions have an entity of their own (facts, filters). */
export function entitiesOf(events: readonly string[]): Entity[] {
  const entities: Entity[] = events.some((event) => event !== 'deleted') ? ['Products'] : [];
  return events.includes('deleted') ? [...entities, 'DeletedProducts'] : entities;
}

/** Returns the findings about a subscription's filter, by entity and position; none for a blank filter. */
export function checkSubscriptionFilter(
  subscription: Pick<DesiredSubscription, 'name' | 'events' | 'filter'>,
) {
  const { name, events, filter } = subscription;
  if (isBlankFilter(filter)) return [];
  return entitiesOf(events)
    .map((entity) => ({ name, entity, filter, findings: checkFilter(filter, entity).findings }))
    .filter(({ findings }) => findings.length > 0);
}
