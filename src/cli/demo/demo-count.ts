/** Compares what the sandbox pushed with what the store holds. */
import { parseDate } from '../../domain/notification-date.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import type { DeliveryEntry, DeliveryTotals } from '../../sandbox/delivery/delivery-record.ts';

/** The demo's last line. */
export interface DemoCount {
  /** Notifications owed to the subscription. */
  published: number;
  /** Those of them that the endpoint accepted at least once. */
  delivered: number;
  stored: number;
  /** Deliveries beyond the first. */
  duplicates: number;
  quarantined: number;
  summaries: number;
}

export interface DemoResult {
  count: DemoCount;
  /** What does not agree, one sentence each; empty when all is well. */
  mismatches: string[];
  /** Published, but never seen by the endpoint. */
  losses: DeliveryEntry[];
}

/** Counts from both records, and matches them notification by notification. */
export async function countDemo(
  log: Pick<NotificationLog, 'counts' | 'find'>,
  totals: DeliveryTotals,
  entries: readonly DeliveryEntry[],
): Promise<DemoResult> {
  const { notifications, duplicates, quarantined } = await log.counts();
  const accepted = entries.filter(({ timesReceivedOk }) => timesReceivedOk > 0);
  const missing = new Map(accepted.map((entry) => [keyOf(entry), entry]));
  const mismatches: string[] = [];
  for await (const row of log.find({})) {
    const { ackId, productId, event, notificationDateUs } = row;
    const key = ackId ?? `${productId} ${event} ${notificationDateUs}`;
    if (!missing.delete(key))
      mismatches.push(`${row.productName ?? productId}: stored, but twice or never sent`);
  }
  for (const entry of missing.values()) {
    mismatches.push(`${entry.productName}: answered with success, but not stored`);
  }
  const sentAgain = totals.receivedOk - totals.accepted;
  if (duplicates !== sentAgain) {
    mismatches.push(`${sentAgain} duplicates were answered, ${duplicates} counted`);
  }
  if (quarantined > 0) mismatches.push(`${quarantined} bodies were not understood`);
  return {
    count: {
      published: totals.published,
      delivered: totals.accepted,
      stored: notifications,
      duplicates,
      quarantined,
      summaries: 0,
    },
    mismatches,
    losses: entries.filter(({ timesReceivedOk }) => timesReceivedOk === 0),
  };
}

function keyOf({ ackId, productId, event, notificationDate }: DeliveryEntry): string {
  return ackId ?? `${productId} ${event} ${parseDate(notificationDate)?.us}`;
}
