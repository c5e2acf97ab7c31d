/** Writes what sinks have yet to take. */
import type { Database } from 'better-sqlite3';
import { type ChangeWriter, createChangeWriter } from './change-writer.ts';
import { prepareDropItems, prepareRetryItems } from './sink-commands-writer.ts';
import type { SinkChange } from './sink-messages.ts';
import { prepareAddReplay, prepareEnqueueItems } from './sink-queue-writer.ts';
import { prepareSettleItems } from './sink-settle-writer.ts';

export type SinkWriter = ChangeWriter<SinkChange>;

export function createSinkWriter(database: Database): SinkWriter {
  return createChangeWriter<SinkChange>({
    enqueue: prepareEnqueueItems(database),
    settle: prepareSettleItems(database),
    retry: prepareRetryItems(database),
    drop: prepareDropItems(database),
    'add-replay': prepareAddReplay(database),
  });
}
