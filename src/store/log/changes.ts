/** The changes of the store itself by group, for the threads that write it. */

import { type DataPlace, spareBytes } from '../engine/disk-limit.ts';
import type { WriterConnection } from '../engine/writer-connection.ts';
import {
  dropQuarantined,
  pruneStep,
  removeReader,
  removeSelected,
  shortStepMs,
  usualStepMs,
} from '../pruning/prune-writer.ts';
import type { PruneStep, Pruning } from '../pruning/terms.ts';
import { logWrites } from './queries.ts';

/** Changes of the store itself; those of features are in their tables. */
export const changes = {
  log: logWrites,
  quarantine: { drop: dropQuarantined },
  pruning: { removeReader, removeSelected },
};

/** May use the disk reserve, because pruning frees space. On a nearly full disk, keeps the write-ahead log small. */
export function pruneShortly(
  connection: Pick<WriterConnection, 'checkpoint' | 'transact'>,
  place: DataPlace,
  options: Parameters<Pruning['pruneStep']>[0],
): PruneStep {
  const isShort = spareBytes(place) < 0;
  if (isShort) connection.checkpoint();
  const stepMs = isShort ? shortStepMs : usualStepMs;
  return connection.transact((database) => pruneStep(database, options, stepMs));
}
