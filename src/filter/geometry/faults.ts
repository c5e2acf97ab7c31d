/** What is wrong with a geometry, so that the catalogue would refuse it. */
import type { Geometry, Position } from '../../domain/geometry.ts';

export interface GeometryFault {
  readonly code: string;
  readonly message: string;
  readonly at?: Position;
}
/** thin */
export function geometryFaults(_geometry: Geometry): GeometryFault[] {
  return [];
}
