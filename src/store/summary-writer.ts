/** Writes summaries. */
import type { Database } from 'better-sqlite3';
import { type ChangeWriter, createChangeWriter } from './change-writer.ts';
import { prepareClaim } from './summary-claim-writer.ts';
import { prepareDrop, prepareRetry } from './summary-commands-writer.ts';
import { prepareEnqueue } from './summary-jobs-writer.ts';
import type { SummaryChange } from './summary-messages.ts';
import { prepareSettle } from './summary-settle-writer.ts';

export type SummaryWriter = ChangeWriter<SummaryChange>;

export function createSummaryWriter(database: Database): SummaryWriter {
  return createChangeWriter<SummaryChange>({
    enqueue: prepareEnqueue(database),
    claim: prepareClaim(database),
    settle: prepareSettle(database),
    retry: prepareRetry(database),
    drop: prepareDrop(database),
  });
}
