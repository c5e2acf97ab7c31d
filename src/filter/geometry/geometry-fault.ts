/** One thing that is wrong with a geometry. */
import type { Position } from '../../domain/geometry.ts';

export const geometryFaultCodes = [
  'empty',
  'no-number',
  'outside-globe',
  'not-closed',
  'too-few-points',
  'self-intersecting',
  'rings-crossing',
  'hole-outside',
  'holes-nested',
  'inside-divided',
  'parts-overlapping',
] as const;

export interface GeometryFault {
  readonly code: (typeof geometryFaultCodes)[number];
  /** Says what is wrong and where, and what to do. */
  readonly message: string;
  /** The position (the very object) at which it was seen. */
  readonly at?: Position;
}
