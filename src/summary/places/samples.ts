/**
 * Places that stand for a footprint: along parallels, evenly, each with the part of the area that it
 * stands for. The parallels are cut with the footprint's edges, so that a narrow one has places inside
 * as well as a wide one.
 */
import type { Position } from '../../domain/geometry.ts';
import { crossingsAt, type Footprint, type Part } from './footprint.ts';
import { degreeKm, radiansOf } from './globe.ts';

export interface Sample {
  position: Position;
  /** In units of its own; compare with the sum of all. */
  weight: number;
}

/** How many there are, roughly; a shape in many pieces has more. */
const target = 60;

const rowsMin = 5;
const rowsMax = 60;
/** Rows are laid closer, up to these, where none has met the footprint. */
const rowsAtLast = 300;
/** A tenth of a millimetre: what is less comes from rounding. */
const widthMin = 1e-9;
/** Of what the rows cut out, the widest pieces. */
const piecesMax = 300;

interface Piece {
  latitude: number;
  west: number;
  east: number;
  /** On the ground, in degrees of latitude. */
  width: number;
}

/** Never empty. What has no inside is told by its corners, and places between them. */
export function samplesOf(footprint: Footprint, areaSquareKm: number): Sample[] {
  const { points } = footprint;
  if (points.length > 0) return points.map((position) => ({ position, weight: 1 }));
  const pieces = piecesOf(footprint.parts, areaSquareKm);
  if (pieces.length === 0) return alongEdges(footprint.parts);
  const sum = pieces.reduce((total, { width }) => total + width, 0);
  return pieces.flatMap(({ latitude, west, east, width }) => {
    const count = Math.max(1, Math.round((target * width) / sum));
    return Array.from({ length: count }, (_, i): Sample => {
      const longitude = west + ((i + 0.5) / count) * (east - west);
      return { position: [longitude, latitude], weight: width / count };
    });
  });
}

function piecesOf(parts: readonly Part[], areaSquareKm: number): Piece[] {
  const south = Math.min(...parts.map((part) => part.south));
  const north = Math.max(...parts.map((part) => part.north));
  const stepKm = Math.sqrt(areaSquareKm / target);
  const wanted = Math.ceil(((north - south) * degreeKm) / stepKm);
  let rows = Math.min(rowsMax, Math.max(rowsMin, Number.isFinite(wanted) ? wanted : rowsMin));
  for (; rows <= rowsAtLast; rows *= 4) {
    const step = (north - south) / rows;
    const pieces = Array.from({ length: rows }, (_, i) => south + (i + 0.5) * step)
      .flatMap((latitude) => parts.flatMap((part) => piecesAt(part, latitude)))
      .filter(({ width }) => width > widthMin);
    if (pieces.length > piecesMax) pieces.sort((a, b) => b.width - a.width).splice(piecesMax);
    if (pieces.length > 0) return pieces;
  }
  return [];
}

function piecesAt(part: Part, latitude: number): Piece[] {
  if (latitude < part.south || latitude > part.north) return [];
  const crossings = crossingsAt(part, latitude).sort((a, b) => a - b);
  const pieces: Piece[] = [];
  for (let i = 1; i < crossings.length; i += 2) {
    const [west = 0, east = 0] = [crossings[i - 1], crossings[i]];
    pieces.push({ latitude, west, east, width: (east - west) * Math.cos(radiansOf(latitude)) });
  }
  return pieces;
}

function alongEdges(parts: readonly Part[]): Sample[] {
  const corners = parts.flatMap(({ rings }) => rings[0] ?? []);
  const samples: Sample[] = [];
  for (const { rings } of parts) {
    const ring = rings[0] ?? [];
    const between = Math.ceil(target / Math.max(1, corners.length));
    for (const [i, [x, y]] of ring.entries()) {
      const [nextX, nextY] = ring[i + 1] ?? [x, y];
      for (let k = 0; k < (i + 1 < ring.length ? between : 1); k += 1) {
        const [right, up] = [((nextX - x) * k) / between, ((nextY - y) * k) / between];
        samples.push({ position: [x + right, y + up], weight: 1 });
      }
    }
  }
  const every = Math.ceil(samples.length / (2 * target));
  return samples.filter((_, i) => i % every === 0);
}
