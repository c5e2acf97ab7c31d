/** The demo's reports: its subscriptions, what was lost on the way to them, and what reconcile restored. */

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
import { asCalled } from '../called-as.ts';
import { runReconcile } from '../commands/reconcile.ts';
import type { Io } from '../io.ts';
import { painter, shorten, widthOf, wrapText } from '../output.ts';
import { ioWith } from '../setup/env-file.ts';
import type { RunningReceiver } from '../start/serve.ts';
import { demoCollection, demoFilter, demoPlace, demoQueryFlags, demoTree } from './account.ts';
import type { DemoContext } from './context.ts';

const lossesListedMax = 50;

/** Shows that only what matches arrived, and that it is found by its place. */
export function showFiltered(
  io: Io,
  { published, delivered, stored }: SubscriptionResult,
  found: Record<'byFilter' | 'byPlace', Ids>,
  events: number,
): void {
  const paint = painter(io, io.stdout);
  const lost = published === delivered ? '' : `, ${published - delivered} lost on the way`;
  io.stdout.write(`A filtered subscription ran beside the one about everything:
  filter   ${paint('cyan', demoFilter)}
  matched  ${published} of ${events} published${lost}
  stored   ${stored}
  found    ${found.byFilter.size} by the filter, ${found.byPlace.size} by collection and place: ${paint('bold', asCalled(`$ earshot query products ${demoQueryFlags}`, io))}
`);
}

/** Lists losses; those of the filtered subscription with its name. */
export function listLosses(io: Io, losses: readonly DeliveryEntry[], name = ''): void {
  if (losses.length === 0) return;
  const to = name === '' ? '' : ` to ${name}`;
  io.stderr.write(
    `${losses.length} lost on the way${to}, as the sandbox was configured to lose them:\n`,
  );
  for (const { productName, event, reason } of losses.slice(0, lossesListedMax)) {
    const begin = `  ${name === '' ? '' : `${name} `}${event} `;
    io.stderr.write(productLines(io, begin, productName, reason ?? 'not known'));
  }
  const more = losses.length - lossesListedMax;
  if (more > 0) io.stderr.write(`  … and ${more} more\n`);
}

/** A line about a product. On a narrow terminal the name is cut in the middle, and the reason stands below it. */
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
 * Compares the log with the sandbox's catalogue as `earshot reconcile` does, and lists what that restored.
 * `recovered`: rows that reconcile has written, by the subscription's name; `missing`: losses that are
 * not in the log afterwards, one sentence each.
 */
export async function restoreLosses(
  io: Io,
  { settings, sandbox, receiver }: Pick<DemoContext, 'settings' | 'sandbox' | 'receiver'>,
) {
  const paint = painter(io, io.stdout);
  io.stdout.write(
    `\n${paint('bold', asCalled('$ earshot reconcile', io))}   fetches what was lost:\n`,
  );
  await runReconcile(ioWith(io, settings), { subscription: [] });
  const stored = new Set<string>();
  const recovered = new Map<string, number>();
  for await (const { subscription, event, productId, source } of receiver.store.find({})) {
    const name = subscription ?? '';
    stored.add(`${name} ${event} ${productId}`);
    if (source === 'reconcile') recovered.set(name, (recovered.get(name) ?? 0) + 1);
  }
  const names = new Map(
    sandbox.subscriptions().map(({ id, endpoint }) => [id, endpoint?.split('/').at(-1) ?? '']),
  );
  const missing: string[] = [];
  let listed = 0;
  for (const entry of sandbox.entries().filter(({ outcome }) => outcome === 'lost')) {
    const { subscriptionId, event, productId, productName, timesReceivedOk } = entry;
    if (timesReceivedOk > 0) continue;
    const name = names.get(subscriptionId) ?? '';
    const what = `${name} ${event} ${printable(productName)}`;
    if (!stored.has(`${name} ${event} ${productId}`)) missing.push(`${what}: lost, not restored`);
    else if (++listed <= lossesListedMax)
      io.stderr.write(productLines(io, `  restored ${name} ${event} `, productName));
  }
  if (listed > lossesListedMax) io.stderr.write(`  … and ${listed - lossesListedMax} more\n`);
  return { recovered, missing };
}

/** One subscription of the demo, in the sandbox's record and in the store's. */
export interface SubscriptionResult {
  /** Notifications owed to the subscription. */
  published: number;
  /** Those of them that the endpoint accepted at least once. */
  delivered: number;
  stored: number;
  /** Deliveries beyond the first. */
  duplicates: number;
  /** The ids of the products that it was owed. */
  productIds: Set<string>;
  /** Published, but never seen by the endpoint. */
  losses: DeliveryEntry[];
}

/**
 * Counts from both records, and matches them notification by notification. `mismatches` tells what
 * does not agree, one sentence each; `subscriptions` goes by the name in the path.
 */
export async function countDemo(
  log: Pick<NotificationLog, 'counts' | 'find'>,
  sandbox: Pick<Sandbox, 'totals' | 'entries' | 'subscriptions'>,
) {
  const { duplicates, quarantined } = await log.counts();
  const subscriptions = resultsOf(sandbox);
  const accepted = sandbox.entries().filter(({ timesReceivedOk }) => timesReceivedOk > 0);
  const missing = new Map(accepted.map((entry) => [keyOf(entry), entry]));
  const mismatches: string[] = [];
  for await (const row of log.find({})) {
    const { ackId, subscriptionId, productId, event, notificationDateUs } = row;
    const key = ackId ?? `${subscriptionId} ${productId} ${event} ${notificationDateUs}`;
    if (!missing.delete(key))
      mismatches.push(`${row.productName ?? productId}: stored, but twice or never sent`);
    const result = subscriptions.get(row.subscription ?? '');
    if (result === undefined) continue;
    result.stored += 1;
    result.duplicates += row.timesSeen - 1;
  }
  for (const entry of missing.values()) {
    mismatches.push(`${entry.productName}: answered with success, but not stored`);
  }
  const { receivedOk, accepted: first, pending } = sandbox.totals();
  if (duplicates !== receivedOk - first) {
    mismatches.push(`${receivedOk - first} duplicates were answered, ${duplicates} counted`);
  }
  for (const [name, { delivered, stored }] of subscriptions) {
    if (stored !== delivered) mismatches.push(`${name}: ${delivered} accepted, ${stored} stored`);
  }
  if (quarantined > 0) mismatches.push(`${quarantined} bodies were not understood`);
  if (pending > 0) mismatches.push(`${pending} were not delivered in time`);
  return { subscriptions, quarantined, mismatches };
}

/** What the sandbox's record says of each subscription; nothing is stored yet. */
function resultsOf(
  sandbox: Pick<Sandbox, 'entries' | 'subscriptions'>,
): Map<string, SubscriptionResult> {
  const entriesOf = Map.groupBy(sandbox.entries(), ({ subscriptionId }) => subscriptionId);
  return new Map(
    sandbox.subscriptions().map(({ id, endpoint }) => {
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
      return [endpoint?.split('/').at(-1) ?? '', result];
    }),
  );
}

function keyOf(entry: DeliveryEntry): string {
  const { ackId, subscriptionId, productId, event, notificationDate } = entry;
  return ackId ?? `${subscriptionId} ${productId} ${event} ${parseDate(notificationDate)?.us}`;
}

/** How long the index may take for what the log has at the end. */
const indexTimeoutMs = 4_000;

const pollMs = 20;

/** Ids of products. */
type Ids = ReadonlySet<string>;

/**
 * What the filter finds, what of the collection the place alone finds, and what does not agree, one
 * sentence each. `owed`: the products of which the subscription `name` was owed a notification.
 */
export async function queryDemo(
  { products, store }: Pick<RunningReceiver, 'products' | 'store'>,
  name: string,
  owed: Ids,
) {
  const unread = await indexed(products);
  const byFilter = await idsOf(products, demoTree(), () => true);
  const byPlace = await idsOf(products, demoPlace, (collection) => collection === demoCollection);
  const { verdicts, strays } = await verdictsOf(store, demoTree(), name);
  const mismatches = [...strays, ...compare(byFilter, byPlace, owed, verdicts)];
  if (unread > 0) mismatches.push(`${unread} notifications are not indexed`);
  return { byFilter, byPlace, mismatches };
}

/** Gives the index time for what is in the log; resolves to how many notifications it has not read. */
export async function indexed(products: Pick<Products, 'indexState'>): Promise<number> {
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
  isMeant: (collection: string | null) => boolean,
): Promise<Ids> {
  const ids = new Set<string>();
  for await (const { row } of products.find({ entity: 'Products', filter, records: false })) {
    if (isMeant(row.collection)) ids.add(row.productId);
  }
  return ids;
}

/** What the filter says of each record in the log, by product; and what came to `name` against it. */
async function verdictsOf(
  log: Pick<NotificationLog, 'find' | 'body'>,
  filter: FilterTree,
  name: string,
) {
  const matches = compileFilter(filter);
  const verdicts = new Map<string, Set<boolean>>();
  const strays: string[] = [];
  for await (const { position, productId, subscription } of log.find({})) {
    const record = recordIn(bodyDocument(await log.body(position)), 0);
    if (record === null) continue;
    const verdict = verdicts.get(productId) ?? new Set();
    const isMatch = matches(productView(record));
    verdicts.set(productId, verdict.add(isMatch));
    if (!isMatch && subscription === name)
      strays.push(`${productId}: arrived, but it does not match`);
  }
  return { verdicts, strays };
}

/**
 * What was owed may be lost on its way, so the log says what must be found: each product whose record
 * matches. Records from a file may tell of one product twice; then either of them may count.
 */
function compare(
  byFilter: Ids,
  byPlace: Ids,
  owed: Ids,
  verdicts: ReadonlyMap<string, ReadonlySet<boolean>>,
): string[] {
  const matching = [...verdicts].flatMap(([id, verdict]) => (verdict.has(true) ? [id] : []));
  const certain = matching.filter((id) => verdicts.get(id)?.has(false) === false);
  const tell = (ids: Iterable<string>, within: Ids, what: string) =>
    [...ids].filter((id) => !within.has(id)).map((id) => `${id}: ${what}`);
  return [
    ...tell(byFilter, owed, 'found by the filter, but it was not owed'),
    ...tell(byFilter, new Set(matching), 'found by the filter, but its record does not match'),
    ...tell(certain, byFilter, 'its record matches, but the filter does not find it'),
    ...tell(byFilter, byPlace, 'found by the filter, but not by its place'),
    ...tell(byPlace, byFilter, 'found by its place, but not by the filter'),
  ];
}
