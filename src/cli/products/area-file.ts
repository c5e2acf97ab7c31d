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
  const attempt = <Value>(prefix: string, work: () => Value): Value => {
    try {
      return work();
    } catch (cause) {
      if (!(cause instanceof AppError)) throw cause;
      throw cause.with({ code: 'usage', message: `${flag}: ${prefix}${cause.message}`, cause });
    }
  };
  // The reader's own errors name the file.
  const area = attempt('', () => readGeoJsonFile(path, readFile));
  return attempt(`${path} cannot be used: `, () => intersects(area).tree);
}
