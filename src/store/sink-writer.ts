/** Writes what sinks have yet to take. */
import type { Database } from 'better-sqlite3';
import { prepareDropItems, prepareRetryItems } from './sink-commands-writer.ts';
import type { SinkChange } from './sink-messages.ts';
import { prepareAddReplay, prepareEnqueueItems } from './sink-queue-writer.ts';
import { prepareSettleItems } from './sink-settle-writer.ts';

/** Works inside a transaction of the caller's. */
export interface SinkWriter {
  /** Returns what the port's call of that name resolves with. */
  write(change: SinkChange): unknown;
}

export function createSinkWriter(database: Database): SinkWriter {
  const enqueue = prepareEnqueueItems(database);
  const settle = prepareSettleItems(database);
  const retry = prepareRetryItems(database);
  const drop = prepareDropItems(database);
  const addReplay = prepareAddReplay(database);
  return {
    write: (change) => {
      switch (change.kind) {
        case 'enqueue':
          return enqueue(change.options);
        case 'settle':
          return settle(change.options);
        case 'retry':
          return retry(change.options);
        case 'drop':
          return drop(change.options);
        case 'add-replay':
          return addReplay(change.options);
      }
    },
  };
}
