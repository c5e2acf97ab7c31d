/** Writes summaries. */
import type { Database } from 'better-sqlite3';
import { prepareClaim } from './summary-claim-writer.ts';
import { prepareDrop, prepareRetry } from './summary-commands-writer.ts';
import { prepareEnqueue } from './summary-jobs-writer.ts';
import type { SummaryChange } from './summary-messages.ts';
import { prepareSettle } from './summary-settle-writer.ts';

/** Works inside a transaction of the caller's. */
export interface SummaryWriter {
  /** Returns what the port's call of that name resolves with. */
  write(change: SummaryChange): unknown;
}

export function createSummaryWriter(database: Database): SummaryWriter {
  const enqueue = prepareEnqueue(database);
  const claim = prepareClaim(database);
  const settle = prepareSettle(database);
  const retry = prepareRetry(database);
  const drop = prepareDrop(database);
  return {
    write: (change) => {
      switch (change.kind) {
        case 'enqueue':
          return enqueue(change.options);
        case 'claim':
          return claim(change.options);
        case 'settle':
          return settle(change.options);
        case 'retry':
          return retry(change.options);
        case 'drop':
          return drop(change.options);
      }
    },
  };
}
