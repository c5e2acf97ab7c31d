/** Does the steps of a prune, each within a transaction of the caller's. */
import type { Database } from 'better-sqlite3';
import type { PruneStep } from '../../domain/pruning.ts';
import { giveBack } from './give-back.ts';
import type { PruneStepOptions } from './prune-messages.ts';
import { prepareRemoveOldest } from './remove-oldest.ts';
import { prepareDropQuarantined, prepareRemoveQuarantined } from './remove-quarantined.ts';
import { prepareRemoveJobs, prepareRemoveTexts } from './remove-summaries.ts';

export interface PruneWriter {
  step(options: PruneStepOptions, stepMs: number): PruneStep;
  /** False where there is no such reader. */
  forgetReader(key: string): boolean;
  /** Removes held entries of the quarantine; returns how many there were. */
  dropQuarantined(ids: readonly number[]): number;
}

export function createPruneWriter(database: Database, dataDir: string): PruneWriter {
  const removeOldest = prepareRemoveOldest(database, dataDir);
  const removeQuarantined = prepareRemoveQuarantined(database);
  const removeJobs = prepareRemoveJobs(database);
  const removeTexts = prepareRemoveTexts(database);
  const forget = database.prepare('DELETE FROM reader_cursor WHERE reader = ?');
  const dropQuarantined = prepareDropQuarantined(database);
  return {
    dropQuarantined,
    step: ({ phase, wish, after }, stepMs) => {
      switch (phase) {
        case 'notifications':
          return removeOldest(wish, stepMs);
        case 'quarantine':
          return removeQuarantined(wish, after, stepMs);
        case 'summary-jobs':
          return removeJobs(after, stepMs);
        case 'summary-texts':
          return removeTexts(after, stepMs);
        case 'space':
          return giveBack(database, wish.freeShare, stepMs);
      }
    },
    forgetReader: (key) => forget.run(key).changes > 0,
  };
}
