/** The filter of a subscription from product flags, and how many products of the last week match it. */

import { type Command, InvalidArgumentError } from 'commander';
import { nameOf, type Plan } from '../admin/plan.ts';
import { subscriptionsFileName } from '../config/subscriptions-file.ts';
import { AppError, errorText } from '../domain/app-error.ts';
import {
  type DesiredSubscription,
  defaultSubscriptionName,
  type SubscriptionEvent,
  sortedEvents,
  subscriptionEvents,
  subscriptionNamePattern,
} from '../domain/subscription.ts';
import { printable } from '../domain/text.ts';
import { isBlankFilter } from '../filter/check.ts';
import { showFinding } from '../filter/finding.ts';
import { printFilter } from '../filter/print.ts';
import { createOutboundClient } from '../http/outbound-client.ts';
import { eventLists, listingUrl, readListingPage } from '../reconcile/listing-pages.ts';
import { checkSubscriptionFilter, type FilterReport, findingText } from './filter-text.ts';
import type { Io } from './io.ts';
import { counted, painter } from './output.ts';
import { addConditionFlags, type ConditionFlags, conditionsOf } from './product-flags.ts';

const weekMs = 604_800_000;

/** Somebody waits for it, and registering does not depend on it. */
const countTimeoutMs = 20_000;

/**
 * The flags as a `$filter` text, joined by "and"; undefined without any. The text of --filter stays as it was
 * written. Throws `usage` for an area that cannot be used.
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
 * Prints the filter, and how many events of the last week it matches at the catalogue: one answer for each
 * event. A count that fails is a note.
 */
export async function showFilter(
  { events, filter }: Pick<DesiredSubscription, 'events' | 'filter'>,
  catalogueUrl: string,
  io: Pick<Io, 'env' | 'stderr' | 'nowUs' | 'fetch' | 'random' | 'signal'>,
): Promise<void> {
  const paint = painter(io, io.stderr);
  const shown = isBlankFilter(filter) ? 'none, every product' : printable(filter);
  io.stderr.write(`Filter: ${paint('cyan', shown)}\n`);
  for (const event of events) {
    try {
      const count = await countLastWeek(event, filter, catalogueUrl, io);
      io.stderr.write(
        `It matches ${counted(count, 'product')} that the catalogue ${verbs[event]} in the last 7 days.\n`,
      );
    } catch (error) {
      if (!(error instanceof AppError) || error.code === 'cancelled') throw error;
      io.stderr.write(`Matching products were not counted: ${printable(errorText(error))}\n`);
      return;
    }
  }
}

const verbs = { created: 'published', modified: 'modified', deleted: 'deleted' } as const;

async function countLastWeek(
  event: SubscriptionEvent,
  filter: string,
  catalogueUrl: string,
  { nowUs, fetch, random, signal }: Pick<Io, 'nowUs' | 'fetch' | 'random' | 'signal'>,
): Promise<number> {
  const list = { ...eventLists[event], expand: [] };
  const untilMs = Math.ceil(nowUs() / 1000);
  const sinceMs = untilMs - weekMs;
  const span = { list, filter, sinceMs, untilMs };
  const url = listingUrl(catalogueUrl, { ...span, top: 1, skip: 0, count: true });
  const ask = createOutboundClient({
    service: 'the catalogue',
    variable: 'EARSHOT_CATALOGUE_URL',
    fetch,
    random,
    timing: { attemptTimeoutMs: countTimeoutMs, totalTimeoutMs: countTimeoutMs },
    retries: 2,
  });
  const purpose = `count the ${event} products`;
  const { status, json } = await ask({ method: 'GET', url, headers: {}, purpose, signal });
  const uncounted = (reason: string) => new AppError('unavailable', `${reason}.`);
  if (status !== 200) throw uncounted(`the catalogue answered with status ${status}`);
  const page = readListingPage(json, { list, sinceMs });
  if ('broken' in page) throw uncounted(`the answer cannot be used, as ${page.broken}`);
  if (page.count === null) throw uncounted('the catalogue sent no count');
  return page.count;
}

export interface SubscriptionFlags extends ConditionFlags {
  subscription?: string;
  event?: SubscriptionEvent[];
  filter?: string;
}

const conditionNames = [
  ...(['filter', 'collection', 'type', 'platform', 'tile', 'cloudBelow'] as const),
  ...(['bbox', 'area', 'intersects', 'name'] as const),
];

/** Those of the flags that choose products. */
export function conditionFlagsOf(flags: SubscriptionFlags): SubscriptionFlags {
  const given = conditionNames.filter((name) => flags[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, flags[name]]));
}

/** For a command that has both the file and flags that describe a subscription. */
export function describedTwice(): AppError {
  return new AppError(
    'usage',
    `${subscriptionsFileName} names the subscriptions, so flags cannot describe another one.`,
    { advice: 'Change the file, or move it away.' },
  );
}

/** Adds the flags to a command. */
export function addSubscriptionFlags(command: Command): Command {
  command
    .option(
      '--subscription <name>',
      `its name, the last part of its URL path (default: ${defaultSubscriptionName})`,
      subscriptionName,
    )
    .option('--event <names>', 'created, modified, deleted; several with commas', eventNames);
  return addConditionFlags(command).option(
    '--filter <expression>',
    'a $filter expression; joined to the other flags by "and"',
  );
}

function subscriptionName(text: string): string {
  if (subscriptionNamePattern.test(text)) return text;
  throw new InvalidArgumentError(
    'Use lower-case letters, digits and dashes, 63 characters at most, such as alps-2.',
  );
}

function eventNames(text: string): SubscriptionEvent[] {
  const names = text.split(',').map((name) => name.trim().toLowerCase());
  const isKnown = (name: string): name is SubscriptionEvent =>
    subscriptionEvents.some((known) => known === name);
  if (!names.every(isKnown)) {
    throw new InvalidArgumentError(`Use ${subscriptionEvents.join(', ')}; several with commas.`);
  }
  return sortedEvents(names);
}

/**
 * Throws `configuration` when a subscription that the plan creates, or replaces, has a filter with an error.
 * All else is told on stderr: the filter of one that runs already has been accepted.
 */
export function refuseFilters(
  desired: readonly DesiredSubscription[],
  plan: Pick<Plan, 'steps'>,
  io: Pick<Io, 'env' | 'stderr'>,
): void {
  const made = plan.steps.filter(({ kind }) => kind === 'create' || kind === 'replace');
  const toBeMade = new Set(made.map(nameOf));
  const reports = desired.flatMap((one) => withoutRepeats(checkSubscriptionFilter(one)));
  const errors: string[] = [];
  for (const report of reports) {
    const { name, entity, filter, findings } = report;
    const wrong = findings.filter(({ severity }) => severity === 'error');
    const shown = wrong.map((one) => `"${name}", filter of ${entity}: ${showFinding(filter, one)}`);
    if (toBeMade.has(name) && wrong.length > 0) errors.push(...shown);
    else warn(report, io);
  }
  if (errors.length === 0) return;
  throw new AppError('configuration', 'A filter has errors, so nothing was changed.', {
    advice: 'To register it as it is, add --skip-filter-check.',
    details: errors,
  });
}

/** What is wrong for one kind of product is told once, though it is wrong for the other too. */
function withoutRepeats(reports: readonly FilterReport[]): FilterReport[] {
  const told = new Set<string>();
  return reports.flatMap((report) => {
    const findings = report.findings.filter(({ start, message }) => {
      const key = `${start} ${message}`;
      return !told.has(key) && told.add(key);
    });
    return findings.length === 0 ? [] : [{ ...report, findings }];
  });
}

function warn({ name, filter, findings }: FilterReport, io: Pick<Io, 'env' | 'stderr'>): void {
  const label = painter(io, io.stderr)('yellow', `The filter of "${printable(name)}"`);
  for (const finding of findings) {
    io.stderr.write(`${label}: ${findingText(filter, finding, io, io.stderr)}`);
  }
}
