/** The footprint on the page of a product, with links to the products around it. */
import { isAppError } from '../../domain/app-error.ts';
import type { AnyGeometry } from '../../domain/filter-tree.ts';
import { productNameText } from '../../domain/product-cells.ts';
import type { FoundProduct, ProductRow } from '../../domain/products.ts';
import { hourUs } from '../../domain/time-units.ts';
import { intersects } from '../../filter/builder.ts';
import { boxesOf, centreOf, toShape } from '../../filter/geometry/shape.ts';
import { printFilter } from '../../filter/print.ts';
import { placeOf } from '../../places/places.ts';
import { emptyState, facts, type Html, html, panel } from './markup.ts';
import type { PageRequest } from './page-route.ts';
import { isoMinute, linkTo, productLink } from './page-state.ts';
import { smallMap } from './small-map.ts';

/** Renders the footprint; an empty state without one. */
export function footprintPanel(
  { row, footprint }: FoundProduct,
  { assets, nowUs }: PageRequest,
): Html {
  if (!footprint) return panel('Footprint', emptyState('The record has no footprint.'));
  const item = {
    title: productNameText(row),
    href: productLink(row.productId),
    footprint,
  };
  const map = smallMap([item], { assets, fit: true, label: 'Footprint of the product' });
  const links = neighbourLinks(row, footprint, nowUs);
  return panel('Footprint', html`${map}${facts([['place', placeOf(footprint)]])}${links}`);
}

/** Links to the products around, and to this one on the map; without a filter for a footprint that none may contain. */
function neighbourLinks(row: ProductRow, footprint: AnyGeometry, nowUs: number): Html {
  const filter = areaFilter(footprint);
  const untilUs = row.receivedAtUs + neighbourPeriodUs;
  const map = linkTo('/map', {
    filter,
    since: isoMinute(row.receivedAtUs - neighbourPeriodUs),
    until: untilUs < nowUs ? isoMinute(untilUs) : undefined,
    view: viewOf(footprint),
    selected: row.productId,
  });
  if (filter === undefined) return html`<p><a href="${map}">Show on the map</a></p>`;
  return html`<p><a href="${map}">Neighbours on the map</a> · <a href="${linkTo('/products', { filter })}">as a list</a></p>`;
}

/** Neighbours are received so long before and after a product. */
const neighbourPeriodUs = 12 * hourUs;

function areaFilter(footprint: AnyGeometry): string | undefined {
  try {
    return printFilter(intersects(footprint).tree);
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

/** Returns the view of the map in which a footprint is about 300 pixels wide or high. */
function viewOf(footprint: AnyGeometry): string | undefined {
  const centre = centreOf(footprint);
  if (centre === null) return undefined;
  const boxes = boxesOf(toShape(footprint));
  const width = boxes.reduce((sum, { west, east }) => sum + east - west, 0);
  const height = Math.max(0, ...boxes.map(({ south, north }) => north - south));
  const zoom = Math.log2((360 * 300) / (256 * Math.max(width, height, 0.5)));
  return [...centre, Math.max(0, zoom)].map((value) => Number(value.toFixed(2))).join(',');
}
