/** Compares what the sandbox pushed with what the store holds. */
import { parseDate } from '../../domain/notification-date.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import type { DeliveryEntry } from '../../sandbox/delivery/delivery-record.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';

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

export interface DemoResult {
  /** By the name in the subscription's path. */
  subscriptions: Map<string, SubscriptionResult>;
  quarantined: number;
  /** What does not agree, one sentence each; empty when all is well. */
  mismatches: string[];
}

/** Counts from both records, and matches them notification by notification. */
export async function countDemo(
  log: Pick<NotificationLog, 'counts' | 'find'>,
  sandbox: Pick<Sandbox, 'totals' | 'entries' | 'subscriptions'>,
): Promise<DemoResult> {
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
