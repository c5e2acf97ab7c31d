/** The changes of the store by group, for the threads that write it. */

import { accountWrites } from '../../admin/operations.ts';
import { alertWrites } from '../../features/alerts/operations.ts';
import { recordBackup } from '../../features/backup/operations.ts';
import { coverageWrites } from '../../features/coverage/operations.ts';
import {
  dropQuarantined,
  pruneStep,
  removeReader,
  removeSelected,
  shortStepMs,
  usualStepMs,
} from '../../features/pruning/prune-writer.ts';
import type { PruneStep, Pruning } from '../../features/pruning/terms.ts';
import { sinkWrites } from '../../features/sinks/operations.ts';
import { summaryWrites } from '../../features/summary/operations.ts';
import { type DataPlace, spareBytes } from '../engine/disk-limit.ts';
import type { WriterConnection } from '../engine/writer-connection.ts';
import { logWrites } from './queries.ts';

/**
 * Plain functions that are one transaction each. Their result depends only on the database and their arguments: the
 * nodes of a shared log run the same ones, and must get the same result.
 */
export const changes = {
  log: logWrites,
  account: accountWrites,
  alerts: alertWrites,
  coverage: coverageWrites,
  sinks: sinkWrites,
  summaries: summaryWrites,
  quarantine: { drop: dropQuarantined },
  backups: { recordBackup },
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
