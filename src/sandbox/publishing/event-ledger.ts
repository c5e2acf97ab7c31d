/** Remembers every event of the catalogue: what happened, when, and who was told of it or should have been. */
import type { NotificationEvent } from '../delivery/notification.ts';
import type { HeldProduct } from './record-archive.ts';

/** An event as the ledger keeps it; a few hundred bytes. */
export interface LedgerEntry {
  /** 1 for the first event, then counting. */
  readonly sequence: number;
  readonly event: NotificationEvent;
  readonly productId: string;
  readonly productName: string;
  /** PublicationDate, ModificationDate or DeletionDate: µs since 1970; null where the record has none. */
  readonly dateUs: number | null;
  /** When notifications of it were due, on the sandbox's clock; ms since 1970. */
  readonly atMs: number;
  /** From when on the lists show it; ms since 1970. */
  readonly shownFromMs: number;
  /** The product's record after it. */
  readonly held: HeldProduct;
  /** Its notifications, by their sequences in the record of deliveries. */
  readonly deliveries: readonly number[];
  /** Ids of the subscriptions whose events and filter it matches, but that were paused. */
  readonly pausedIds: readonly string[];
}

export interface EventLedger {
  note(entry: Omit<LedgerEntry, 'sequence'>): void;
  /** Those after a sequence, oldest first. */
  after(sequence: number): Iterable<LedgerEntry>;
  /** How many there were, those that are forgotten included. */
  total(): number;
}

/** How many events are remembered unless told: more than a month of a busy subscription. */
export const eventsMaxDefault = 100_000;

/** Creates an empty ledger that remembers the last `eventsMax` events. */
export function createEventLedger(eventsMax = eventsMaxDefault): EventLedger {
  const entries: LedgerEntry[] = [];
  let forgotten = 0;
  return {
    note: (entry) => {
      entries.push({ sequence: forgotten + entries.length + 1, ...entry });
      // Not one by one, which would move all the others each time.
      if (entries.length < eventsMax * 1.1) return;
      forgotten += entries.splice(0, entries.length - eventsMax).length;
    },
    after: function* (sequence) {
      for (let place = Math.max(0, sequence - forgotten); place < entries.length; place += 1) {
        const entry = entries[place];
        if (entry !== undefined) yield entry;
      }
    },
    total: () => forgotten + entries.length,
  };
}
