/** The thread that reads a checkpoint: all state tables after one entry, in one read transaction. */
import { createReaderConnection } from '../../store/engine/database.ts';
import { serveThread } from '../../store/engine/serve-thread.ts';
import { nodePlace } from './apply-entries.ts';
import { encodeContent } from './entry.ts';
import { readStateTables } from './state-tables.ts';

type Part = ReturnType<typeof encodeContent>;

interface Reading {
  /** Number of the entry. */
  begin(): number;
  next(): Part | null;
}

const operations = {
  begin: (reading: Reading): number => reading.begin(),
  /** Returns the next part; null after the last one. */
  next: (reading: Reading): Part | null => reading.next(),
};

export type CheckpointReads = typeof operations;

export default serveThread<Reading>(({ dataDir }) => {
  const connection = createReaderConnection(dataDir);
  const database = connection.database();
  let parts: ReturnType<typeof readStateTables> | undefined;
  const reading: Reading = {
    begin: () => {
      database.exec('BEGIN');
      const place = nodePlace(database);
      if (place === null) throw new Error('This log does not belong to a shared log.');
      parts = readStateTables(database);
      return place.applied;
    },
    next: () => {
      const part = parts?.next();
      return part === undefined || part.done ? null : encodeContent(part.value);
    },
  };
  return { operations, context: () => reading, close: () => connection.close() };
});
