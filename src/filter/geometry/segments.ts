/** Whether two straight lines meet, without any rounding. */
import { orient2d } from 'robust-predicates';

/**
 * On which side of the line from (x1, y1) to (x2, y2) a place lies: positive to the right of it,
 * negative to the left, 0 exactly on it.
 */
export function sideOf(
  x1: number,
  y1: number,
  x2: number,
  y2: number,
  x: number,
  y: number,
): number {
  return orient2d(x1, y1, x2, y2, x, y);
}

/**
 * Whether edge `i` of one list (x1, y1, x2, y2, …) and edge `j` of another, moved east by `shift`, have a
 * place in common; their ends belong to them.
 */
export function edgesMeet(
  a: Float64Array,
  i: number,
  b: Float64Array,
  j: number,
  shift: number,
): boolean {
  const [ax, ay, bx, by] = [a[i] ?? 0, a[i + 1] ?? 0, a[i + 2] ?? 0, a[i + 3] ?? 0];
  const cx = (b[j] ?? 0) + shift;
  const cy = b[j + 1] ?? 0;
  const dx = (b[j + 2] ?? 0) + shift;
  const dy = b[j + 3] ?? 0;
  if (ax < cx && ax < dx && bx < cx && bx < dx) return false;
  if (ax > cx && ax > dx && bx > cx && bx > dx) return false;
  if (ay < cy && ay < dy && by < cy && by < dy) return false;
  if (ay > cy && ay > dy && by > cy && by > dy) return false;
  // Boxes that overlap, and neither edge wholly on one side of the other: they meet, even in one line.
  const c = orient2d(ax, ay, bx, by, cx, cy);
  const d = orient2d(ax, ay, bx, by, dx, dy);
  if ((c > 0 && d > 0) || (c < 0 && d < 0)) return false;
  const first = orient2d(cx, cy, dx, dy, ax, ay);
  const second = orient2d(cx, cy, dx, dy, bx, by);
  return !((first > 0 && second > 0) || (first < 0 && second < 0));
}
