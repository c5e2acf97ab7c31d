/** Reads the area of a GeoJSON file, for a filter in `earshot.config.ts`. */
import { readFileSync } from 'node:fs';
import { AppError } from '../domain/app-error.ts';
import type { Geometry } from '../domain/geometry.ts';
import { readGeoJson } from '../filter/geometry/geojson.ts';

/**
 * Reads a Geometry, a Feature or a FeatureCollection, as an area for `intersects`. A path is seen from the
 * folder that the command runs in, which is that of `earshot.config.ts`; a file URL, such as
 * `new URL('./area.geojson', import.meta.url)`, from anywhere. Throws `invalid`, with the reason.
 */
export function geojsonFile(path: string | URL): Geometry {
  try {
    return readGeoJson(JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/\.$/, '') : String(cause);
    const details = cause instanceof AppError ? cause.details : [];
    throw new AppError('invalid', `${path} cannot be read as GeoJSON: ${reason}`, {
      cause,
      details,
    });
  }
}
