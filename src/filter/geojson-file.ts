/** Reads a GeoJSON file, for a filter in `earshot.config.ts` or for a flag. */

import { readFileSync } from 'node:fs';
import { AppError, errorCodeOf, errorText } from '../core/terms/app-error.ts';
import { clauseOf } from '../core/terms/faults.ts';
import { readAreas } from './geometry/read-geometry.ts';

/**
 * Reads a Geometry, a Feature or a FeatureCollection, as an area for `intersects`. A path is relative to the working
 * directory, which is that of `earshot.config.ts`; a file URL, such as `new URL('./area.geojson', import.meta.url)`,
 * is absolute. Throws `invalid`, with the reason.
 */
export function geojsonFile(path: string | URL): object {
  return readGeoJsonFile(path, (file) => readFileSync(file, 'utf8'));
}

/** Returns the JSON of a GeoJSON file. Throws `invalid`, with the reason. */
export function readGeoJsonFile<Path extends string | URL>(
  path: Path,
  readText: (path: Path) => string,
): object {
  try {
    // Some editors start a file with a byte order mark.
    const text = readText(path).replace(/^\ufeff/, '');
    if (text.trim() === '') throw new AppError('invalid', 'it is empty');
    const value: unknown = JSON.parse(text);
    readAreas(value);
    // Valid GeoJSON is an object.
    return value as object;
  } catch (cause) {
    const details = cause instanceof AppError ? cause.details : [];
    throw new AppError('invalid', `${path} cannot be read as GeoJSON: ${reasonOf(cause)}`, {
      cause,
      details,
    });
  }
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (cause instanceof SyntaxError) return `it is not JSON (${cause.message})`;
  if (cause instanceof AppError || !('code' in cause)) return errorText(cause).replace(/\.$/, '');
  return clauseOf(errorCodeOf(cause));
}
