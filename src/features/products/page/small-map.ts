/** A small map of footprints as SVG, drawn by the server. */

import type { Assets } from '../../../core/page/assets.ts';
import { round } from '../../../core/page/charts.ts';
import { type Html, html } from '../../../core/page/markup.ts';
import type { AnyGeometry, Position } from '../../../filter/filter-tree.ts';
import { partsOf, positionsOf } from '../../../filter/geometry/ring.ts';

export interface MapItem {
  title: string;
  href: string;
  /** As a product of the index has it: GeoJSON. */
  footprint: AnyGeometry | null | undefined;
}

/** Draws footprints in plate carrée. With `fit`, the map shows only the area around them. */
export function smallMap(
  items: readonly MapItem[],
  { assets, fit = false, label }: { assets: Assets; fit?: boolean; label: string },
): Html {
  const shapes = items.flatMap(({ footprint, ...item }) =>
    footprint ? [{ ...item, geometry: footprint }] : [],
  );
  const view = fit ? areaOf(shapes.map(({ geometry }) => geometry)) : '-180 -90 360 180';
  return html`<svg class="small-map" viewBox="${view}" role="group" aria-label="${label}">
<use class="land" href="${assets.urlOf('land.svg')}#land"/>
${shapes.map(({ geometry, href, title }) => html`<a href="${href}" tabindex="-1"><title>${title}</title>${shapeOf(geometry)}</a>`)}
</svg>`;
}

function shapeOf(geometry: AnyGeometry): Html {
  const { points, lines, polygons } = partsOf(geometry);
  const outlines = [...polygons.flat().map((ring) => `${pathOf(ring)}Z`), ...lines.map(pathOf)];
  return html`${points.map(([x, y]) => html`<circle class="footprint" cx="${round(x)}" cy="${round(-y)}" r="1"/>`)}
${outlines.length > 0 && html`<path class="footprint" fill-rule="evenodd" d="${outlines.join('')}"/>`}`;
}

const pathOf = (positions: readonly Position[]) =>
  `M${positions.map(([x, y]) => `${hundredth(x)},${hundredth(-y)}`).join(' ')}`;

const hundredth = (degrees: number) => Math.round(degrees * 100) / 100;

/** Returns the view around geometries, twice as wide as high, at least 40 degrees wide. */
function areaOf(geometries: readonly AnyGeometry[]): string {
  const positions = geometries.flatMap(positionsOf);
  if (positions.length === 0) return '-180 -90 360 180';
  const xs = positions.map(([x]) => x);
  const ys = positions.map(([, y]) => y);
  const least = (values: readonly number[]) => values.reduce((one, other) => Math.min(one, other));
  const most = (values: readonly number[]) => values.reduce((one, other) => Math.max(one, other));
  const [west, east, south, north] = [least(xs), most(xs), least(ys), most(ys)];
  const width = Math.min(360, Math.max(40, 2.5 * (east - west), 5 * (north - south)));
  const [x, y] = [(west + east) / 2 - width / 2, -(south + north) / 2 - width / 4];
  return `${round(Math.max(-180, Math.min(x, 180 - width)))} ${round(Math.max(-90, Math.min(y, 90 - width / 2)))} ${round(width)} ${round(width / 2)}`;
}
