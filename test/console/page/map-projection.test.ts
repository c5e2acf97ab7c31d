/** Projections of the map, and the colours of its footprints. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ColourName,
  colouringOf,
  type Footprint,
} from '../../../src/console/page/browser/map-colours.ts';
import {
  type LonLat,
  type Projection,
  plateCarree,
  projections,
  ringsOf,
} from '../../../src/console/page/browser/map-projection.ts';
import { collectionGroups } from '../../../src/domain/missions.ts';

const arctic = named('arctic');
const antarctic = named('antarctic');

describe('a projection', () => {
  it('returns each position from its point', () => {
    const longitude = fc.double({ min: -179.9, max: 179.9, noNaN: true });
    const latitude = fc.double({ min: -89, max: 89, noNaN: true });
    fc.assert(
      fc.property(fc.constantFrom(...projections), longitude, latitude, (projection, x, y) => {
        // Far beyond its edge, a polar map has no precision.
        fc.pre(projection.period > 0 || (projection === arctic ? y : -y) > -60);
        const [backX, backY] = projection.invert(...projection.project([x, y]));
        expect(backX).toBeCloseTo(x, 6);
        expect(backY).toBeCloseTo(y, 6);
      }),
    );
  });

  it('shows Greenwich at the bottom of the arctic and at the top of the antarctic, and the east to the right', () => {
    expect(arctic.project([0, 60])[1]).toBeGreaterThan(0);
    expect(antarctic.project([0, -60])[1]).toBeLessThan(0);
    for (const projection of [arctic, antarctic]) {
      const y = projection === arctic ? 60 : -60;
      expect(projection.project([90, y])[0]).toBeGreaterThan(0);
      expect(projection.project([-90, y])[0]).toBeLessThan(0);
    }
  });

  it('keeps angles: a small square at 70 degrees has equal sides', () => {
    const at = (x: number, y: number) => arctic.project([x, y]);
    const [[x0, y0], [x1, y1], [x2, y2]] = [at(40, 70), at(40.01, 70), at(40, 70.01)];
    const east = Math.hypot(x1 - x0, y1 - y0) / Math.cos((70 * Math.PI) / 180);
    expect(east).toBeCloseTo(Math.hypot(x2 - x0, y2 - y0), 4);
  });
});

describe('a ring on a polar map', () => {
  it('ends at 30 degrees, without an outline there', () => {
    const { points, seams } = arctic.ring(box(0, 0, 20, 60)) ?? { points: [], seams: null };
    const latitudes = positionsOf(points).map(([x, y]) => arctic.invert(x, y)[1]);
    expect(Math.min(...latitudes)).toBeCloseTo(30);
    expect(Math.max(...latitudes)).toBeCloseTo(60);
    expect(seams?.some((seam) => seam === 1)).toBe(true);
    expect(arctic.ring(box(0, 0, 20, 29))).toBe(null);
    expect(antarctic.ring(box(0, 40, 20, 60))).toBe(null);
  });

  it('follows a parallel instead of the chord', () => {
    const { points } = arctic.ring(box(0, 60, 90, 70)) ?? { points: [] };
    const latitudes = positionsOf(points).map(([x, y]) => arctic.invert(x, y)[1]);
    // A chord of 90 degrees at 60 degrees north would pass beyond 68 degrees.
    expect(latitudes.every((one) => Math.abs(one - 60) < 0.01 || Math.abs(one - 70) < 0.01)).toBe(
      true,
    );
    expect(latitudes.length).toBeGreaterThan(80);
  });

  it('has no outline along the cut at the antimeridian', () => {
    const { seams } = antarctic.ring(box(170, -80, 180, -70)) ?? { seams: null };
    expect(seams?.reduce((sum, seam) => sum + seam, 0)).toBe(1);
    expect(antarctic.ring(box(160, -80, 170, -70))?.seams).toBe(null);
  });
});

it('a footprint of any type has rings; a point is a small square around it', () => {
  const ring = box(0, 0, 1, 1);
  expect(ringsOf({ type: 'Polygon', coordinates: [ring, ring] }, plateCarree)).toHaveLength(2);
  expect(
    ringsOf({ type: 'MultiPolygon', coordinates: [[ring], [ring]] }, plateCarree),
  ).toHaveLength(2);
  const [point] = ringsOf({ type: 'Point', coordinates: [7, 46] }, plateCarree);
  const xs = positionsOf(point?.points ?? []).map(([x]) => x);
  expect(Math.min(...xs)).toBeLessThan(7);
  expect(Math.max(...xs)).toBeGreaterThan(7);
  expect(
    ringsOf(
      {
        type: 'MultiPoint',
        coordinates: [
          [0, 0],
          [1, 1],
        ],
      },
      plateCarree,
    ),
  ).toHaveLength(2);
  const line = ringsOf(
    {
      type: 'LineString',
      coordinates: [
        [0, 0],
        [4, 4],
      ],
    },
    plateCarree,
  );
  expect(line).toHaveLength(1);
  const corners = positionsOf(line[0]?.points ?? []);
  // Half of a twentieth of a degree on each side, at a right angle.
  expect(corners).toHaveLength(4);
  for (const [x, y] of corners) expect(Math.abs(x + y) / Math.SQRT2).toBeCloseTo(0.05, 9);
  const geometries = [
    { type: 'MultiLineString' as const, coordinates: [ring, ring] },
    { type: 'Point' as const, coordinates: [7, 46] as const },
  ];
  expect(ringsOf({ type: 'GeometryCollection', geometries }, plateCarree)).toHaveLength(3);
});

describe('the colour of a footprint', () => {
  const nowMs = Date.parse('2026-11-20T12:00:00Z');
  const labelOf = (name: ColourName, changes: Partial<Footprint>) => {
    const { classes, classOf } = colouringOf(name, collectionGroups);
    return classes[classOf({ ...footprint, ...changes }, nowMs)]?.label;
  };

  it.each([
    ['collection', { collection: 'SENTINEL-5P' }, 'SENTINEL-5P'],
    ['collection', { collection: 'LANDSAT-8' }, 'LANDSAT'],
    ['collection', { collection: 'SMOS' }, 'other'],
    ['collection', { collection: null }, 'other'],
    ['cloud', { cloudCoverPercent: 0 }, 'less than 10 %'],
    ['cloud', { cloudCoverPercent: 10 }, '10 to 20 %'],
    ['cloud', { cloudCoverPercent: 100 }, '80 % and more'],
    ['cloud', { cloudCoverPercent: null }, 'not known'],
    ['age', { sensingStart: '2026-11-20T10:00:00Z' }, 'less than 3 h'],
    ['age', { sensingStart: '2026-11-01T10:00:00Z' }, 'more than 3 days'],
    ['age', { sensingStart: null }, 'not known'],
    ['delay', { publicationDate: '2026-11-20T11:58:30Z' }, '1 to 2 min'],
    ['delay', { publicationDate: null }, 'not known'],
  ] as const)('%s of %j is "%s"', (name, changes, label) => {
    expect(labelOf(name, changes)).toBe(label);
  });
});

const footprint: Footprint = {
  position: 1,
  productId: 'p',
  productName: null,
  collection: null,
  sensingStart: null,
  publicationDate: null,
  receivedAt: '2026-11-20T12:00:00Z',
  cloudCoverPercent: null,
};

function named(name: Projection['name']): Projection {
  const found = projections.find((one) => one.name === name);
  if (found === undefined) throw new Error(`There is no projection ${name}.`);
  return found;
}

function box(west: number, south: number, east: number, north: number): LonLat[] {
  return [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ];
}

function positionsOf(points: ArrayLike<number>): LonLat[] {
  return Array.from({ length: points.length / 2 }, (_, i) => [
    points[2 * i] ?? 0,
    points[2 * i + 1] ?? 0,
  ]);
}
