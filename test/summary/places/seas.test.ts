/** Every place at sea has a name, and the places of the reference have the right one. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openCountries } from '../../../src/summary/places/countries.ts';
import { openSeas } from '../../../src/summary/places/seas.ts';
import { seaPoints } from './sea-points.ts';

const seas = openSeas();
const countries = openCountries();

describe('the seas', () => {
  it('hold the places that are known to lie in them', () => {
    expect(seaPoints.length).toBeGreaterThan(300);
    const wrong = seaPoints
      .map(({ name, place }) => ({
        name,
        place,
        land: countries.countryAt(place),
        sea: seas.seaAt(place),
      }))
      .filter(({ name, land, sea }) => land !== null || sea !== name);
    expect(wrong).toEqual([]);
  });

  it('are more than 90 beside the oceans, each named once', () => {
    expect(new Set(seas.names).size).toBe(seas.names.length);
    expect(seas.names.filter((name) => !name.endsWith(' Ocean')).length).toBeGreaterThan(90);
    expect(seas.names.filter((name) => name.endsWith(' Ocean')).sort()).toEqual([
      'Arctic Ocean',
      'Indian Ocean',
      'North Atlantic Ocean',
      'North Pacific Ocean',
      'South Atlantic Ocean',
      'South Pacific Ocean',
      'Southern Ocean',
    ]);
    for (const { name } of seaPoints) expect(seas.names).toContain(name);
  });

  it('leave no place of the globe without a name', () => {
    const names = new Set(seas.names);
    const degrees = (most: number) => fc.double({ min: -most, max: most, noNaN: true });
    fc.assert(
      fc.property(degrees(180), degrees(90), (longitude, latitude) => {
        expect(names).toContain(seas.seaAt([longitude, latitude]));
      }),
      {
        numRuns: 10_000,
        examples: [
          [180, 0],
          [-180, 0],
          [180, 60],
          [0, 90],
          [0, -90],
          [-180, -90],
        ],
      },
    );
  });

  it('have outlines without a slip: no ocean shows far away from where it is', () => {
    const wrong: unknown[] = [];
    for (let x = -179.75; x < 180; x += 1) {
      for (let y = -79.75; y < 82; y += 1) {
        if (countries.countryAt([x, y]) !== null) continue;
        const sea = seas.seaAt([x, y]);
        if (!isPossible(sea, x, y)) wrong.push({ sea, x, y });
      }
    }
    expect(wrong).toEqual([]);
  });

  it('are told where their rough outlines do not quite meet', () => {
    expect(seas.seaAt([115.875, -3.875])).toBe('Java Sea');
    expect(seas.seaAt([79.875, 8.875])).toBe('Bay of Bengal');
    expect(seas.seaAt([10.375, 56.125])).toBe('Kattegat');
    expect(seas.seaAt([121.125, -5.375])).toBe('Banda Sea');
  });

  it('are the same on both sides of the antimeridian', () => {
    for (const y of [-70, -40, -10, 20, 53, 60, 69.5, 85]) {
      expect(seas.seaAt([180, y])).toBe(seas.seaAt([-180, y]));
      expect(seas.seaAt([179.9, y])).toBe(seas.seaAt([-179.9, y]));
    }
  });
});

/** Roughly where the oceans are: a box round each but the Arctic and the Southern, seen from 20 degrees east. */
function isPossible(sea: string, x: number, y: number): boolean {
  const isEast = x >= 20 && x < 147;
  switch (sea) {
    case 'North Pacific Ocean':
      return y >= 0 && y < 60 && !(x > -77 && x < 120);
    case 'South Pacific Ocean':
      return y <= 0 && y >= -60 && !(x > -66 && x < 131);
    case 'Indian Ocean':
      return isEast && y < 20 && y >= -60;
    case 'North Atlantic Ocean':
      return !isEast && x > -85 && y >= 0 && y < 66;
    case 'South Atlantic Ocean':
      return !isEast && x > -72 && y <= 0 && y >= -60;
    case 'Southern Ocean':
      return y <= -60;
    case 'Arctic Ocean':
      return y >= 66;
    default:
      return true;
  }
}
