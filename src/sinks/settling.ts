/** Writes what came of items, several in one transaction where several have come together. */
import type { Sinks } from '../domain/sinks.ts';
import type { Settlement } from './after-answer.ts';

/** Resolves when it is on disk. Rejects with `unavailable`. */
export type Settle = (settlement: Settlement) => Promise<void>;

/** What comes while one transaction is being written shares the next one. */
export function createSettling({ settle }: Pick<Sinks, 'settle'>): Settle {
  let next: { settlements: Settlement[]; written: Promise<void> } | null = null;
  let latest: Promise<unknown> = Promise.resolve();
  return (settlement) => {
    if (next === null) {
      const settlements: Settlement[] = [];
      const written = latest.then(() => {
        next = null;
        return settle(settlements);
      });
      latest = written.catch(() => undefined);
      next = { settlements, written };
    }
    next.settlements.push(settlement);
    return next.written;
  };
}
