/**
 * Random geometries on a coarse grid, where touching, shared edges and degenerate rings are common.
 */
import fc from 'fast-check';
import type {
  AnyGeometry,
  Geometry,
  Position,
  Ring,
  Rings,
} from '../../../src/filter/filter-tree.ts';
import { box } from './places.ts';

/** Positions with whole degrees from 0 to `size`, shifted. */
const positions = (size: number, shift = 0): fc.Arbitrary<Position> => {
  const degrees = fc.integer({ min: shift, max: size + shift });
  return fc.tuple(degrees, degrees);
};

const closed = (ring: Ring): Ring => [...ring, ...ring.slice(0, 1)];

/** Any closed loop; rarely a simple one. */
const loops = (size: number, shift?: number): fc.Arbitrary<Ring> =>
  fc.array(positions(size, shift), { minLength: 3, maxLength: 7 }).map(closed);

const rectangles = (size: number, shift?: number): fc.Arbitrary<Ring> =>
  fc
    .tuple(positions(size, shift), fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 4 }))
    .map(([[x, y], width, height]) => box(x, y, x + width, y + height));

/** Corners ordered by direction from the centre: often a simple loop with bays. */
const stars = (size: number, shift?: number): fc.Arbitrary<Ring> =>
  fc.array(positions(size, shift), { minLength: 3, maxLength: 9 }).map((corners) => {
    const [x, y] = [0, 1].map(
      (i) => corners.reduce((sum, corner) => sum + (corner[i] ?? 0), 0) / corners.length,
    );
    const angle = (corner: Position) => Math.atan2(corner[1] - (y ?? 0), corner[0] - (x ?? 0));
    return closed(corners.toSorted((a, b) => angle(a) - angle(b)));
  });

const rings = (size: number, shift?: number): fc.Arbitrary<Ring> =>
  fc.oneof(
    { weight: 1, arbitrary: loops(size, shift) },
    { weight: 2, arbitrary: rectangles(size, shift) },
    { weight: 2, arbitrary: stars(size, shift) },
  );

/** An outline around the centre with random holes. */
const withHoles: fc.Arbitrary<Rings> = fc
  .tuple(
    fc.oneof(stars(12), fc.constant(box(0, 0, 12, 12))),
    fc.array(rings(5, 3), { maxLength: 3 }),
  )
  .map(([outline, holes]) => [outline, ...holes]);

const polygons: fc.Arbitrary<Rings> = fc.oneof(
  rings(8).map((ring): Rings => [ring]),
  withHoles,
);

/** A geometry of this type, or several with `Multi` before the type. */
function oneOrMore<Of extends AnyGeometry>(
  type: 'Point' | 'LineString' | 'Polygon',
  coordinates: fc.Arbitrary<unknown>,
): fc.Arbitrary<Of> {
  const several = fc.array(coordinates, { minLength: 1, maxLength: 3 });
  return fc.oneof(
    coordinates.map((one) => ({ type, coordinates: one }) as unknown as Of),
    several.map((all) => ({ type: `Multi${type}`, coordinates: all }) as unknown as Of),
  );
}

export const arbitraryAreas = oneOrMore<Geometry>('Polygon', polygons);

const arbitraryPlaces = oneOrMore<Geometry>('Point', positions(12));

export const arbitraryGeometries: fc.Arbitrary<Geometry> = fc.oneof(
  { weight: 4, arbitrary: arbitraryAreas },
  { weight: 1, arbitrary: arbitraryPlaces },
);

export const arbitraryLines = oneOrMore<AnyGeometry>(
  'LineString',
  fc.array(positions(12), { minLength: 2, maxLength: 5 }),
);

const simple = fc.oneof(
  { weight: 5, arbitrary: arbitraryGeometries },
  { weight: 3, arbitrary: arbitraryLines },
);

/** Geometries of all types. */
export const arbitraryFootprints: fc.Arbitrary<AnyGeometry> = fc.oneof(
  { weight: 5, arbitrary: simple },
  {
    weight: 1,
    arbitrary: fc
      .array(simple, { minLength: 1, maxLength: 3 })
      .map((geometries): AnyGeometry => ({ type: 'GeometryCollection', geometries })),
  },
);

type Numbers = Position | readonly Numbers[];

/** Returns the geometry with each position replaced. */
export function mapped<Of extends AnyGeometry>(
  geometry: Of,
  change: (position: Position) => Position,
): Of {
  const inside = (value: Numbers): Numbers =>
    typeof value[0] === 'number'
      ? change(value as Position)
      : (value as readonly Numbers[]).map(inside);
  return geometry.type === 'GeometryCollection'
    ? { ...geometry, geometries: geometry.geometries.map((one) => mapped(one, change)) }
    : { ...geometry, coordinates: inside(geometry.coordinates) };
}

/** Shifts a geometry along the parallels and normalizes longitudes to -180 to 180. */
export function turnedBy<Of extends AnyGeometry>(geometry: Of, degrees: number): Of {
  return mapped(geometry, ([x, y]) => {
    const moved = x + degrees;
    return [moved - 360 * Math.floor((moved + 180) / 360), y];
  });
}
