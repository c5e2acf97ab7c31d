/** The query thread: a read-only connection outside the main thread, so that no query delays a response. */
import { accountReads } from './account.ts';
import { alertReads } from './alerts.ts';
import { lastBackups } from './backups/backup-runs.ts';
import { coverageReads } from './completeness.ts';
import { createReaderConnection } from './engine/database.ts';
import { serveThread } from './engine/serve-thread.ts';
import { quarantineReads } from './log/quarantine.ts';
import { logReads } from './log/queries.ts';
import { logSize, prunable, pruneBlockers, pruneHorizon } from './pruning/prune-queries.ts';
import { sinkReads } from './sinks.ts';
import { summaryReads } from './summaries.ts';

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
