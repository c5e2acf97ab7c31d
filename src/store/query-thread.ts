/** The query thread: a read-only connection outside the main thread, so that no query delays a response. */
import { createReaderConnection } from './engine/database.ts';
import { serveThread } from './engine/thread.ts';
import { quarantineReads } from './log/quarantine.ts';
import { logReads } from './log/queries.ts';
import {
  logSize,
  prunable,
  pruneBlockers,
  pruneHorizon,
  prunePhases,
  selectPrunable,
} from './pruning/prune-queries.ts';
import { loadTables, withTables } from './tables.ts';

const reads = {
  log: logReads,
  quarantine: quarantineReads,
  pruning: { pruneHorizon, prunePhases, pruneBlockers, logSize, prunable, selectPrunable },
};
export type Reads = typeof reads;

export default serveThread(async ({ dataDir, tables }) => {
  await loadTables(tables);
  const connection = createReaderConnection(dataDir);
  return {
    operations: withTables('reads', reads),
    context: () => connection.database(),
    close: () => connection.close(),
  };
});
