/** Answers repeated reads without the query thread while no process has written to the log. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Caller } from '../../core/host/rpc.ts';
import { databaseFileName, inodeOf } from './database.ts';

/**
 * Time without a write after which the log counts as unchanged. A commit becomes visible only after its sync, which may
 * take seconds and leaves the time of the file as it was.
 */
const restMs = 10_000;

/**
 * Returns a function that returns a mark of the log's content, which changes with each commit of any process. Null when
 * that is not certain: within `afterMs` after a write, and without a write-ahead log.
 */
function createLogMark(dataDir: string, afterMs: number): () => string | null {
  const file = join(dataDir, databaseFileName);
  let last = '';
  let lastSinceMs = 0;
  return () => {
    const wal = statSync(`${file}-wal`, { bigint: true, throwIfNoEntry: false });
    if (wal === undefined) return null;
    const mark = `${inodeOf(file)} ${wal.ino} ${wal.size} ${wal.mtimeNs}`;
    const nowMs = performance.now();
    if (mark !== last) [last, lastSinceMs] = [mark, nowMs];
    return nowMs - lastSinceMs > afterMs ? mark : null;
  };
}

/** Maximum number of answers: a name of a sink or subscription can be an argument. */
const answersMax = 1_000;

/** Returns the caller with the last answers of these operations remembered, by their arguments. */
export function rememberingReads(
  caller: Caller,
  dataDir: string,
  names: ReadonlySet<string>,
  afterMs = restMs,
): Caller {
  const markOf = createLogMark(dataDir, afterMs);
  const answers = new Map<string, { mark: string; answer: unknown }>();
  return {
    call: async (op, args, signal) => {
      // Before the call: a commit during it changes the mark.
      const mark = names.has(op) ? markOf() : null;
      if (mark === null) return caller.call(op, args, signal);
      const key = JSON.stringify([op, args]);
      const known = answers.get(key);
      if (known?.mark === mark) return known.answer;
      const answer = await caller.call(op, args, signal);
      if (answers.size >= answersMax) answers.clear();
      answers.set(key, { mark, answer });
      return answer;
    },
  };
}
