/** Says where a product lies, in a few characters. */
import { z } from 'zod';

const position = z.tuple([z.number(), z.number()], z.number());
const geometry = z.union([
  z.object({ type: z.literal('Polygon'), coordinates: z.array(z.array(position)) }),
  z.object({ type: z.literal('MultiPolygon'), coordinates: z.array(z.array(z.array(position))) }),
]);
const productSchema = z.looseObject({ GeoFootprint: geometry });

/** The middle of the footprint's first ring, such as `46.2°N 7.1°E`; `no footprint` without one. */
export function placeOf(product: unknown): string {
  const footprint = productSchema.safeParse(product).data?.GeoFootprint;
  const ring =
    footprint?.type === 'Polygon' ? footprint.coordinates[0] : footprint?.coordinates[0]?.[0];
  if (ring === undefined || ring.length === 0) return 'no footprint';
  const middle = (axis: 0 | 1) => {
    const values = ring.map((point) => point[axis]);
    return (Math.min(...values) + Math.max(...values)) / 2;
  };
  const [longitude, latitude] = [middle(0), middle(1)];
  const north = `${Math.abs(latitude).toFixed(1)}°${latitude < 0 ? 'S' : 'N'}`;
  const east = `${Math.abs(longitude).toFixed(1)}°${longitude < 0 ? 'W' : 'E'}`;
  return `${north} ${east}`;
}
