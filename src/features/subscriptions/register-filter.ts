/** Builds a subscription filter from product flags, and counts its matches of the last week. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Plan } from '../../admin/differences.ts';
import { eventLists, listingUrl } from '../../admin/listing-pages.ts';
import { readListing } from '../../admin/page-readers.ts';
import { eventFlagText, pullFlagText } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { painter } from '../../core/cli/output.ts';
import { findingText } from '../../core/cli/row-forms.ts';
import { subscriptionsFileName } from '../../core/config/subscriptions-file.ts';
import { createOutboundClient } from '../../core/http/outbound-client.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import { weekUs } from '../../core/terms/dates.ts';
import {
  type DesiredSubscription,
  defaultSubscriptionName,
  filterText,
  type SubscriptionEvent,
  sortedEvents,
  subscriptionEvents,
  subscriptionNamePattern,
} from '../../core/terms/subscription.ts';
import { counted, printable } from '../../core/terms/text.ts';
import { isBlankFilter } from '../../filter/check.ts';
import { showFinding } from '../../filter/finding.ts';
import { printFilter } from '../../filter/print.ts';
import {
  addConditionFlags,
  type ConditionFlags,
  conditionsOf,
  filterOption,
} from '../products/flags.ts';
import { checkSubscriptionFilter } from './filter-command.ts';

/** Short, because the user waits and the registration does not depend on the count. */
const countTimeoutMs = 20_000;

/**
 * Combines the flags to a `$filter` text by "and"; undefined without any. The text of --filter is not changed. Throws
 * `usage` for an invalid area.
 */
export function filterOfFlags(
  flags: Pick<SubscriptionFlags, keyof ConditionFlags | 'filter'>,
  io: Pick<Io, 'readFile' | 'stderr' | 'env'>,
): string | undefined {
  const tree = conditionsOf(flags, io);
  if (tree === null) return flags.filter;
  const conditions = printFilter(tree);
  const { filter = '' } = flags;
  return isBlankFilter(filter) ? conditions : `${conditions} and (${filter})`;
}

/**
 * Prints the filter and, for each event, the number of matching products of the last week in the catalogue. Prints a note
 * if counting fails.
 */
export async function showFilter(
  { events, filter }: Pick<DesiredSubscription, 'events' | 'filter'>,
  catalogueUrl: string,
  io: Pick<Io, 'env' | 'stderr' | 'nowUs' | 'fetch' | 'random' | 'signal'>,
): Promise<void> {
  const shown = filterText(isBlankFilter(filter) ? '' : printable(filter));
  io.stderr.write(`Filter: ${painter(io, io.stderr)('cyan', shown)}\n`);
  try {
    for (const event of events) {
      const count = await countLastWeek(event, filter, catalogueUrl, io);
      const verb = event === 'created' ? 'published' : event;
      io.stderr.write(
        `The filter matches ${counted(count, 'product')} ${verb} in the last 7 days.\n`,
      );
    }
  } catch (error) {
    if (!(error instanceof AppError) || error.code === 'cancelled') throw error;
    io.stderr.write(`Failed to count matching products: ${printable(errorText(error))}\n`);
  }
}

async function countLastWeek(
  event: SubscriptionEvent,
  filter: string,
  catalogueUrl: string,
  { nowUs, fetch, random, signal }: Pick<Io, 'nowUs' | 'fetch' | 'random' | 'signal'>,
): Promise<number> {
  const list = { ...eventLists[event], expand: [] };
  const untilMs = Math.ceil(nowUs() / 1000);
  const sinceMs = untilMs - weekUs / 1_000;
  const span = { list, filter, sinceMs, untilMs, top: 1, skip: 0, count: true };
  const ask = createOutboundClient({
    ...{ service: 'the catalogue', variable: 'EARSHOT_CATALOGUE_URL', fetch, random, retries: 2 },
    timing: { attemptTimeoutMs: countTimeoutMs, totalTimeoutMs: countTimeoutMs },
  });
  const { status, bytes } = await ask({
    ...{ method: 'GET', url: listingUrl(catalogueUrl, span), headers: {}, signal },
    purpose: `count the ${event} products`,
  });
  const page =
    status === 200
      ? readListing(bytes, { dateField: list.dateField, sinceMs, filter: null })
      : { broken: `status ${status}` };
  if (!('broken' in page) && page.count !== null) return page.count;
  const reason = 'broken' in page ? page.broken : 'no count';
  throw new AppError('unavailable', `unexpected answer of the catalogue: ${reason}.`);
}

export interface SubscriptionFlags extends ConditionFlags {
  subscription?: string;
  /** Type of the subscription. */
  pull?: true;
  push?: true;
  event?: SubscriptionEvent[];
  filter?: string;
}

/** Error for flags that describe a subscription of the configuration file. */
export function describedTwice(name: string): AppError {
  const message = `The subscription ${name} is configured in ${subscriptionsFileName}.`;
  const advice = 'Change it in the file, or give another name with --subscription.';
  return new AppError('usage', message, { advice });
}

/** Adds the flags to a command. */
export function addSubscriptionFlags(command: Command): Command {
  command
    .option(
      '--subscription <name>',
      `subscription name (last part of the endpoint URL; default: ${defaultSubscriptionName})`,
      subscriptionName,
    )
    .addOption(new Option('--pull', pullFlagText).conflicts('push'))
    .option('--push', 'receive notifications at the public URL (default for a new subscription)')
    .option('--event <names>', eventFlagText, eventNames);
  return addConditionFlags(command).addOption(filterOption());
}

function subscriptionName(text: string): string {
  if (subscriptionNamePattern.test(text)) return text;
  throw new InvalidArgumentError(
    'Use lower-case letters, digits and dashes, such as alps-2 (maximum 63 characters).',
  );
}

function eventNames(text: string): SubscriptionEvent[] {
  const names = text.split(',').map((name) => name.trim().toLowerCase());
  const isKnown = (name: string): name is SubscriptionEvent =>
    subscriptionEvents.some((known) => known === name);
  if (!names.every(isKnown)) {
    throw new InvalidArgumentError(`Use ${subscriptionEvents.join(', ')}, comma-separated.`);
  }
  return sortedEvents(names);
}

/**
 * Throws `configuration` if a subscription that the plan creates or replaces has an invalid filter. Prints all other
 * findings on stderr: the catalogue has already accepted the filters of existing subscriptions.
 */
export function refuseFilters(
  desired: readonly DesiredSubscription[],
  { differences }: Pick<Plan, 'differences'>,
  io: Pick<Io, 'env' | 'stderr'>,
): void {
  const created = differences.filter(({ current }) => current === null).map(({ name }) => name);
  const errors: string[] = [];
  const printed = new Set<string>();
  for (const { name, entity, filter, findings } of desired.flatMap(checkSubscriptionFilter)) {
    const label = painter(io, io.stderr)('yellow', `The filter of "${printable(name)}"`);
    for (const finding of findings) {
      const key = `${name} ${finding.start} ${finding.message}`;
      // The same finding may apply to the other entity.
      if (printed.has(key)) continue;
      printed.add(key);
      if (finding.severity === 'error' && created.includes(name)) {
        errors.push(`"${name}", filter of ${entity}: ${showFinding(filter, finding)}`);
      } else io.stderr.write(`${label}: ${findingText(filter, finding, io, io.stderr)}`);
    }
  }
  if (errors.length === 0) return;
  throw new AppError('configuration', 'A filter has errors. Nothing was changed.', {
    advice: 'To register the filter anyway, add --skip-filter-check.',
    details: errors,
  });
}
