/** Checks the place of a condition: its reference system, its rings, its degrees. */
import type { IntersectsNode } from '../../domain/filter-tree.ts';
import type { Geometry, Position, Ring } from '../../domain/geometry.ts';
import type { Span } from '../finding.ts';
import { geometryFaults } from '../geometry/faults.ts';
import type { Findings } from './findings.ts';

const earth = 4326;

export function checkIntersects(findings: Findings, node: IntersectsNode): void {
  const { srid, geometry } = node;
  if (srid !== earth) {
    const message = `The reference system is ${srid}; the catalogue takes EPSG:4326 alone.`;
    const hint = 'Give longitude and latitude in degrees of WGS 84, and write SRID=4326.';
    const fault = { code: 'unknown-reference-system', message, hint } as const;
    findings.error(findings.spanOf(node, 'srid'), fault);
    // Whether numbers of another system lie on the globe cannot be said.
    return;
  }
  const faults = geometryFaults(geometry, findings.effort);
  for (const { code: fault, message, at } of faults) {
    const swapped = at !== undefined && looksSwapped(at);
    const hint = swapped ? { hint: 'Longitude comes first, then latitude.' } : {};
    const code = fault === 'too-intricate' ? fault : 'invalid-geometry';
    findings.error(spanOf(findings, geometry, at), { code, message, ...hint });
  }
  for (const ring of ringsOf(geometry)) warnWideEdges(findings, ring);
}

/** The place of a position; of the whole geometry when none is named. */
function spanOf(findings: Findings, geometry: Geometry, at: Position | undefined): Span {
  return findings.spanOfObject(at ?? geometry);
}

/** A latitude beyond the poles beside a longitude that could be one. */
function looksSwapped([longitude, latitude]: Position): boolean {
  return Math.abs(latitude) > 90 && Math.abs(latitude) <= 180 && Math.abs(longitude) <= 90;
}

function ringsOf(geometry: Geometry): readonly Ring[] {
  if (geometry.type === 'Polygon') return geometry.coordinates;
  return geometry.type === 'MultiPolygon' ? geometry.coordinates.flat() : [];
}

/** An edge round half the globe or more is taken the short way; one all round stays as written. */
function warnWideEdges(findings: Findings, ring: Ring): void {
  for (const [i, to] of ring.entries()) {
    const from = ring[i - 1];
    if (from === undefined) continue;
    const width = Math.abs(to[0] - from[0]);
    if (width <= 180 || width >= 360) continue;
    const span = {
      start: findings.spanOfObject(from).start,
      end: findings.spanOfObject(to).end,
    };
    const degrees = Number(width.toFixed(4));
    const message = `This edge spans ${degrees} degrees and is taken the short way, across the antimeridian.`;
    const hint = 'Put a point between, if you mean the long way.';
    findings.warn(span, { code: 'wide-edge', message, hint });
  }
}
