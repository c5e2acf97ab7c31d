/** The same question finds the same products by flags, OData, STAC parameters, and CQL2 as text and JSON. */
import { Command } from 'commander';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { addProductFlags, compileFlags } from '../../../src/features/products/flags.ts';
import { collectionId, collectionOfView } from '../../../src/features/stac/collections.ts';
import type { AnyGeometry } from '../../../src/filter/filter-tree.ts';
import { positionsOf } from '../../../src/filter/geometry/ring.ts';
import { productView } from '../../../src/filter/product-view.ts';
import {
  all,
  created,
  generatedRecords,
  openProductContext,
  realRecords,
  type TestRecord,
} from '../../features/products/index-file/product-context.ts';
import { cql2Text, type Filter } from '../../features/stac/arbitrary-cql2.ts';
import { times } from '../../helpers/thorough.ts';
import { openConsole } from './console-context.ts';

/** A condition in each language. */
interface Condition {
  odata: string;
  cql2: Filter;
  /** Absent if there is no such flag or parameter. */
  flags?: string[];
  stac?: Record<string, string>;
}

/** Conditions that all must match, or a combination. */
type Question = Condition & { parts?: Condition[] };

const questions = times(600, 2_000);

it(`${questions} questions find the same products in every way`, async () => {
  const records = [...realRecords(4), ...generatedRecords(8, 11)];
  const { products, index } = await openProductContext();
  await index(...created(...records));
  const { get } = await openConsole({ products });
  const list = async (path: string, sent = {}) => {
    const { status, text, json } = await get(path, sent);
    expect(status, `${path}: ${text}`).toBe(200);
    const items: { Id?: string; id?: string }[] = json.value ?? json.features;
    return items.map(({ Id, id }) => Id ?? id);
  };
  const lean = { fields: '-geometry,-bbox,-links,-assets', limit: '1000' };
  const search = (parameters: Record<string, string>) =>
    list(`/stac/search?${new URLSearchParams({ ...lean, ...parameters })}`);
  const ways = { flags: 0, parameters: 0, matches: 0 };

  const ask = async (question: Question) => {
    const { odata, cql2, parts = [question] } = question;
    const options = new URLSearchParams({ $filter: odata, $select: 'Id', $top: '1000' });
    const expected = await list(`/odata/v1/Products?${options}`);
    ways.matches += expected.length;
    expect(await search({ filter: cql2Text(cql2) })).toEqual(expected);
    const body = JSON.stringify({ filter: cql2, fields: { exclude: ['links'] }, limit: 1000 });
    expect(await list('/stac/search', { method: 'POST', body })).toEqual(expected);
    const flags = parts.map((one) => one.flags);
    if (flags.every((one) => one !== undefined) && isDistinct(flags.map(([name]) => name ?? ''))) {
      const filter = filterOf(flags.flat());
      const found = await all(products.find({ entity: 'Products', filter, records: false }));
      expect(found.map(({ row }) => row.productId)).toEqual(expected);
      ways.flags += 1;
    }
    const given = parts.map((one) => one.stac ?? { filter: cql2Text(one.cql2) });
    if (isDistinct(given.flatMap(Object.keys)) && given.some((one) => !('filter' in one))) {
      expect(await search(Object.assign({}, ...given))).toEqual(expected);
      ways.parameters += 1;
    }
  };
  await fc.assert(fc.asyncProperty(arbitraryQuestion(records), ask), { numRuns: questions });
  expect(ways.matches).toBeGreaterThan(questions);
  expect(ways.flags).toBeGreaterThan(questions / 10);
  expect(ways.parameters).toBeGreaterThan(questions / 10);
}, 120_000);

const isDistinct = (names: readonly string[]) => new Set(names).size === names.length;

const io = { nowUs: () => Date.UTC(2026, 5, 1) * 1_000, env: {}, stderr: { write: () => true } };

/** Compiles flags as the command line does. */
function filterOf(flags: readonly string[]) {
  const command = addProductFlags(new Command(), io).parse(flags, { from: 'user' });
  const readFile = () => {
    throw new Error('No flag names a file.');
  };
  return compileFlags(command.opts(), { ...io, readFile } as never).filter;
}

function arbitraryQuestion(records: readonly TestRecord[]): fc.Arbitrary<Question> {
  const one = arbitraryCondition(records);
  const several = fc.array(one, { minLength: 1, maxLength: 3 });
  return fc.oneof(
    { weight: 3, arbitrary: several.map(allOf) },
    { weight: 1, arbitrary: several.map(anyOf) },
    {
      weight: 1,
      arbitrary: fc.tuple(several, one).map(([terms, other]) => allOf([anyOf(terms), not(other)])),
    },
  );
}

function allOf(parts: Condition[]): Question {
  const odata = parts.map((part) => `(${part.odata})`).join(' and ');
  return { odata, cql2: { op: 'and', args: parts.map(({ cql2 }) => cql2) }, parts };
}

function anyOf(parts: Condition[]): Condition {
  const odata = parts.map((part) => `(${part.odata})`).join(' or ');
  return { odata, cql2: { op: 'or', args: parts.map(({ cql2 }) => cql2) } };
}

/** In OData `not` also finds products without the value; in CQL2 they must be named. */
function not({ odata, cql2 }: Condition): Condition {
  const absent = propertiesOf(cql2).map((property) => ({ op: 'isNull', args: [{ property }] }));
  const denied = { op: 'not', args: [cql2] };
  return { odata: `not (${odata})`, cql2: { op: 'or', args: [denied, ...absent] } };
}

function propertiesOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(propertiesOf);
  const { property, args } = Object(value);
  return property === undefined ? propertiesOf(args ?? []) : [property];
}

const attribute = (kind: string, name: string, operator: string, value: string) =>
  `Attributes/OData.CSC.${kind}Attribute/any(a:a/Name eq '${name}' and a/OData.CSC.${kind}Attribute/Value ${operator} ${value})`;

const equals = (property: string, value: unknown): Filter => ({
  op: '=',
  args: [{ property }, value],
});

const signs = { lt: '<', le: '<=', gt: '>', ge: '>=', eq: '=' } as const;
const operators = fc.constantFrom(...(Object.keys(signs) as (keyof typeof signs)[]));

/** A condition with a value of some record. */
function arbitraryCondition(records: readonly TestRecord[]): fc.Arbitrary<Condition> {
  return fc.constantFrom(...records).chain((record) => {
    const view = productView(record);
    const attributeOf = (name: string) => view.attribute(name)?.value;
    const texts = (name: string, property: string, change: (text: string) => string) => {
      const value = attributeOf(name);
      if (typeof value !== 'string' || value === '') return [];
      const odata = attribute('String', name, 'eq', `'${value}'`);
      return [fc.constant({ odata, cql2: equals(property, change(value)) })];
    };
    const numbers = (kind: string, name: string, property: string) => {
      const value = attributeOf(name);
      if (typeof value !== 'number') return [];
      return [
        operators.map((operator) => ({
          odata: attribute(kind, name, operator, String(value)),
          cql2: { op: signs[operator], args: [{ property }, value] as unknown[] },
        })),
      ];
    };
    return fc.oneof(
      fc.constant(ofCollection(record)),
      ...cloudBelow(attributeOf('cloudCover')),
      ...ofName(view.text('Name')),
      ...during(record.ContentDate, 'ContentDate/Start', 'datetime', '--sensed'),
      ...during({ Start: record.PublicationDate }, 'PublicationDate', 'created', '--published'),
      ...around(view.footprint() === null ? null : view.geometry()),
      fc.constant({
        odata: `Id eq '${record.Id}'`,
        cql2: equals('id', record.Id),
        stac: { ids: record.Id },
      }),
      ...texts('platformShortName', 'constellation', (text) => text.toLowerCase()),
      ...texts('orbitDirection', 'sat:orbit_state', (text) => text.toLowerCase()),
      ...texts('tileId', 'grid:code', (text) => `MGRS-${text}`),
      ...texts('processingLevel', 'processing:level', String),
      ...texts('timeliness', 'catalogue:timeliness', String),
      ...numbers('Double', 'cloudCover', 'eo:cloud_cover'),
      ...numbers('Integer', 'orbitNumber', 'sat:absolute_orbit'),
      ...numbers('Integer', 'relativeOrbitNumber', 'sat:relative_orbit'),
    );
  });
}

function ofCollection(record: TestRecord): Condition {
  const key = collectionOfView(productView(record));
  const id = collectionId(key);
  const { mission, productType } = key;
  const condition = { cql2: equals('collection', id), stac: { collections: id } };
  const typed = `Attributes/OData.CSC.StringAttribute/any(a:a/Name eq 'productType' and a/Value ge '')`;
  const odata = [
    mission === null ? "not (Collection/Name ge '')" : `Collection/Name eq '${mission}'`,
    productType === null
      ? `not ${typed}`
      : attribute('String', 'productType', 'eq', `'${productType}'`),
  ].join(' and ');
  if (mission === null || productType === null) return { ...condition, odata };
  return { ...condition, odata, flags: ['--collection', mission, '--type', productType] };
}

function cloudBelow(value: unknown): fc.Arbitrary<Condition>[] {
  if (typeof value !== 'number' || value <= 0) return [];
  return [
    fc.constant({
      odata: attribute('Double', 'cloudCover', 'lt', String(value)),
      cql2: { op: '<', args: [{ property: 'eo:cloud_cover' }, value] },
      flags: ['--cloud-below', String(value)],
    }),
  ];
}

function ofName(name: string | null): fc.Arbitrary<Condition>[] {
  if (name === null) return [];
  const like = (pattern: string): Filter => ({
    op: 'like',
    args: [{ property: 'title' }, pattern],
  });
  const escaped = (text: string) => text.replaceAll(/[%_\\]/g, '\\$&');
  return [
    fc.integer({ min: 3, max: 12 }).map((length) => {
      const start = name.slice(0, length);
      return {
        odata: `startswith(Name,'${start}')`,
        cql2: like(`${escaped(start)}%`),
        flags: ['--name', `${start}*`],
      };
    }),
    fc.tuple(fc.nat(20), fc.integer({ min: 3, max: 8 })).map(([from, length]) => {
      const part = name.slice(from, from + length);
      return {
        odata: `contains(Name,'${part}')`,
        cql2: like(`%${escaped(part)}%`),
        flags: ['--name', `*${part}*`],
      };
    }),
  ];
}

/** From a time of the record on, for some hours; the flag excludes the end. */
function during(
  dates: unknown,
  field: string,
  property: string,
  flag: string,
): fc.Arbitrary<Condition>[] {
  const startMs = Date.parse(String(Object(dates).Start));
  if (!Number.isFinite(startMs)) return [];
  return [
    fc.integer({ min: 1, max: 2_000 }).map((hours) => {
      const from = new Date(Math.floor(startMs / 60_000) * 60_000).toISOString();
      const until = new Date(Date.parse(from) + hours * 3_600_000).toISOString();
      const at = (op: string, timestamp: string): Filter => ({
        op,
        args: [{ property }, { timestamp }],
      });
      return {
        odata: `${field} ge ${from} and ${field} lt ${until}`,
        cql2: { op: 'and', args: [at('>=', from), at('<', until)] },
        flags: [flag, `${from}..${until}`],
      };
    }),
  ];
}

/** A box around a position of the footprint. */
function around(geometry: AnyGeometry | null): fc.Arbitrary<Condition>[] {
  const [position] = geometry === null ? [] : positionsOf(geometry);
  if (position === undefined) return [];
  const [x, y] = position;
  return [
    fc.double({ min: 0.1, max: 8, noNaN: true }).map((size) => {
      const round = (value: number) => Math.round(value * 1_000) / 1_000;
      const west = round(Math.max(-179, Math.min(170, x - size / 2)));
      const south = round(Math.max(-89, Math.min(80, y - size / 2)));
      const [east, north] = [round(west + size), round(south + size)];
      const ring = [
        [west, south],
        [east, south],
        [east, north],
        [west, north],
        [west, south],
      ];
      const wkt = ring.map((position) => position.join(' ')).join(',');
      const box = [west, south, east, north].join(',');
      return {
        odata: `OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${wkt}))')`,
        cql2: {
          op: 's_intersects',
          args: [{ property: 'geometry' }, { type: 'Polygon', coordinates: [ring] }],
        },
        flags: ['--bbox', box],
        stac: { bbox: box },
      };
    }),
  ];
}
