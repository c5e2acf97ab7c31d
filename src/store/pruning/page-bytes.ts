/** How much of the log's file is in use. */
import type { Database } from 'better-sqlite3';
import type { LogSize } from '../../domain/pruning.ts';

/** SQLite keeps these figures, so that nothing is counted; within a transaction, as it has left them so far. */
export function pageBytes(database: Database): Pick<LogSize, 'usedBytes' | 'freeBytes'> {
  const read = (name: string) => Number(database.pragma(name, { simple: true }));
  const [size, pages, free] = [read('page_size'), read('page_count'), read('freelist_count')];
  return { usedBytes: size * (pages - free), freeBytes: size * free };
}
