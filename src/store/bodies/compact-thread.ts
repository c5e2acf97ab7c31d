/** The compaction thread: has its own writing connection, and intake has priority. */

import { type DataPlace, requireFreeSpace } from '../engine/disk-limit.ts';
import { lowerPriority, serveThread } from '../engine/serve-thread.ts';
import { createWriterConnection, type WriterConnection } from '../engine/writer-connection.ts';
import { releaseFreePages, usualStepMs } from '../pruning/prune-writer.ts';
import { type CompactStep, createCompactStep } from './compact-step.ts';

interface Context {
  place: DataPlace;
  connection: WriterConnection;
  doStep: () => CompactStep;
}

const operations = {
  step: ({ place, doStep }: Context): CompactStep => {
    requireFreeSpace(place, 'Compacting');
    return doStep();
  },
  releaseFreePages: ({ connection }: Context, freeShare: number) =>
    connection.transact((database) => releaseFreePages(database, freeShare, usualStepMs)),
  checkpoint: ({ connection }: Context): void => connection.checkpoint(),
};
export type CompactOperations = typeof operations;

export default serveThread((place) => {
  lowerPriority();
  const connection = createWriterConnection(place.dataDir);
  const context = { place, connection, doStep: createCompactStep(connection) };
  return { operations, context: () => context, close: () => connection.close() };
});
