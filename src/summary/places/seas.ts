/**
 * Which sea or ocean a place lies in: the smallest whose outline holds it. The outlines, seas.json,
 * are this program's own, after the usual geographic limits, and rough: they run over land, as the countries
 * decide what is land.
 */

import whichPolygon from 'which-polygon';
import type { Position } from '../../domain/filter-tree.ts';
import { ringAreaKm2, wrapped } from './globe.ts';
import data from './seas.json' with { type: 'json' };

interface Sea {
  name: string;
  /** Longitudes may run on beyond 180 degrees. */
  outline: Position[];
}

/** The rest of the globe. */
const pacific = { north: 'North Pacific Ocean', south: 'South Pacific Ocean' };

/** Half the width of the gaps that the rough outlines leave, and a little more. */
const gapDegrees = 0.5;

/** Reads the outlines. */
export function openSeas() {
  const seas = data.outlines.map(parseSea);
  const query = whichPolygon<{ name: string; size: number }>({
    type: 'FeatureCollection',
    features: seas.flatMap(({ name, outline }) => {
      const size = ringAreaKm2(outline);
      return turnsOf(outline).map((ring) => ({
        type: 'Feature' as const,
        properties: { name, size },
        geometry: { type: 'Polygon' as const, coordinates: [ring] },
      }));
    }),
  });
  const smallestAt = ([longitude, latitude]: Position) => {
    const found = query([wrapped(longitude), latitude], true) ?? [];
    const [smallest] = found.sort((a, b) => a.size - b.size);
    return smallest?.name ?? (latitude < 0 ? pacific.south : pacific.north);
  };
  return {
    /** The English name. On land too, where it means nothing. The place lies within 180 degrees. */
    seaAt: (place: Position): string => {
      const name = smallestAt(place);
      return name.endsWith(' Ocean') ? withoutGap(name, place, smallestAt) : name;
    },
    names: [...new Set([...seas.map(({ name }) => name), pacific.north, pacific.south])],
  };
}

/** The ocean, but where it shows between the outlines of seas: what most places round about are. */
function withoutGap(
  ocean: string,
  [longitude, latitude]: Position,
  nameAt: (place: Position) => string,
): string {
  const counts = new Map<string, number>();
  for (let eighth = 0; eighth < 8; eighth += 1) {
    const [x, y] = [Math.cos((eighth * Math.PI) / 4), Math.sin((eighth * Math.PI) / 4)];
    const name = nameAt([longitude + gapDegrees * x, latitude + gapDegrees * y]);
    if (!name.endsWith(' Ocean')) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const named = [...counts].sort(([, a], [, b]) => b - a);
  const sum = named.reduce((total, [, count]) => total + count, 0);
  // At the straight edge of a sea it is four at most.
  return sum > 4 ? (named[0]?.[0] ?? ocean) : ocean;
}

/** Reads `Name: x y, x y, …`, without the corner that closes the outline. */
function parseSea(text: string): Sea {
  const [name = '', corners = ''] = text.split(':');
  const outline = corners.split(',').map((corner): Position => {
    const [x = Number.NaN, y = Number.NaN] = corner.trim().split(' ').map(Number);
    return [x, y];
  });
  return { name, outline };
}

/** The closed ring, and the same on the other side where it reaches beyond the antimeridian. */
function turnsOf(outline: readonly Position[]): [number, number][][] {
  const closed = [...outline, ...outline.slice(0, 1)];
  const moved = (turn: number) => closed.map(([x, y]): [number, number] => [x + turn, y]);
  return outline.some(([x]) => x > 180) ? [moved(0), moved(-360)] : [moved(0)];
}
