/** Reports of the demo: subscriptions, lost notifications, and recovered ones. */

import { setTimeout as delay } from 'node:timers/promises';
import { parseDate } from '../../domain/dates.ts';
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';
import { printable } from '../../domain/text.ts';
import { compileFilter } from '../../filter/evaluate.ts';
import { recordIn } from '../../filter/product-record.ts';
import { productView } from '../../filter/product-view.ts';
import type { DeliveryEntry } from '../../sandbox/delivery/delivery-record.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { bodyDocument } from '../../store/products/product-record.ts';
import type { Store } from '../../store/store.ts';
import { asCalled } from '../called-as.ts';
import { runReconcile } from '../commands/reconcile.ts';
import type { Io } from '../io.ts';
import { painter, shorten, widthOf, wrapText } from '../output.ts';
import { ioWith } from '../setup/env-file.ts';
import type { RunningReceiver } from '../start/serve.ts';
import { demoCollection, demoFilter, demoPlace, demoTree } from './account.ts';
import type { DemoContext } from './context.ts';

const lossesListedMax = 50;

/** Prints the result of the filtered subscription: received notifications, and products found by queries. */
export function showFiltered(
  io: Io,
  { published, delivered, stored }: SubscriptionResult,
  found: Record<'byFilter' | 'byPlace', Ids>,
  events: number,
): void {
  const paint = painter(io, io.stdout);
  const lost = published === delivered ? '' : `, ${published - delivered} lost in transit`;
  io.stdout.write(`A second subscription, with a filter, ran at the same time:
  filter   ${paint('cyan', demoFilter)}
  matched  ${published} of ${events} published products${lost}
  stored   ${stored}
  found    ${found.byFilter.size} by the filter, ${found.byPlace.size} by collection and area
`);
}

/** Lists lost notifications, with `name` for the filtered subscription. */
export function listLosses(io: Io, losses: readonly DeliveryEntry[], name = ''): void {
  if (losses.length === 0) return;
  const to = name === '' ? '' : ` to ${name}`;
  io.stderr.write(
    `${losses.length} notifications${to} lost in transit, as configured in the sandbox:\n`,
  );
  for (const { productName, event, reason } of losses.slice(0, lossesListedMax)) {
    const begin = `  ${name === '' ? '' : `${name} `}${event} `;
    io.stderr.write(productLines(io, begin, productName, reason ?? 'unknown'));
  }
  const more = losses.length - lossesListedMax;
  if (more > 0) io.stderr.write(`  … and ${more} more\n`);
}

/** Formats a line about a product. On a narrow terminal, shortens the name and puts the reason below. */
function productLines(
  { stderr }: Pick<Io, 'stderr'>,
  begin: string,
  productName: string,
  reason = '',
): string {
  const width = widthOf(stderr);
  const [name, why] = [printable(productName), printable(reason)];
  const line = `${begin}${name}${why === '' ? '' : `: ${why}`}`;
  if (line.length <= width) return `${line}\n`;
  const lines = why === '' ? [] : wrapText(why, '    ', stderr);
  return [`${begin}${shorten(name, width - begin.length)}`, ...lines, ''].join('\n');
}

/**
 * Compares the log with the sandbox's catalogue as `earshot reconcile` does, and lists the recovered notifications.
 * `recovered`: their number by name of the subscription; `missing`: losses that are still not in the log, one
 * sentence each.
 */
export async function recoverLosses(
  io: Io,
  { settings, sandbox, receiver }: Pick<DemoContext, 'settings' | 'sandbox' | 'receiver'>,
) {
  const paint = painter(io, io.stdout);
  io.stdout.write(
    `\n${paint('bold', asCalled('$ earshot reconcile', io))}   recovers lost notifications:\n`,
  );
  await runReconcile(ioWith(io, settings), { subscription: [] });
  const stored = new Set<string>();
  const recovered = new Map<string, number>();
  for await (const { subscription, event, productId, source } of receiver.store.find({})) {
    const name = subscription ?? '';
    stored.add(`${name} ${event} ${productId}`);
    if (source === 'reconcile') recovered.set(name, (recovered.get(name) ?? 0) + 1);
  }
  const names = await namesById(receiver.store);
  const missing: string[] = [];
  let listed = 0;
  for (const entry of sandbox.entries().filter(({ outcome }) => outcome === 'lost')) {
    const { subscriptionId, event, productId, productName, timesReceivedOk } = entry;
    if (timesReceivedOk > 0) continue;
    const name = names.get(subscriptionId) ?? '';
    const what = `${name} ${event} ${printable(productName)}`;
    if (!stored.has(`${name} ${event} ${productId}`)) missing.push(`${what}: lost, not recovered`);
    else if (++listed <= lossesListedMax)
      io.stderr.write(productLines(io, `  recovered ${name} ${event} `, productName));
  }
  if (listed > lossesListedMax) io.stderr.write(`  … and ${listed - lossesListedMax} more\n`);
  return { recovered, missing };
}

/** Counts of one subscription, from the records of the sandbox and of the store. */
export interface SubscriptionResult {
  /** Notifications of the subscription. */
  published: number;
  /** Notifications that the endpoint accepted at least once. */
  delivered: number;
  stored: number;
  /** Deliveries beyond the first. */
  duplicates: number;
  /** Ids of the products of these notifications. */
  productIds: Set<string>;
  /** Notifications that the endpoint never received. */
  losses: DeliveryEntry[];
}

/**
 * Counts in both records, and matches them notification by notification. `mismatches`: differences, one
 * sentence each; `subscriptions`: results by the name in the path.
 */
export async function countDemo(
  log: Pick<Store, 'counts' | 'find' | 'administration'>,
  sandbox: Pick<Sandbox, 'totals' | 'entries'>,
  { isPull }: Pick<DemoContext, 'isPull'>,
) {
  const { duplicates, quarantined } = await log.counts();
  const subscriptions = resultsOf(sandbox, await namesById(log));
  const accepted = sandbox.entries().filter(({ timesReceivedOk }) => timesReceivedOk > 0);
  const missing = new Map(accepted.map((entry) => [keyOf(entry), entry]));
  const mismatches: string[] = [];
  for await (const row of log.find({})) {
    const { ackId, subscriptionId, productId, event, notificationDateUs } = row;
    const key = ackId ?? `${subscriptionId} ${productId} ${event} ${notificationDateUs}`;
    if (!missing.delete(key))
      mismatches.push(`${row.productName ?? productId}: stored twice, or never sent`);
    const result = subscriptions.get(row.subscription ?? '');
    if (result === undefined) continue;
    result.stored += 1;
    result.duplicates += row.timesSeen - 1;
  }
  for (const entry of missing.values()) {
    mismatches.push(`${entry.productName}: acknowledged, but not stored`);
  }
  const { receivedOk, accepted: first, pending } = sandbox.totals();
  // The sandbox does not count how often an entry of a queue was read.
  if (!isPull && duplicates !== receivedOk - first) {
    mismatches.push(`${receivedOk - first} duplicates acknowledged, ${duplicates} counted`);
  }
  for (const [name, { delivered, stored }] of subscriptions) {
    if (stored !== delivered) mismatches.push(`${name}: ${delivered} accepted, ${stored} stored`);
  }
  if (quarantined > 0) mismatches.push(`${quarantined} bodies in quarantine`);
  if (pending > 0) mismatches.push(`${pending} notifications not delivered in time`);
  return { subscriptions, quarantined, mismatches };
}

/** Returns the counts from the record of the sandbox; `stored` is 0. */
function resultsOf(
  sandbox: Pick<Sandbox, 'entries'>,
  names: ReadonlyMap<string, string>,
): Map<string, SubscriptionResult> {
  const entriesOf = Map.groupBy(sandbox.entries(), ({ subscriptionId }) => subscriptionId);
  return new Map(
    [...names].map(([id, name]) => {
      const entries = entriesOf.get(id) ?? [];
      const losses = entries.filter(({ timesReceivedOk }) => timesReceivedOk === 0);
      const result = {
        published: entries.length,
        delivered: entries.length - losses.length,
        stored: 0,
        duplicates: 0,
        productIds: new Set(entries.map(({ productId }) => productId)),
        losses,
      };
      return [name, result];
    }),
  );
}

/** Returns the names of the registered subscriptions, by id. */
async function namesById({ administration }: Pick<Store, 'administration'>) {
  const registrations = await administration.registrations();
  return new Map(registrations.map(({ name, subscriptionId }) => [subscriptionId ?? '', name]));
}

function keyOf(entry: DeliveryEntry): string {
  const { ackId, subscriptionId, productId, event, notificationDate } = entry;
  return ackId ?? `${subscriptionId} ${productId} ${event} ${parseDate(notificationDate)?.us}`;
}

/** Maximum wait for the index at the end. */
const indexTimeoutMs = 4_000;

const pollMs = 20;

type Ids = ReadonlySet<string>;

/**
 * Queries the index by filter, and by collection and area, and returns the differences, one sentence each.
 * `expected`: products of the notifications of the subscription `name`.
 */
export async function queryDemo(
  { products, store }: Pick<RunningReceiver, 'products' | 'store'>,
  name: string,
  expected: Ids,
) {
  const unread = await waitForIndex(products);
  const byFilter = await idsOf(products, demoTree(), () => true);
  const byPlace = await idsOf(products, demoPlace, (collection) => collection === demoCollection);
  const { matches, unexpected } = await evaluateLog(store, demoTree(), name);
  const mismatches = [...unexpected, ...compare(byFilter, byPlace, expected, matches)];
  if (unread > 0) mismatches.push(`${unread} notifications are not indexed`);
  return { byFilter, byPlace, mismatches };
}

/** Waits until the index has read the log; resolves with the number of unread notifications. */
export async function waitForIndex(products: Pick<Products, 'indexState'>): Promise<number> {
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const { indexedPosition, lastPosition, skipped } = await products.indexState();
    const unread = lastPosition - indexedPosition + skipped;
    if (unread === 0 || waitedMs >= indexTimeoutMs) return unread;
    await delay(pollMs);
  }
}

async function idsOf(
  products: Products,
  filter: FilterTree,
  isSelected: (collection: string | null) => boolean,
): Promise<Ids> {
  const ids = new Set<string>();
  for await (const { row } of products.find({ entity: 'Products', filter, records: false })) {
    if (isSelected(row.collection)) ids.add(row.productId);
  }
  return ids;
}

/** Evaluates the filter on each record in the log. `unexpected`: notifications of `name` that do not match. */
async function evaluateLog(
  log: Pick<NotificationLog, 'find' | 'body'>,
  filter: FilterTree,
  name: string,
) {
  const test = compileFilter(filter);
  const matches = new Map<string, Set<boolean>>();
  const unexpected: string[] = [];
  for await (const { position, productId, subscription } of log.find({})) {
    const record = recordIn(bodyDocument(await log.body(position)), 0);
    if (record === null) continue;
    const results = matches.get(productId) ?? new Set();
    const isMatch = test(productView(record));
    matches.set(productId, results.add(isMatch));
    if (!isMatch && subscription === name)
      unexpected.push(`${productId}: received, but the record does not match the filter`);
  }
  return { matches, unexpected };
}

/**
 * Compares the results of the queries with the log: each product with a matching record must be found. Records
 * from a file may include a product twice; then either record may count.
 */
function compare(
  byFilter: Ids,
  byPlace: Ids,
  expected: Ids,
  matches: ReadonlyMap<string, ReadonlySet<boolean>>,
): string[] {
  const matching = [...matches].flatMap(([id, results]) => (results.has(true) ? [id] : []));
  const certain = matching.filter((id) => matches.get(id)?.has(false) === false);
  const missingIn = (other: Ids, ids: Iterable<string>, problem: string) =>
    [...ids].filter((id) => !other.has(id)).map((id) => `${id}: ${problem}`);
  return [
    ...missingIn(expected, byFilter, 'found by the filter, but not expected'),
    ...missingIn(new Set(matching), byFilter, 'found by the filter, but the record does not match'),
    ...missingIn(byFilter, certain, 'not found by the filter, although the record matches'),
    ...missingIn(byPlace, byFilter, 'found by the filter, but not by the area'),
    ...missingIn(byFilter, byPlace, 'found by the area, but not by the filter'),
  ];
}
