/** What is wrong with a geometry, so that the catalogue would refuse it (OGC 06-103r4, 6.1.11). */
import type { Geometry, Position, Ring, Rings } from '../../domain/geometry.ts';
import { type Effort, newEffort } from './effort.ts';
import type { GeometryFault } from './geometry-fault.ts';
import { ringFaults } from './ring-faults.ts';
import { ringPath } from './ring-path.ts';
import { isClosed } from './unwrap.ts';

export type { GeometryFault } from './geometry-fault.ts';

/** More than these are not looked for. */
const faultsMax = 20;

/**
 * The faults of a geometry, at most 20; none for one that can be used. First its form: whether there are
 * positions, on the globe, and rings closed. Only where that is right, how the rings lie: a ring
 * must not cross or touch itself; holes must be inside their outline, and may touch it and each
 * other in single places that do not divide the inside; parts may touch in single places. A geometry
 * that takes more than the effort is at fault, too: the catalogue would have the same trouble with it.
 */
export function geometryFaults(geometry: Geometry, effort: Effort = newEffort()): GeometryFault[] {
  const form = formFaults(geometry).slice(0, faultsMax);
  if (form.length > 0) return form;
  const parts = polygonsOf(geometry);
  const paths = parts.flatMap((rings, part) => rings.map((ring, i) => ringPath(ring, part, i)));
  const flat = paths.filter(({ corners }) => corners.length < 3);
  if (flat.length > 0) {
    return flat.slice(0, faultsMax).map(({ corners: [at] }) => tooFewPoints(at));
  }
  return ringFaults(paths, parts, faultsMax, effort);
}

function formFaults(geometry: Geometry): GeometryFault[] {
  switch (geometry.type) {
    case 'Point':
      return positionFaults([geometry.coordinates]);
    case 'MultiPoint':
      return listFaults(geometry.coordinates, (position) => positionFaults([position]));
    case 'Polygon':
      return listFaults(geometry.coordinates, ringFormFaults);
    case 'MultiPolygon':
      return listFaults(geometry.coordinates, (rings: Rings) => listFaults(rings, ringFormFaults));
  }
}

function listFaults<Item>(
  items: readonly Item[],
  faultsOf: (item: Item) => GeometryFault[],
): GeometryFault[] {
  if (items.length > 0) return items.flatMap(faultsOf);
  return [{ code: 'empty', message: 'The geometry is empty, or a part of it. Give it positions.' }];
}

function ringFormFaults(ring: Ring): GeometryFault[] {
  const faults = listFaults(ring, (position) => positionFaults([position]));
  if (faults.length > 0) return faults;
  const at = ring.at(-1);
  if (at !== undefined && !isClosed(ring)) {
    const message = 'The ring is not closed: its last position must repeat its first.';
    return [{ code: 'not-closed', message, at }];
  }
  return ring.length < 4 ? [tooFewPoints(ring[0])] : [];
}

function tooFewPoints(at: Position | undefined): GeometryFault {
  const message = 'The ring has too few points: three different ones, and the first once more.';
  return { code: 'too-few-points', message, ...(at === undefined ? {} : { at }) };
}

function positionFaults(positions: readonly Position[]): GeometryFault[] {
  return positions.flatMap((at): GeometryFault[] => {
    const [longitude, latitude] = at;
    if (!Number.isFinite(longitude) || !Number.isFinite(latitude)) {
      return [{ code: 'no-number', message: 'A position has a value that is no number.', at }];
    }
    if (Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90) return [];
    const message = `${longitude} ${latitude} is outside of the globe: longitudes are from -180 to 180, latitudes from -90 to 90.`;
    return [{ code: 'outside-globe', message, at }];
  });
}

function polygonsOf(geometry: Geometry): readonly Rings[] {
  if (geometry.type === 'Polygon') return [geometry.coordinates];
  return geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
}
