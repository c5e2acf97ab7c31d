/** The query thread: a read-only connection outside the main thread, so that no query delays a response. */
import { type Caller, type Operations, operationsByName } from '../core/host/rpc.ts';
import { createReaderConnection, type Database } from './engine/database.ts';
import { storeError } from './engine/sqlite-error.ts';
import { serveThread, type ThreadPlace } from './engine/thread.ts';
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

type Place = Pick<ThreadPlace, 'dataDir' | 'tables'>;

async function openReads({ dataDir, tables }: Place) {
  await loadTables(tables);
  const connection = createReaderConnection(dataDir);
  const operations: Operations<Database> = withTables('reads', reads);
  return {
    operations,
    context: () => connection.database(),
    close: () => connection.close(),
  };
}

export default serveThread(openReads);

/** Runs the queries on this thread, for a command whose queries are short. The first one opens the file. */
export function createReadsHere(place: Place): Caller & { close(): Promise<void> } {
  let opened: ReturnType<typeof openReads> | undefined;
  const call: Caller['call'] = async (op, args) => {
    try {
      opened ??= openReads(place);
      const { operations, context } = await opened;
      return operationsByName(operations).get(op)?.(context(), ...(args as never[]));
    } catch (error) {
      throw storeError(error);
    }
  };
  return {
    call,
    close: async () => {
      (await opened?.catch(() => undefined))?.close();
    },
  };
}
