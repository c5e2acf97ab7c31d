/** Shapes that somebody may send to keep the program busy: many parts, long edges, no inside, no city. */
import type { Geometry, Position, Ring } from '../../../src/domain/filter-tree.ts';

function polygon(...rings: Ring[]): Geometry {
  return { type: 'Polygon', coordinates: rings };
}

function polygons(count: number, of: (index: number) => Ring): Geometry {
  return { type: 'MultiPolygon', coordinates: Array.from({ length: count }, (_, i) => [of(i)]) };
}

function closed(count: number, of: (index: number) => Position): Ring {
  const corners = Array.from({ length: count - 1 }, (_, index) => of(index));
  return [...corners, ...corners.slice(0, 1)];
}

function box(west: number, south: number, width: number, height: number): Ring {
  const [east, north] = [west + width, south + height];
  return closed(5, (i) => [i === 1 || i === 2 ? east : west, i > 1 ? north : south]);
}

/** From pole to pole, and out and back on nearly the same way. */
function spiral(count: number): Ring {
  const half = Math.floor(count / 2);
  const at = (i: number, off: number): Position => [
    (Math.cos(i / 8) * 170 * i) / half + off,
    (Math.sin(i / 8) * 85 * i) / half + off,
  ];
  return closed(count, (i) => (i < half ? at(i, 0) : at(count - 1 - i, 1e-7)));
}

/** By name, each of about so many corners. */
export function hostileShapes(corners: number): Readonly<Record<string, Geometry>> {
  const fifth = Math.floor(corners / 5);
  const spread = (i: number): Position => [((i * 37) % 350) - 175, ((i * 17) % 160) - 80];
  const rising = (i: number) => -85 + (170 * i) / corners;
  const holes = Array.from({ length: fifth - 1 }, (_, i) => box(...spread(i), 2, 2));
  return {
    'boxes of the size of the world': polygons(fifth, (i) => box(-179, -89, 358, 178 - i / 1e3)),
    'small boxes everywhere': polygons(fifth, (i) => box(...spread(i), 1, 1)),
    'boxes across the antimeridian': polygons(fifth, (i) => box(178, spread(i)[1], 4, 1)),
    'a star': polygon(
      closed(corners, (i) => {
        const angle = i * Math.PI * (1 - 1 / corners);
        return [170 * Math.cos(angle), 85 * Math.sin(angle)];
      }),
    ),
    'a zigzag to and fro': polygon(closed(corners, (i) => [i % 2 ? 170 : -170, rising(i)])),
    'a zigzag up and down': polygon(
      closed(corners, (i) => [-179 + (358 * i) / corners, i % 2 ? 85 : -85]),
    ),
    'a zigzag across the antimeridian': polygon(
      closed(corners, (i) => [i % 2 ? 185 : 175, rising(i)]),
    ),
    'a zigzag with holes': polygon(
      closed(Math.floor(corners / 2), (i) => [i % 2 ? 185 : 175, rising(2 * i)]),
      ...holes.slice(0, Math.floor(fifth / 2)),
    ),
    'a spiral without an inside': polygon(spiral(corners)),
    'a line to and fro': polygon(closed(corners, (i) => [i % 2 ? -170 : 170, 50])),
    'a world of holes': polygon(box(-179, -89, 358, 178), ...holes),
    'corners without order': polygon(
      closed(corners, (i) => [
        (((i * 7919) % 3571) / 3571) * 340 - 170,
        (((i * 104_729) % 3253) / 3253) * 170 - 85,
      ]),
    ),
    'points everywhere': {
      type: 'MultiPoint',
      coordinates: Array.from({ length: corners }, (_, i) => spread(i)),
    },
    'points at sea': {
      type: 'MultiPoint',
      coordinates: Array.from({ length: corners }, (_, i): Position => [-30 + i / 1e4, 30]),
    },
  };
}
