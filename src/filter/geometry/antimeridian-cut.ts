/** Cuts polygons along the antimeridian, so that no part of them crosses it (RFC 7946, 3.1.9). */
import type { Position, Ring, Rings } from '../../domain/geometry.ts';
import { joinChains } from './chains.ts';
import { enclosedPole } from './outline.ts';
import { clampedLatitude, isClosed, type UnwrappedRing, unwrapRing } from './unwrap.ts';

/** What a cut leaves: rings that were not cut, in their order, and rings made of what was. */
interface CutRings {
  readonly whole: readonly Ring[];
  readonly pieces: readonly Ring[];
}

/**
 * The rings of a polygon within -180 to 180 degrees, all closed. Pieces have sides along the
 * antimeridian where the cut was, and along a pole that the polygon goes round. Degrees stay as
 * written wherever they can.
 */
export function cutRings(rings: Rings): CutRings {
  const whole: Ring[] = [];
  const chains: Position[][] = [];
  const poles = { north: false, south: false };
  for (const ring of rings) {
    const unwrapped = unwrapRing(ring);
    const pole = enclosedPole(unwrapped);
    if (pole !== null) poles[pole] = !poles[pole];
    const parts = partsOf(ring, unwrapped);
    const [first, last] = [parts[0], parts.at(-1)];
    if (first === undefined || last === undefined) continue;
    if (first === last) whole.push(first);
    // The ring began in the middle of a chain.
    else
      for (const part of [[...last, ...first.slice(1)], ...parts.slice(1, -1)]) chains.push(part);
  }
  if (poles.north) chains.push(poleSide(90));
  if (poles.south) chains.push(poleSide(-90));
  return { whole, pieces: joinChains(chains) };
}

function poleSide(latitude: number): Position[] {
  return [
    [180, latitude],
    [-180, latitude],
  ];
}

/** A ring's positions, a new part beginning wherever the antimeridian is crossed. */
function partsOf(ring: Ring, { xs, ys }: UnwrappedRing): Position[][] {
  const positions = isClosed(ring) ? ring : [...ring, ...ring.slice(0, 1)];
  const parts: Position[][] = [];
  let part: Position[] = [];
  for (const [i, [longitude, latitude]] of positions.entries()) {
    const x = xs[i] ?? 0;
    const y = clampedLatitude(latitude);
    const strip = stripOf(x);
    if (i > 0) {
      const [fromX, fromY] = [xs[i - 1] ?? 0, ys[i - 1] ?? 0];
      for (const line of linesBetween(stripOf(fromX), strip)) {
        const cutY = x === line ? y : fromX === line ? fromY : heightAt(line, fromX, fromY, x, y);
        const leaving = fromX < x ? 180 : -180;
        add(part, [leaving, cutY]);
        parts.push(part);
        part = [[-leaving, cutY]];
      }
    }
    const within = x - 360 * strip;
    // What is written may be off by turns, and is better than what has been rounded.
    add(part, [Math.abs(longitude - within) < 1 ? longitude : within, y]);
  }
  if (part.length > 0) parts.push(part);
  return parts;
}

/** Strips between antimeridians are counted eastwards, each with its western end only. */
function stripOf(x: number): number {
  return Math.floor((x + 180) / 360);
}

/** The antimeridians on the way from one strip to another. */
function linesBetween(from: number, to: number): number[] {
  const lines: number[] = [];
  for (let strip = from; strip < to; strip += 1) lines.push(360 * strip + 180);
  for (let strip = from; strip > to; strip -= 1) lines.push(360 * strip - 180);
  return lines;
}

function heightAt(line: number, x1: number, y1: number, x2: number, y2: number): number {
  return y1 + ((y2 - y1) * (line - x1)) / (x2 - x1);
}

function add(part: Position[], position: Position): void {
  const last = part.at(-1);
  if (last?.[0] !== position[0] || last[1] !== position[1]) part.push(position);
}
