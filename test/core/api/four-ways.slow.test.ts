/** The same question finds the same products by flags, OData, STAC parameters, and CQL2 as text and JSON. */
import { Command } from 'commander';
import { expect, it } from 'vitest';
import { addProductFlags, compileFlags } from '../../../src/features/products/flags.ts';
import {
  all,
  created,
  generatedRecords,
  openProductContext,
  realRecords,
} from '../../features/products/index-file/product-context.ts';
import { cql2Text, type Filter } from '../../features/stac/arbitrary-cql2.ts';
import { openConsole } from './console-context.ts';

/** A condition in each language. Absent if there is no such flag or parameter. */
interface Condition {
  odata: string;
  cql2: Filter;
  flags?: string[];
  stac?: Record<string, string>;
}

const compare = (op: string, property: string, value: unknown): Filter => {
  return { op, args: [{ property }, value] };
};
const attribute = (kind: string, name: string, operator: string, value: string) =>
  `Attributes/OData.CSC.${kind}Attribute/any(a:a/Name eq '${name}' and a/OData.CSC.${kind}Attribute/Value ${operator} ${value})`;
const [west, south, east, north] = [-60, -40, 100, 70];
const bbox = [west, south, east, north].join(',');
const lower = [
  [west, south],
  [east, south],
];
const corners = [...lower, [east, north], [west, north], [west, south]];
const wkt = corners.map((corner) => corner.join(' ')).join(',');

const conditions: Record<string, Condition> = {
  collection: {
    odata: `Collection/Name eq 'SENTINEL-2' and ${attribute('String', 'productType', 'eq', "'S2MSI2A'")}`,
    cql2: compare('=', 'collection', 'SENTINEL-2.S2MSI2A'),
    flags: ['--collection', 'SENTINEL-2', '--type', 'S2MSI2A'],
    stac: { collections: 'SENTINEL-2.S2MSI2A' },
  },
  cloud: {
    odata: attribute('Double', 'cloudCover', 'lt', '50'),
    cql2: compare('<', 'eo:cloud_cover', 50),
    flags: ['--cloud-below', '50'],
  },
  name: {
    odata: "startswith(Name,'S2')",
    cql2: compare('like', 'title', 'S2%'),
    flags: ['--name', 'S2*'],
  },
  part: {
    odata: "contains(Name,'MSIL')",
    cql2: compare('like', 'title', '%MSIL%'),
    flags: ['--name', '*MSIL*'],
  },
  box: {
    odata: `OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${wkt}))')`,
    cql2: compare('s_intersects', 'geometry', { type: 'Polygon', coordinates: [corners] }),
    flags: ['--bbox', bbox],
    stac: { bbox },
  },
  orbit: {
    odata: attribute('String', 'orbitDirection', 'eq', "'DESCENDING'"),
    cql2: compare('=', 'sat:orbit_state', 'descending'),
  },
  level: {
    odata: attribute('String', 'processingLevel', 'eq', "'S2MSI2A'"),
    cql2: compare('=', 'processing:level', 'S2MSI2A'),
  },
};

it('each condition, and each two of them, find the same products in every way', async () => {
  const records = [...realRecords(4), ...generatedRecords(40, 11)];
  const { products, index } = await openProductContext();
  await index(...created(...records));
  const { get } = await openConsole({ products });
  const list = async (path: string, sent = {}) => {
    const { status, text, json } = await get(path, sent);
    expect(status, `${path}: ${text}`).toBe(200);
    const items: { Id?: string; id?: string }[] = json.value ?? json.features;
    return items.map(({ Id, id }) => Id ?? id);
  };
  const search = (parameters: Record<string, string>) =>
    list(`/stac/search?${new URLSearchParams({ limit: '1000', ...parameters })}`);
  const found: Record<string, number> = {};

  for (const [first, one] of Object.entries(conditions)) {
    for (const [second, other] of Object.entries(conditions)) {
      const odata = `(${one.odata}) and (${other.odata})`;
      const options = new URLSearchParams({ $filter: odata, $select: 'Id', $top: '1000' });
      const expected = await list(`/odata/v1/Products?${options}`);
      if (first === second) found[first] = expected.length;
      const filter = { op: 'and', args: [one.cql2, other.cql2] };
      const title = `${first} and ${second}`;
      expect(await search({ filter: cql2Text(filter) }), title).toEqual(expected);
      const body = JSON.stringify({ filter, limit: 1000 });
      expect(await list('/stac/search', { method: 'POST', body }), title).toEqual(expected);
      if (one.stac) {
        const rest = first === second ? {} : { filter: cql2Text(other.cql2) };
        expect(await search({ ...one.stac, ...rest }), title).toEqual(expected);
      }
      if (!one.flags || !other.flags || (first !== second && one.flags[0] === other.flags[0]))
        continue;
      const flags = first === second ? one.flags : [...one.flags, ...other.flags];
      const query = { entity: 'Products', filter: filterOf(flags), records: false } as const;
      const rows = await all(products.find(query));
      expect(
        rows.map(({ row }) => row.productId),
        title,
      ).toEqual(expected);
    }
  }
  for (const [name, count] of Object.entries(found)) {
    expect(count, name).toBeGreaterThan(0);
    expect(count, name).toBeLessThan(records.length);
  }
}, 120_000);

const io = { nowUs: () => Date.UTC(2026, 5, 1) * 1_000, env: {}, stderr: { write: () => true } };

/** Compiles flags as the command line does. */
function filterOf(flags: readonly string[]) {
  const command = addProductFlags(new Command(), io).parse(flags, { from: 'user' });
  const readFile = () => {
    throw new Error('No flag names a file.');
  };
  return compileFlags(command.opts(), { ...io, readFile } as never).filter;
}
