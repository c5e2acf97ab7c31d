/** Projections of the map, and the colours of its footprints. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { colouringOf, type Footprint } from '../../../src/features/map/browser/colours.ts';
import { type Projection, projections } from '../../../src/features/map/browser/projection.ts';
import { collectionGroups } from '../../../src/filter/fields.ts';

const arctic = named('arctic');

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

  it('keeps angles: a small square at 70 degrees has equal sides', () => {
    const at = (x: number, y: number) => arctic.project([x, y]);
    const [[x0, y0], [x1, y1], [x2, y2]] = [at(40, 70), at(40.01, 70), at(40, 70.01)];
    const east = Math.hypot(x1 - x0, y1 - y0) / Math.cos((70 * Math.PI) / 180);
    expect(east).toBeCloseTo(Math.hypot(x2 - x0, y2 - y0), 4);
  });
});

describe('the colour of a footprint', () => {
  const nowMs = Date.parse('2026-11-20T12:00:00Z');
  const labelOf = (name: string, changes: Partial<Footprint>) => {
    const { classes, classOf } = colouringOf(name, collectionGroups);
    return classes[classOf({ ...footprint, ...changes }, nowMs)]?.label;
  };

  it.each([
    ['collection', { collection: 'SENTINEL-5P' }, 'SENTINEL-5P'],
    ['collection', { collection: 'LANDSAT-8' }, 'LANDSAT'],
    ['collection', { collection: null }, 'other'],
    ['cloud', { cloudCoverPercent: 0 }, 'less than 10 %'],
    ['cloud', { cloudCoverPercent: 10 }, '10 % to 20 %'],
    ['cloud', { cloudCoverPercent: null }, 'not known'],
    ['age', { sensingStart: '2026-11-01T10:00:00Z' }, '3 d and more'],
    ['age', { sensingStart: null }, 'not known'],
    ['delay', { publicationDate: '2026-11-20T11:58:30Z' }, '60 s to 2 min'],
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
