/** A product of which only the footprint is known: enough for a question about its place. */
import type { Geometry } from '../../domain/geometry.ts';
import { type Shape, toShape } from '../../filter/geometry/shape.ts';
import type { ProductView } from '../../filter/product-view.ts';

/** `stored` is the geometry as the index keeps it (product-search.ts); null for a product without one. */
export function footprintView(stored: string | null): ProductView {
  const geometry = stored === null ? null : (JSON.parse(stored) as Geometry);
  let shape: Shape | null | undefined;
  return {
    text: () => null,
    dateUs: () => null,
    online: null,
    attribute: () => null,
    geometry: () => geometry,
    footprint: () => {
      shape ??= geometry === null ? null : toShape(geometry);
      return shape;
    },
  };
}
