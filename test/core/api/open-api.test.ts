/** The OpenAPI document, compared with the behaviour of the routes. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { hourUs } from '../../../src/core/terms/dates.ts';
import { writeKey } from '../../../src/filter/products.ts';
import { sampleStatus } from '../../features/status/status-sample.ts';
import {
  type Console,
  createMemoryCompleteness,
  createMemoryLog,
  generatedProducts,
  notificationRow,
  openConsole,
  summaryRow,
} from './console-context.ts';
import { filledOperations, registration } from './operation-sample.ts';

async function openWithAll() {
  const notifications = createMemoryLog([notificationRow(7), notificationRow(8)]);
  const fromUs = Date.UTC(2026, 4, 2) * 1000;
  const definition = { subscription: 'alps', fromUs, events: ['created' as const], filter: '' };
  const counts = { expected: 1, pushed: 1, late: 0, recovered: 0, missing: 0 };
  const compared = { event: 'created' as const, comparedAtUs: fromUs + 2 * hourUs };
  const completeness = createMemoryCompleteness({
    definitions: [definition],
    hours: [{ subscription: 'alps', hourUs: fromUs, ...counts, ...compared }],
  });
  const operations = filledOperations();
  const pulled = { ...registration, name: 'andes', type: 'pull' as const };
  const registrations = async () => [registration, pulled];
  const context = await openConsole({
    ...{ ...operations, notifications, completeness, status: async () => sampleStatus(true) },
    administration: { ...operations.administration, registrations },
  });
  const delay = { count: 1, negative: 0, p50: 1, p90: 2, p99: 3, max: 4 };
  const early = { sensingToPublication: delay, publicationToNotification: delay };
  const all = { ...early, notificationToReceipt: delay };
  context.products.timelinessOf = () => ({
    total: { ...all, sensingToReceipt: delay, publicationToReceipt: delay },
    hours: [{ hourUs: fromUs, ...all }],
    collections: [{ collection: 'c', ...all }],
  });
  const { products, deleted } = generatedProducts(5);
  // The geometry of a mixed footprint has another member.
  const geometries = [{ type: 'Point', coordinates: [1, 2] }];
  const mixed = { GeoFootprint: { type: 'GeometryCollection', geometries } };
  context.products.add('Products', { ...products[0], ...mixed }, ...products.slice(1));
  context.products.add('DeletedProducts', ...deleted);
  context.products.state.lastPosition += 1;
  const scope = { fromUs: 1, untilUs: 2, subscription: null, filter: 'true' };
  context.summaries.rows = [
    summaryRow(1, { productId: products[4]?.Id ?? null, productName: 'n' }),
    summaryRow(2, { state: 'waiting', text: null, reason: 'Why.', dueAtUs: 3 }),
    summaryRow(3, { kind: 'digest', productId: null, scope }),
  ];
  return context;
}

/** A valid and an invalid value for each parameter; null when all values are valid. */
const samples: Record<string, [good: string, bad: string | null]> = {
  ackId: ['a', null],
  productId: ['p', null],
  name: ['S2*', null],
  event: ['created', null],
  subscription: ['alps', null],
  collection: ['SENTINEL-2', null],
  source: ['push', 'fax'],
  time: ['notification', 'any'],
  since: ['2026-04-01T00:00:00Z', 'now'],
  until: ['2026-01-01', 'now'],
  maxAge: ['36h', '36'],
  after: ['1', '-1'],
  before: ['9', 'x'],
  order: ['oldest', 'any'],
  limit: ['1', '0'],
  filter: ["startswith(Name,'S')", 'Name'],
  bbox: ['5.5,45,11,48', '5.5,48,11,45'],
  format: ['geojson', 'xml'],
  entity: ['DeletedProducts', 'Bursts'],
  position: ['7', '-1'],
  deleted: ['true', '1'],
  orderby: ['PublicationDate', 'Name'],
  direction: ['asc', 'up'],
  cursor: [writeKey({ values: [], position: 1 }, { entity: 'Products' }), '1'],
  record: ['true', 'yes'],
  count: ['true', 'yes'],
  summary: ['true', 'yes'],
  kind: ['digest', 'area'],
  state: ['waiting', 'lost'],
  all: ['true', '1'],
  id: ['1', 'x'],
};

type Schema = Record<string, unknown> & {
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
};
type Operation = {
  operationId: string;
  parameters: { name: string; in: string; schema: Schema; description: string }[];
  responses: Record<string, { headers?: object; content: Record<string, { schema: Schema }> }>;
};

async function readDocument({ get }: Console) {
  const { json } = await get('/api/openapi.json');
  const operations = Object.entries<{ get: Operation }>(json.paths);
  return { json, operations: operations.map(([path, item]) => ({ path, ...item.get })) };
}

/** Expects that answers have the fields of a schema, with their types, and no others. */
async function expectDescribed(
  { get }: Console,
  { schema }: { schema: Schema },
  paths: readonly string[],
) {
  const seen = new Set<string>();
  for (const path of paths) {
    const { json, status } = await get(path);
    expect([path, status]).toEqual([path, 200]);
    expect(z.fromJSONSchema(schema).safeParse(json).error, path).toBeUndefined();
    noteFields(json, schema, seen);
  }
  // A geometry has the members of its type.
  const own = (fields: Iterable<string>) =>
    [...new Set(fields)].filter((field) => !field.includes('/geometry/')).toSorted();
  expect(own(seen)).toEqual(own(fieldsOf(schema)));
}

describe('the OpenAPI document', () => {
  it('has version 3.1, a name for each route, and no broken reference', async () => {
    const { json, operations } = await readDocument(await openWithAll());
    expect(json).toMatchObject({ openapi: '3.1.0', info: { title: 'earshot' } });
    expect(json).not.toHaveProperty('security');
    const names = operations.map(({ operationId }) => operationId);
    expect(new Set(names).size).toBe(13);
    for (const [, pointer] of JSON.stringify(json).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const target = pointer?.split('/').reduce((value, key) => Object(value)[key], json);
      expect(target).toMatchObject({ type: 'object' });
    }
  });

  it('lists accepted parameters and refused values, and others behave accordingly', async () => {
    const context = await openWithAll();
    const { operations } = await readDocument(context);
    for (const { path, parameters } of operations) {
      if (['/api/live', '/api/feed'].includes(path)) continue;
      for (const { name } of parameters) {
        const [good, bad] = samples[name] ?? [];
        const statusOf = async (value = '') =>
          (await context.get(`${path}?${name}=${encodeURIComponent(value)}`)).status;
        expect({ [name]: await statusOf(good) }).toEqual({ [name]: 200 });
        if (bad !== null) expect({ [name]: await statusOf(bad) }).toEqual({ [name]: 400 });
      }
      expect(await context.get(`${path}?other=1`)).toMatchObject({ status: 400 });
    }
  });

  it('describes responses completely: every field, its type, and no others', async () => {
    const context = await openWithAll();
    context.products.countsPartly = true;
    const { operations } = await readDocument(context);
    const own: Record<string, string[]> = {
      '/api/products': [
        ...['', '?limit=1', '?limit=1&record=true&count=true', '?deleted=true&limit=1'],
        '?summary=true',
      ],
      '/api/quarantine': ['?limit=1', '?id=1'],
    };
    for (const { path, parameters, responses } of operations) {
      const answer = responses[200]?.content['application/json'];
      // A stream never ends: live-feed.test.ts compares its frames.
      if (answer === undefined) continue;
      const hasLimit = parameters.some(({ name }) => name === 'limit');
      const searches = own[path] ?? (hasLimit ? ['', '?limit=1'] : ['']);
      await expectDescribed(
        context,
        answer,
        searches.map((search) => path + search),
      );
    }
    const products = operations.find(({ path }) => path === '/api/products')?.responses[200];
    const geoJson = products?.content['application/geo+json'] ?? { schema: {} };
    const searches = ['record=true&summary=true', 'limit=1&count=true', 'deleted=true'];
    await expectDescribed(
      context,
      geoJson,
      searches.map((search) => `/api/products?format=geojson&${search}`),
    );
    const names = Object.keys(products?.headers ?? {});
    expect(names).toEqual(['Link', 'earshot-warning', 'earshot-index-lag']);
    const { headers } = await context.get('/api/products?bbox=30,-90,29,90&format=csv&limit=1');
    expect(names.filter((name) => headers[name.toLowerCase()] === undefined)).toEqual([]);
  });
});

/** Every field of a schema as a path; the contents of a record belong to the catalogue. */
function fieldsOf(schema: Schema, at = ''): string[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => [
    `${at}/${name}`,
    ...(name === 'record' ? [] : fieldsOf(inner, `${at}/${name}`)),
  ]);
  const inner = [...(schema.anyOf ?? []), ...(schema.items === undefined ? [] : [schema.items])];
  return [...own, ...inner.flatMap((one) => fieldsOf(one, at))];
}

function noteFields(value: unknown, schema: Schema, seen: Set<string>, at = ''): void {
  if (Array.isArray(value)) {
    for (const item of value) noteFields(item, schema.items ?? {}, seen, at);
    return;
  }
  for (const [name, inner] of Object.entries(Object(value) as object)) {
    if (typeof value !== 'object') return;
    seen.add(`${at}/${name}`);
    if (name !== 'record')
      noteFields(inner, schema.properties?.[name] ?? {}, seen, `${at}/${name}`);
  }
}
