/** Reads the area in a GeoJSON file that a flag names. */
import { AppError } from '../../domain/app-error.ts';
import type { FilterTree } from '../../domain/filter-tree.ts';
import { intersects } from '../../filter/builder.ts';
import type { Io } from '../io.ts';

/**
 * The condition that a footprint has a place in common with it. Throws `usage` for a file that cannot
 * be read, is no GeoJSON, or holds a geometry with faults.
 */
export function readAreaFile(path: string, { readFile }: Pick<Io, 'readFile'>): FilterTree {
  try {
    return intersects(JSON.parse(readFile(path))).tree;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/\.$/, '') : String(cause);
    const details = cause instanceof AppError ? cause.details : [];
    const message = `--intersects: the area in ${path} cannot be used: ${reason}.`;
    throw new AppError('usage', message, { cause, details });
  }
}
