/** `/api/summaries`, and the texts beside `/api/products`, as a program uses them. */
import { describe, expect, it } from 'vitest';
import { summaryFields } from '../../src/domain/summaries.ts';
import { type Answer, follow, generatedProducts, openConsole } from './console-world.ts';
import { memoryRow } from './memory-summaries.ts';

const hourUs = 3_600_000_000;
const startUs = Date.UTC(2026, 4, 1) * 1000;

const rows = Array.from({ length: 25 }, (_, i) =>
  memoryRow(i + 1, { requestedAtUs: startUs + i * hourUs }),
);

async function openWith(summaries: typeof rows) {
  const world = await openConsole();
  world.summaries.rows = summaries;
  return world;
}

const idsIn = ({ json }: Answer) => json.summaries.map(({ id }: { id: number }) => id);

describe('/api/summaries', () => {
  it('gives the fields of the command line’s rows, in its order and form', async () => {
    const doubtful = { text: 'Of 7 bands.', model: 'a/b', verified: false, doubts: ['7'] };
    const world = await openWith([
      memoryRow(1, { text: { ...doubtful, createdAtUs: startUs + 1 }, productName: 'S2A' }),
      memoryRow(2, { state: 'waiting', text: null, error: 'Why.', nextTryAtUs: startUs }),
    ]);
    const { json } = await world.get('/api/summaries');
    expect(json.next).toBe(null);
    expect(Object.keys(json.summaries[0])).toEqual(summaryFields);
    expect(json.summaries[0]).toMatchObject({
      text: null,
      model: null,
      verified: null,
      createdAt: null,
      error: 'Why.',
      nextTryAt: '2026-05-01T00:00:00.000000Z',
    });
    expect(json.summaries[1]).toEqual({
      kind: 'product',
      productId: 'product-1',
      productName: 'S2A',
      text: 'Of 7 bands.',
      model: 'a/b',
      verified: false,
      createdAt: '2026-05-01T00:00:00.000001Z',
      error: null,
      id: 1,
      state: 'done',
      subscription: 'alps',
      doubts: ['7'],
      attempts: 0,
      requestedAt: '2026-05-01T00:00:00.000000Z',
      nextTryAt: null,
      receivedFrom: null,
      receivedUntil: null,
      collection: null,
      area: null,
      filter: null,
    });
  });

  it('gives every row once, newest first, by its links', async () => {
    const world = await openWith(rows);
    const answers = await follow(world, '/api/summaries?limit=10&state=done', ({ next }) => next);
    expect(answers.flatMap(idsIn)).toEqual(rows.map(({ id }) => id).toReversed());
    expect(answers).toHaveLength(3);
    // A page that is just full is the last one.
    expect((await world.get('/api/summaries?limit=25')).json.next).toBe(null);
  });

  it.each([
    ['kind=digest', [21]],
    ['state=failed', [22]],
    ['verified=false', [23]],
    ['verified=true&limit=2', [25, 24]],
    ['productId=product-7', [7]],
    ['subscription=sea', [24]],
    ['since=2026-05-01T03:00:00Z&until=2026-05-01T05:00:00Z', [5, 4]],
    ['since=2026-05-02', [25]],
    ['before=3', [2, 1]],
    ['before=1', []],
  ])('with %s gives %j', async (search, ids) => {
    const text = { text: 't', model: 'm', verified: false, doubts: [], createdAtUs: 0 };
    const changed: Record<number, Parameters<typeof memoryRow>[1]> = {
      21: { kind: 'digest' },
      22: { state: 'failed' },
      23: { text },
      24: { subscription: 'sea' },
    };
    const world = await openWith(rows.map((row) => ({ ...row, ...changed[row.id] })));
    expect(idsIn(await world.get(`/api/summaries?${search}`))).toEqual(ids);
  });

  it.each([
    'limit=0',
    'limit=1001',
    'kind=area',
    'state=open',
    'verified=1',
    'since=yesterday',
    'until=25',
    'before=x',
    'stat=done',
    'kind=digest&kind=product',
  ])('refuses %s, and names it', async (search) => {
    const world = await openWith(rows);
    const { status, json, headers } = await world.get(`/api/summaries?${search}`);
    expect(status).toBe(400);
    expect(headers['content-type']).toBe('application/problem+json');
    expect(json.errors.join()).toContain(search.split('=')[0]);
  });

  it('gives texts as they are, as JSON that no browser takes for a page', async () => {
    const text = '<script>alert(1)</script>\u001b[2J\u202e';
    const kept = { text, model: 'a/b', verified: true, doubts: [], createdAtUs: 0 };
    const world = await openWith([memoryRow(1, { text: kept, error: text, productName: text })]);
    const { json, headers } = await world.get('/api/summaries');
    expect(json.summaries[0]).toMatchObject({ text, error: text, productName: text });
    expect(headers['content-type']).toBe('application/json');
    expect(headers['x-content-type-options']).toBe('nosniff');
  });
});

describe('/api/products?summary=true', () => {
  it('has the text beside each product, null where there is none', async () => {
    const world = await openConsole();
    const { products, deleted } = generatedProducts(3);
    world.products.add('Products', ...products);
    world.products.add('DeletedProducts', ...deleted.slice(0, 1));
    const plain = await world.get('/api/products');
    expect(plain.json.products[0]).not.toHaveProperty('summary');
    world.summaries.rows = [
      memoryRow(1, { productId: products[0]?.Id ?? '' }),
      memoryRow(2, { productId: products[1]?.Id ?? '', state: 'waiting', text: null }),
    ];
    const { json } = await world.get('/api/products?summary=true&direction=asc');
    const text = {
      text: 'A text.',
      model: 'a/b',
      verified: true,
      createdAt: '2026-05-01T00:00:00.000000Z',
    };
    const summaries = json.products.map(({ summary }: { summary: unknown }) => summary);
    expect(summaries).toEqual([text, null, null]);
    const gone = await world.get('/api/products?summary=true&deleted=true');
    expect(gone.json.products).toMatchObject([{ productId: products[0]?.Id, summary: text }]);
    expect(await world.get('/api/products?summary=yes')).toMatchObject({ status: 400 });
  });
});
