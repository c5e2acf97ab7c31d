/** Compares what a server answered with what its database file holds. */
import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import type { SequenceRange } from './answered-ranges.ts';
import { sequenceOf } from './request-ids.ts';

/** Both stores name the table and the column alike, so that one reader serves both. */
const selectAckIds = 'SELECT ack_id FROM notification';

/** What a database file holds of what was answered. */
export interface Verification {
  /** Rows in the file, those of earlier runs and of a prefill included. */
  readonly rows: number;
  /** Answered with 200 but not in the file. */
  readonly missing: number;
  /** In the file more than once. */
  readonly repeated: number;
  /** Database file and write-ahead log together, over rows. */
  readonly bytesPerRow: number;
}

/**
 * Reads a stopped server's file and looks for every answered notification of a run.
 * Throws when the file cannot be read as a database of the expected shape.
 */
export function verifyDatabase(
  file: string,
  run: number,
  answered: readonly SequenceRange[],
): Verification {
  const bytes = sizeOf(file) + sizeOf(`${file}-wal`);
  const last = answered.at(-1)?.[1] ?? -1;
  const timesFound = new Uint32Array(last + 1);
  const db = new Database(file, { readonly: true, fileMustExist: true });
  let rows = 0;
  try {
    for (const ackId of db.prepare<[], unknown>(selectAckIds).pluck().iterate()) {
      rows += 1;
      const sequence = typeof ackId === 'string' ? sequenceOf(run, ackId) : undefined;
      if (sequence !== undefined && sequence <= last) {
        timesFound[sequence] = (timesFound[sequence] ?? 0) + 1;
      }
    }
  } finally {
    db.close();
  }
  let missing = 0;
  for (const [first, end] of answered) {
    for (let sequence = first; sequence <= end; sequence += 1) {
      if (timesFound[sequence] === 0) missing += 1;
    }
  }
  const repeated = timesFound.filter((times) => times > 1).length;
  return { rows, missing, repeated, bytesPerRow: rows === 0 ? 0 : bytes / rows };
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
