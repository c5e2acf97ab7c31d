/** Real filters on real records. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compileFilter } from '../../src/filter/evaluate.ts';
import { parseFilter } from '../../src/filter/parse.ts';
import { productView } from '../../src/filter/product-view.ts';

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';
const read = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');

interface Attribute {
  Name: string;
  Value: unknown;
}
interface Product {
  Name: string;
  Online: boolean;
  S3Path?: string;
  PublicationDate: string;
  ContentDate: { Start: string; End: string };
  Attributes?: Attribute[];
  Footprint: string | null;
}

const records = (): Product[] =>
  read('products.jsonl')
    .trim()
    .split('\n')
    .map((line): Product => JSON.parse(line));
const attributeValue = ({ Attributes = [] }: Product, name: string) =>
  Attributes.find((item) => item.Name === name)?.Value;
const any = (name: string, kind: string, rest: string) =>
  `Attributes/OData.CSC.${kind}Attribute/any(att:att/Name eq '${name}' and att/OData.CSC.${kind}Attribute/Value ${rest})`;
/** The first of each two numbers of a footprint. */
const longitudes = ({ Footprint: text }: Product) =>
  [...(text ?? '').matchAll(/(-?[\d.]+) -?[\d.]+/g)].map(([, x]) => Number(x));

/** Filters, and what they mean in plain code over the plain records. */
const meanings: readonly (readonly [string, (product: Product) => boolean])[] = [
  ["Collection/Name eq 'SENTINEL-1'", ({ Name }) => Name.startsWith('S1')],
  ["Collection/Name eq 'SENTINEL-2'", ({ Name }) => Name.startsWith('S2')],
  ["contains(Name,'_COG') or contains(Name,'GRDM')", ({ Name }) => /_COG|GRDM/.test(Name)],
  ["startswith(Name,'S2A_MSIL1C')", ({ Name }) => Name.startsWith('S2A_MSIL1C')],
  ["endswith(Name,'.EOF')", ({ Name }) => Name.endsWith('.EOF')],
  ["not (endswith(Name,'.SAFE'))", ({ Name }) => !Name.endsWith('.SAFE')],
  ['Online eq false', ({ Online }) => !Online],
  ['PublicationDate ge 2024-01-01', ({ PublicationDate }) => PublicationDate.slice(0, 4) >= '2024'],
  [
    'ContentDate/Start lt 2020-01-01T00:00:00.000Z',
    ({ ContentDate }) => ContentDate.Start < '2020',
  ],
  [
    any('productType', 'String', "eq 'S2MSI1C'"),
    (product) => attributeValue(product, 'productType') === 'S2MSI1C',
  ],
  [
    any('cloudCover', 'Double', 'lt 20'),
    (product) => Number(attributeValue(product, 'cloudCover') ?? 100) < 20,
  ],
  [
    any('orbitDirection', 'String', "ne 'ASCENDING'"),
    (product) => attributeValue(product, 'orbitDirection') === 'DESCENDING',
  ],
  [
    "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((-180 -90,0 -90,0 90,-180 90,-180 -90))')",
    (product) => longitudes(product).some((x) => x <= 0),
  ],
];

describe('real filters', () => {
  it('are evaluated on every real record', (context) => {
    if (missing) context.skip(missing);
    const filters: { filter: string }[] = JSON.parse(read('filters-valid.json'));
    const views = records().map((record) => productView({ ...record }));
    expect([filters.length > 50, views.length > 100]).toEqual([true, true]);
    for (const { filter } of filters) {
      const test = compileFilter(parseFilter(filter).tree);
      for (const view of views) expect(typeof test(view)).toBe('boolean');
    }
  });

  it.for(meanings)('%s matches what it should', ([filter, isMeant], context) => {
    if (missing) context.skip(missing);
    const test = compileFilter(parseFilter(filter).tree);
    const found = records().filter((record) => test(productView({ ...record })));
    const wanted = records().filter(isMeant);
    expect(found.map(({ Name }) => Name)).toEqual(wanted.map(({ Name }) => Name));
    expect(wanted.length).toBeLessThan(records().length);
  });
});
