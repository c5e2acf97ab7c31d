/** Random filters of CQL2 over the properties of items, as JSON and as text. */
import fc from 'fast-check';
import { box, polygon } from '../../filter/geometry/places.ts';

export type Filter = { op: string; args: unknown[] };

/** Items whose values the filters use, so that each filter matches some of them. */
export function arbitraryCql2(items: readonly Readonly<Record<string, unknown>>[]) {
  const leaf = fc.oneof(
    { weight: 5, arbitrary: arbitraryComparison(items) },
    { weight: 1, arbitrary: arbitraryArea(items) },
  );
  return fc.letrec<{ filter: Filter }>((tie) => ({
    filter: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      leaf,
      fc.record({
        op: fc.constantFrom('and', 'or'),
        args: fc.array(tie('filter'), { minLength: 2, maxLength: 3 }),
      }),
      tie('filter').map((one) => ({ op: 'not', args: [one] })),
    ),
  })).filter;
}

const comparisons = ['=', '<>', '<', '<=', '>', '>='] as const;

/** Properties without an order. */
const isUnordered = (name: string) =>
  ['platform', 'constellation', 'grid:code', 'sat:orbit_state'].includes(name);

function arbitraryComparison(
  items: readonly Readonly<Record<string, unknown>>[],
): fc.Arbitrary<Filter> {
  const properties = items.flatMap((item) =>
    Object.entries(Object(item.properties)).filter(([, value]) => typeof value !== 'object'),
  );
  const names = [...new Set(properties.map(([name]) => name))].filter(
    (name) => !name.startsWith('sar:frequency'),
  );
  return fc.constantFrom(...names).chain((name) => {
    const values = properties.filter(([one]) => one === name).map(([, value]) => value);
    const value = fc.constantFrom(...values).map(literalOf);
    const property = { property: name };
    return fc.oneof(
      fc.record({
        op: fc.constantFrom(...(isUnordered(name) ? comparisons.slice(0, 2) : comparisons)),
        args: value.map((one): unknown[] => [property, one]),
      }),
      fc.record({
        op: fc.constant('in'),
        args: fc
          .array(value, { minLength: 2, maxLength: 3 })
          .map((list): unknown[] => [property, list]),
      }),
      fc.constant({ op: 'isNull', args: [property] as unknown[] }),
      ...(isUnordered(name)
        ? []
        : [
            fc.record({
              op: fc.constant('between'),
              args: fc.tuple(value, value).map((ends): unknown[] => [property, ...ends]),
            }),
          ]),
      ...(name === 'title' ? [arbitraryPattern(values.map(String))] : []),
    );
  });
}

function literalOf(value: unknown): unknown {
  // The other implementation rounds longer numbers differently.
  if (typeof value === 'number') return Number(value.toPrecision(15));
  const isTime = typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value);
  return isTime ? { timestamp: value } : value;
}

function arbitraryPattern(names: readonly string[]): fc.Arbitrary<Filter> {
  const escaped = (text: string) => text.replaceAll(/[%_\\]/g, '\\$&');
  return fc
    .tuple(fc.constantFrom(...names), fc.nat(8), fc.integer({ min: 1, max: 12 }))
    .chain(([name, start, length]) =>
      fc.constantFrom(
        `${escaped(name.slice(0, length))}%`,
        `%${escaped(name.slice(-length))}`,
        `%${escaped(name.slice(start, start + length))}%`,
        escaped(name),
        `${escaped(name.slice(0, start))}_${escaped(name.slice(start + 1))}`,
        `%${escaped(name.slice(start, start + 3))}%_${escaped(name.slice(-length))}`,
      ),
    )
    .map((pattern) => ({ op: 'like', args: [{ property: 'title' }, pattern] }));
}

function arbitraryArea(items: readonly Readonly<Record<string, unknown>>[]): fc.Arbitrary<Filter> {
  const boxes = items.flatMap(({ bbox }) => (Array.isArray(bbox) ? [bbox.map(Number)] : []));
  const side = fc.double({ min: 0.01, max: 10, noNaN: true });
  return fc.tuple(fc.constantFrom([0, 0], ...boxes), side).map(([[x = 0, y = 0], width]) => {
    const [west, south] = [Math.max(-170, x - width / 2), Math.max(-80, y - width / 2)];
    const area = box(west, south, Math.min(170, west + width), Math.min(80, south + width));
    return { op: 's_intersects', args: [{ property: 'geometry' }, polygon(area)] };
  });
}

/** Writes a filter as CQL2 text. */
export function cql2Text({ op, args }: Filter): string {
  const texts = args.map(operandText);
  const [left = '', right = '', last = ''] = texts;
  if (op === 'and' || op === 'or')
    return texts.map((one) => `(${one})`).join(` ${op.toUpperCase()} `);
  if (op === 'not') return `NOT (${left})`;
  if (op === 'isNull') return `${left} IS NULL`;
  if (op === 'between') return `${left} BETWEEN ${right} AND ${last}`;
  if (op === 's_intersects') return `S_INTERSECTS(${texts.join(', ')})`;
  return `${left} ${op.toUpperCase()} ${right}`;
}

function operandText(value: unknown): string {
  if (Array.isArray(value)) return `(${value.map(operandText).join(', ')})`;
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`;
  if (typeof value !== 'object' || value === null) return String(value).toUpperCase();
  if ('op' in value) return cql2Text(value as Filter);
  if ('property' in value) return String(value.property);
  if ('timestamp' in value) return `TIMESTAMP('${value.timestamp}')`;
  const rings: number[][][] = Object(value).coordinates;
  const ringText = (ring: number[][]) => `(${ring.map((one) => one.join(' ')).join(', ')})`;
  return `POLYGON(${rings.map(ringText).join(', ')})`;
}
