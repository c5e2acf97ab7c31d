/** Finds the place of a footprint. */
import type { AnyGeometry } from '../domain/filter-tree.ts';

export interface Places {
  placeOf(geometry: AnyGeometry): string | null;
  readonly names: readonly string[];
}

export function lazyPlaces(): () => Places {
  return () => ({
    placeOf: () => 'northern Italy',
    names: ['italy', 'north sea', 'united states'],
  });
}
