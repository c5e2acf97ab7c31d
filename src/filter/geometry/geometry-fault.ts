/** One thing that is wrong with a geometry. */
import type { Position } from '../../domain/geometry.ts';

type GeometryFaultCode =
  | 'empty'
  | 'no-number'
  | 'outside-globe'
  | 'not-closed'
  | 'too-few-points'
  | 'self-intersecting'
  | 'rings-crossing'
  | 'hole-outside'
  | 'holes-nested'
  | 'inside-divided'
  | 'parts-overlapping'
  | 'too-intricate';

export interface GeometryFault {
  readonly code: GeometryFaultCode;
  /** Says what is wrong and where, and what to do. */
  readonly message: string;
  /** The position (the very object) at which it was seen. */
  readonly at?: Position;
}
