/** Counts what arrived in a window, notification by notification, into the facts of a digest. */
import type { DigestScope } from '../../domain/summaries.ts';
import type { DigestEvent } from './digest-event.ts';
import { type CleanScope, cleanScope } from './digest-names.ts';
import { createProductStatistics, type ProductStatistics } from './product-statistics.ts';

export interface DigestFacts extends ProductStatistics {
  scope: CleanScope;
  notifications: number;
  /** Notifications by what they tell of. */
  events: { created: number; modified: number; deleted: number; other: number };
  /** Products that the notifications are about, each once. */
  products: number;
  /** False for more products than can be told apart: from there on each creation counts as a product. */
  isExact: boolean;
}

export interface DigestCount {
  /** Notifications in any order; those of a product always with the same state of it. */
  add(event: DigestEvent): void;
  facts(scope: DigestScope): DigestFacts;
}

/** Some 30 MB of ids: two days of everything the catalogue publishes (facts, catalogue 7). */
export const distinctMax = 200_000;

/** Counts in bounded memory, however much is added. */
export function createDigestCount(): DigestCount {
  /** The ids, and whether the product's deletion has been counted. */
  const seen = new Map<string, boolean>();
  const statistics = createProductStatistics();
  const events = { created: 0, modified: 0, deleted: 0, other: 0 };
  let notifications = 0;
  let beyond = 0;
  return {
    add: (event) => {
      const { productId } = event;
      const kind = kindOf(event.event);
      notifications += 1;
      events[kind] += 1;
      const isNew = !seen.has(productId);
      const isFull = seen.size >= distinctMax;
      if (isNew && !isFull) seen.set(productId, false);
      if (isNew && isFull && kind === 'created') beyond += 1;
      if (isNew && (!isFull || kind === 'created')) statistics.addProduct(event);
      if (kind === 'created') statistics.addReceipt(event);
      if (kind === 'deleted' && seen.get(productId) !== true) {
        statistics.addDeletion(event);
        if (seen.has(productId)) seen.set(productId, true);
      }
    },
    facts: (scope) => ({
      scope: cleanScope(scope),
      notifications,
      events: { ...events },
      products: seen.size + beyond,
      isExact: seen.size < distinctMax,
      ...statistics.facts(),
    }),
  };
}

function kindOf(event: string): keyof DigestFacts['events'] {
  const word = event.toLowerCase();
  return word === 'created' || word === 'modified' || word === 'deleted' ? word : 'other';
}
