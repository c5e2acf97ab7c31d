/** Reads the area in a GeoJSON file that a flag names. */
import { AppError } from '../../domain/app-error.ts';
import type { Geometry } from '../../domain/geometry.ts';
import { geometryFaults } from '../../filter/geometry/faults.ts';
import { readGeoJson } from '../../filter/geometry/geojson.ts';
import type { Io } from '../io.ts';

/** Throws `usage` for a file that cannot be read, is no GeoJSON, or holds a geometry with faults. */
export function readAreaFile(path: string, { readFile }: Pick<Io, 'readFile'>): Geometry {
  const geometry = readGeometry(path, readFile);
  const details = geometryFaults(geometry).map(({ message }) => message);
  if (details.length === 0) return geometry;
  throw new AppError('usage', `--intersects: the area in ${path} cannot be used.`, { details });
}

function readGeometry(path: string, readFile: Io['readFile']): Geometry {
  try {
    return readGeoJson(JSON.parse(readFile(path)));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/\.$/, '') : String(cause);
    const details = cause instanceof AppError ? cause.details : [];
    throw new AppError('usage', `--intersects: ${path} cannot be read: ${reason}.`, {
      cause,
      details,
    });
  }
}
