/** A small map of footprints as SVG, drawn by the server. */

import type { Assets } from '../../../core/page/assets.ts';
import { round } from '../../../core/page/charts.ts';
import { age, badge, type Html, html, type TableColumn } from '../../../core/page/markup.ts';
import { productLink } from '../../../core/page/page-state.ts';
import { byteText } from '../../../core/terms/text.ts';
import type { AnyGeometry, Position } from '../../../filter/filter-tree.ts';
import { extentOf, partsOf, positionsOf } from '../../../filter/geometry/ring.ts';
import { productCells, productNameText } from '../../../filter/product-facts.ts';
import type { FoundProduct, ProductRow } from '../../../filter/products.ts';
import { placeOf } from '../places/places.ts';

/** Draws footprints of products in plate carrée. With `fit`, the map shows only the area around them. */
export function smallMap(
  products: readonly Pick<FoundProduct, 'row' | 'footprint'>[],
  { assets, fit = false, label }: { assets: Assets; fit?: boolean; label: string },
): Html {
  const shapes = products.flatMap(({ row, footprint }) => (footprint ? [{ row, footprint }] : []));
  const view = fit ? areaOf(shapes.map(({ footprint }) => footprint)) : '-180 -90 360 180';
  return html`<svg class="small-map" viewBox="${view}" role="group" aria-label="${label}">
<use class="land" href="${assets.urlOf('land.svg')}#land"/>
${shapes.map(({ row, footprint }) => html`<a href="${productLink(row.productId)}" tabindex="-1"><title>${productNameText(row)}</title>${shapeOf(footprint)}</a>`)}
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
  const positions = geometries.flatMap(positionsOf).flat();
  if (positions.length === 0) return '-180 -90 360 180';
  const { west, east, south, north } = extentOf(positions);
  const width = Math.min(360, Math.max(40, 2.5 * (east - west), 5 * (north - south)));
  const within = (least: number, centre: number, size: number) =>
    round(Math.max(least, Math.min(centre - size / 2, -least - size)));
  const [x, y] = [
    within(-180, (west + east) / 2, width),
    within(-90, -(south + north) / 2, width / 2),
  ];
  return `${x} ${y} ${round(width)} ${round(width / 2)}`;
}

/** Links the name of a product to its page. */
export function nameLink(row: Pick<ProductRow, 'productId' | 'productName'>): Html {
  return html`<a class="name" href="${productLink(row.productId)}">${productNameText(row)}</a>`;
}

/** Returns the columns; `first` are columns in front of them. */
export function productColumns(
  nowUs: number,
  first: readonly TableColumn<FoundProduct>[] = [],
): TableColumn<FoundProduct>[] {
  const cells = ({ row }: FoundProduct) => productCells(row, null);
  return [
    ...first,
    { title: 'received', value: ({ row }) => age(row.receivedAtUs, nowUs) },
    {
      title: 'product',
      class: 'product-name',
      value: ({ row }) =>
        html`${nameLink(row)}${row.online === false ? html` ${badge('warn', 'offline')}` : ''}`,
    },
    { title: 'place', value: ({ footprint }) => placeOf(footprint), class: 'place' },
    { title: 'cloud', value: (one) => cells(one).cloud, isNumber: true, class: 'cloud' },
    { title: 'sensed (UTC)', value: (one) => cells(one).sensed, class: 'tight rank-2' },
    { title: 'tile/orbit', value: (one) => cells(one).tile, class: 'tight rank-2' },
    { title: 'type', value: (one) => cells(one).type, class: 'rank-1' },
    { title: 'size', value: ({ row }) => byteText(row.sizeBytes), isNumber: true, class: 'rank-1' },
  ];
}
