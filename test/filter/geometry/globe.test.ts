/** Whether places meet where the plane ends: at the antimeridian, at the poles, right round the globe. */
import { describe, expect, it } from 'vitest';
import type { Geometry } from '../../../src/domain/geometry.ts';
import { geometryFaults } from '../../../src/filter/geometry/validity.ts';
import { box, meet, parallel, point, polygon } from './places.ts';

describe('across the antimeridian', () => {
  const fiji = polygon([
    [177, -20],
    [-178, -20],
    [-178, -15],
    [177, -15],
    [177, -20],
  ]);

  it('an edge goes the short way', () => {
    for (const inside of [point(179, -17), point(-179, -17), point(180, -17), point(-180, -17)]) {
      expect(meet(fiji, inside)).toBe(true);
    }
    expect(meet(fiji, point(0, -17))).toBe(false);
    expect(meet(fiji, point(176.9, -17))).toBe(false);
    expect(meet(fiji, point(-177.9, -17))).toBe(false);
  });

  it('parts that were cut there are one', () => {
    const cut: Geometry = {
      type: 'MultiPolygon',
      coordinates: [[box(177, -20, 180, -15)], [box(-180, -20, -178, -15)]],
    };
    expect(meet(cut, polygon(box(179.5, -18, 180, -17)))).toBe(true);
    expect(meet(polygon(box(177, -20, 180, -15)), polygon(box(-180, -20, -178, -15)))).toBe(true);
    expect(meet(point(180, 3), point(-180, 3))).toBe(true);
  });

  it('a hole over it is a hole', () => {
    const holed = polygon(
      box(170, -30, 190, 30).map(([x, y]) => [x > 180 ? x - 360 : x, y]),
      [
        [178, -5],
        [-178, -5],
        [-178, 5],
        [178, 5],
        [178, -5],
      ],
    );
    expect(meet(holed, point(180, 0))).toBe(false);
    expect(meet(holed, point(-179, 0))).toBe(false);
    expect(meet(holed, point(-178, 0))).toBe(true);
    expect(meet(holed, point(-175, 0))).toBe(true);
  });
});

describe('right round the globe', () => {
  it('the seam is a border where one end lies on it alone', () => {
    const step = polygon([
      [-180, 0],
      [0, 0],
      [180, 0],
      [180, 9],
      [0, 9],
      [0, 5],
      [-180, 5],
      [-180, 0],
    ]);
    expect(meet(step, point(180, 7))).toBe(true);
    expect(meet(step, point(-179, 7))).toBe(false);
    expect(meet(step, point(180, 9.1))).toBe(false);
  });

  it('the whole-world rectangle is the whole world, and a hole in it a hole', () => {
    const world = polygon(box(-180, -90, 180, 90));
    for (const at of [point(0, 0), point(180, 0), point(-180, 10), point(77, 90), point(3, -90)]) {
      expect(meet(world, at)).toBe(true);
    }
    expect(meet(world, world)).toBe(true);
    const holed = polygon(box(-180, -90, 180, 90), [
      [175, -5],
      [-175, -5],
      [-175, 5],
      [175, 5],
      [175, -5],
    ]);
    expect(meet(holed, point(180, 0))).toBe(false);
    expect(
      meet(
        holed,
        polygon([
          [179, -1],
          [-179, -1],
          [-179, 1],
          [179, 1],
          [179, -1],
        ]),
      ),
    ).toBe(false);
    expect(meet(holed, point(0, 0))).toBe(true);
    expect(meet(holed, polygon(box(174, -1, 176, 1)))).toBe(true);
  });

  it('a band of 360 degrees has no seam', () => {
    const band = polygon(box(-180, -10, 180, 10));
    expect(meet(band, point(180, 0))).toBe(true);
    expect(meet(band, point(0, 11))).toBe(false);
    const holed = polygon(box(-180, -10, 180, 10), [
      [179, -1],
      [-179, -1],
      [-179, 1],
      [179, 1],
      [179, -1],
    ]);
    expect(meet(holed, point(180, 0))).toBe(false);
    expect(meet(holed, point(180, 5))).toBe(true);
  });

  it('an edge of 200 degrees is taken the short way', () => {
    expect(meet(polygon(box(-100, -10, 100, 10)), point(0, 0))).toBe(false);
    expect(meet(polygon(box(-100, -10, 100, 10)), point(180, 0))).toBe(true);
  });
});

describe('round a pole', () => {
  const cap = polygon(parallel(80));

  it('a ring encloses the nearer pole, however it is turned and wherever it begins', () => {
    for (const ring of [
      parallel(80),
      parallel(80).toReversed(),
      parallel(80, 45),
      parallel(80, 1),
    ]) {
      const area = polygon(ring);
      expect(meet(area, point(17, 85))).toBe(true);
      expect(meet(area, point(180, 89.9))).toBe(true);
      expect(meet(area, point(-45, 90))).toBe(true);
      expect(meet(area, point(17, 79))).toBe(false);
      expect(meet(area, point(0, -90))).toBe(false);
    }
    expect(meet(polygon(parallel(-70)), point(10, -75))).toBe(true);
    expect(meet(polygon(parallel(-70)), point(10, -60))).toBe(false);
  });

  it('the same ring with sides along the pole is the same place', () => {
    const written = polygon([
      [-180, 80],
      [0, 80],
      [180, 80],
      [180, 90],
      [-180, 90],
      [-180, 80],
    ]);
    for (const at of [point(180, 85), point(5, 90), point(-180, 80)]) {
      expect(meet(written, at)).toBe(true);
      expect(meet(cap, at)).toBe(true);
    }
    expect(meet(written, point(180, 79))).toBe(false);
  });

  it('a hole round the pole leaves a ring of land, without a seam', () => {
    for (const hole of [parallel(85), box(-180, 85, 180, 90)]) {
      const area = polygon(parallel(70), hole);
      for (const longitude of [-180, -90, 0, 77, 180]) {
        expect(meet(area, point(longitude, 80))).toBe(true);
        expect(meet(area, point(longitude, 87))).toBe(false);
        expect(meet(area, polygon(box(longitude - 1, 86, longitude + 1, 89)))).toBe(false);
      }
      expect(meet(area, point(0, 90))).toBe(false);
    }
  });

  it('the pole is one place for all longitudes', () => {
    expect(meet(point(0, 90), point(120, 90))).toBe(true);
    expect(
      meet(
        polygon([
          [10, 80],
          [20, 80],
          [15, 90],
          [10, 80],
        ]),
        point(-100, 90),
      ),
    ).toBe(true);
    expect(meet(point(0, -90), point(0, 90))).toBe(false);
  });

  it('a swath of Sentinel-3 that passes the pole meets what lies under it, and nothing else', () => {
    // Up at 100 degrees east, over the pole, down at 80 degrees west, some 1,400 km wide.
    const swath = polygon([
      [90, 70],
      [110, 70],
      [115, 78],
      [150, 85],
      [-150, 86],
      [-110, 84],
      [-93, 78],
      [-90, 70],
      [-70, 70],
      [-65, 78],
      [-30, 85],
      [30, 86],
      [70, 84],
      [87, 78],
      [90, 70],
    ]);
    expect(geometryFaults(swath)).toEqual([]);
    expect(meet(swath, point(0, 90))).toBe(true);
    expect(meet(swath, point(100, 75))).toBe(true);
    expect(meet(swath, point(10, 70))).toBe(false);
    expect(meet(swath, polygon(parallel(89)))).toBe(true);
  });
});
