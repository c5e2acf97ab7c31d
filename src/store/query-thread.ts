/** The query thread: a read-only connection outside the main thread, so that no query delays a response. */
import { accountReads } from '../admin/operations.ts';
import { alertReads } from '../features/alerts/operations.ts';
import { lastBackups } from '../features/backup/operations.ts';
import { coverageReads } from '../features/coverage/operations.ts';
import {
  logSize,
  prunable,
  pruneBlockers,
  pruneHorizon,
} from '../features/pruning/prune-queries.ts';
import { sinkReads } from '../features/sinks/operations.ts';
import { summaryReads } from '../features/summary/operations.ts';
import { createReaderConnection } from './engine/database.ts';
import { serveThread } from './engine/serve-thread.ts';
import { quarantineReads } from './log/quarantine.ts';
import { logReads } from './log/queries.ts';

const reads = {
  log: logReads,
  quarantine: quarantineReads,
  account: accountReads,
  alerts: alertReads,
  coverage: coverageReads,
  sinks: sinkReads,
  summaries: summaryReads,
  backups: { lastBackups },
  pruning: { pruneHorizon, pruneBlockers, logSize, prunable },
};
export type Reads = typeof reads;

export default serveThread(({ dataDir }) => {
  const connection = createReaderConnection(dataDir);
  return {
    operations: reads,
    context: () => connection.database(),
    close: () => connection.close(),
  };
});
