/** Reads the area in a GeoJSON file that a flag names. */
import { readGeoJsonFile } from '../../config/geojson-file.ts';
import { AppError } from '../../domain/app-error.ts';
import type { FilterTree } from '../../domain/filter-tree.ts';
import { intersects } from '../../filter/builder.ts';
import type { Io } from '../io.ts';

/**
 * The condition that a footprint has a place in common with it. Throws `usage` for a file that cannot
 * be read, is no GeoJSON, or holds a geometry with faults.
 */
export function readAreaFile(
  flag: string,
  path: string,
  { readFile }: Pick<Io, 'readFile'>,
): FilterTree {
  try {
    return intersects(readGeoJsonFile(path, readFile)).tree;
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    const { message: reason, details } = cause;
    const which = reason.startsWith(path) ? '' : `${path} cannot be used: `;
    throw new AppError('usage', `${flag}: ${which}${reason}`, { cause, details });
  }
}
