/** `/products` and the page of a product over memory: states that a small store does not have. */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/core/terms/app-error.ts';
import type { SinkItem, SinkReader } from '../../../../src/features/sinks/terms.ts';
import type { IndexedEvent } from '../../../../src/filter/products.ts';
import {
  createMemoryLog,
  generatedProducts,
  notificationRow,
  openConsole,
  summaryRow,
} from '../../../core/api/console-context.ts';
import { ring } from '../../../filter/geometry/places.ts';
import { textOf } from '../../../helpers/page-text.ts';

const id = '0ce0aaf7-9708-44e5-a35f-5171947aa748';

function item(sink: string, state: SinkItem['state'], productId = id): SinkItem {
  const fields = { id: 1, position: 1, replayId: null, attempts: 3, dueAtUs: 0, queuedAtUs: 0 };
  return { ...fields, sink, state, productId, error: 'status 500' };
}

async function openProduct(options: Parameters<typeof openConsole>[0] = {}) {
  const rows = [notificationRow(5, { productId: id, productName: 'A name' })];
  const context = await openConsole({ notifications: createMemoryLog(rows), ...options });
  const [product] = generatedProducts(1).products;
  context.products.add('Products', { ...product, Id: id });
  // The page needs only the positions.
  const events = [{ position: 5 }] as IndexedEvent[];
  context.products.events = async () => ({ events, next: null });
  return context;
}

describe('the page of a product', () => {
  it('shows the summary with its facts and the model, or the command that writes one', async () => {
    const context = await openProduct();
    const none = (await context.get(`/products/${id}`)).text;
    expect(none).toContain('earshot summarize --each --filter');
    const facts = { mission: 'Sentinel-<b>' };
    const text = { text: 'A calm <b>scene</b>.', model: 'a/b', facts, createdAtUs: 0 };
    context.summaries.rows = [summaryRow(1, { productId: id, text })];
    const page = (await context.get(`/products/${id}`)).text;
    expect(page).toContain('<dt>mission</dt><dd>Sentinel-&lt;b&gt;</dd>');
    expect(textOf(page)).toContain('Summary a/b A calm <b>scene</b>.');
  });

  it('shows dead letters and waiting deliveries of the product', async () => {
    const items = [
      item('bus', 'dead'),
      item('files', 'waiting'),
      item('idle', 'waiting', 'another product'),
    ];
    const sinks = {
      async *items({ state }: { state: SinkItem['state'] }) {
        yield* items.filter((one) => one.state === state);
      },
    };
    const context = await openProduct({ sinks: sinks as unknown as SinkReader });
    const text = textOf((await context.get(`/products/${id}`)).text);
    expect(text).toMatch(/Dead letters .* bus .* status 500 .* Waiting deliveries .* files /);
    expect(text).not.toContain('idle');
  });

  it('of a product that is not indexed yet quotes its id, and shows markup and control characters as text', async () => {
    const hostile = `x"; rm -rf $HOME \u202e<script>`;
    const rows = [notificationRow(1, { productId: hostile, productName: '<img src=x>\u001b[31m' })];
    const context = await openConsole({ notifications: createMemoryLog(rows) });
    const { status, text } = await context.get(`/products/${encodeURIComponent(hostile)}`);
    expect(status).toBe(200);
    expect(text).toContain('&lt;img src=x&gt;\\u001b[31m');
    for (const part of ['<img', '<script>', '\u001b', '\u202e']) expect(text).not.toContain(part);
    expect(text).toContain('--product-id=&#39;x&quot;; rm -rf $HOME');
    expect(textOf(text)).toContain('not in the product index yet');
  });
});

it.each([
  ['LineString', ring('10 45, 12 47'), 'd="M10,-45 12,-47"'],
  ['MultiLineString', [ring('10 45, 12 47'), ring('0 0, 1 1')], 'd="M10,-45 12,-47M0,0 1,-1"'],
  ['MultiPoint', ring('10 45, 12 47'), 'cx="12" cy="-47"'],
])('the page of a product shows a footprint that is a %s', async (type, coordinates, shape) => {
  const context = await openConsole();
  const [product] = generatedProducts(1).products;
  context.products.add('Products', { ...product, Id: id, GeoFootprint: { type, coordinates } });
  const { text } = await context.get(`/products/${id}`);
  expect(text).toContain(shape);
  for (const { text: page } of [{ text }, await context.get('/products')])
    expect(page).toContain('Italy');
});

it.each([...['/map', '/products', '/', '/live', '/timeliness', '/summaries'], `/products/${id}`])(
  '%s shows no text of a record with control characters or direction marks',
  async (path) => {
    const hostile = (text: unknown) =>
      typeof text === 'string' ? `${text}\u001b[31m\u202e\u2066` : text;
    const name = String(hostile('evil'));
    const rows = [notificationRow(1, { productId: id, productName: name, event: name })];
    const context = await openConsole({ notifications: createMemoryLog(rows) });
    const [product] = generatedProducts(1).products;
    const { Attributes = [] } = product ?? {};
    context.products.add('Products', {
      ...product,
      ...{ Id: id, Name: name, S3Path: hostile('/eodata/evil') },
      Attributes: (Attributes as object[]).map((one) => ({
        ...one,
        Value: hostile((one as { Value: unknown }).Value),
      })),
    });
    // The period of the map ends now, which is later than the receipt.
    const { status, text } = await context.get(`${path}?since=2023-11-01&until=2023-12-01`);
    expect(status).toBe(200);
    // The data of a script are JSON; the script shows them in the same way.
    const shown = text.replace(/<script type="application.json".*<.script>/, '');
    expect(shown.replaceAll(/[\n\t]/g, '')).not.toMatch(/[\p{Cc}\u202e\u2066]/u);
    if (['/map', '/products'].includes(path)) expect(text).toContain('evil\\u001b[31m\\u202e');
  },
);

describe('/products', () => {
  async function openMany() {
    const context = await openConsole();
    context.products.add('Products', ...generatedProducts(3).products);
    const none = { platform: [], productType: [], processingLevel: [], orbitDirection: [] };
    const values = { collection: [{ value: 'SENTINEL-2', count: 9_000 }], ...none, tile: [] };
    context.products.facets = async () => ({ counted: 10_000, complete: false, values });
    return context;
  }

  it('states that only the newest products are counted by value, and the number of all', async () => {
    const context = await openMany();
    context.products.quickCount = async () => ({ count: 1_234_567, isMinimum: false });
    const text = textOf((await context.get('/products')).text);
    expect(text).toContain('counts of the newest 10,000 only');
    expect(text).toContain('1,234,567 products');
    expect(text).not.toContain('at least');
    context.products.quickCount = async () => ({ count: 1_234_567, isMinimum: true });
    expect(textOf((await context.get('/products')).text)).toContain('at least 1,234,567 products');
  });

  it('does not wait for a slow count of values', async () => {
    const context = await openMany();
    const never = (signal: AbortSignal | undefined) =>
      new Promise<never>((_, reject) => {
        const error = new AppError('cancelled', 'Cancelled.');
        signal?.addEventListener('abort', () => reject(error));
      });
    context.products.facets = (_, signal) => never(signal);
    const { text } = await context.get('/products?filter=Online+eq+true');
    expect(textOf(text)).toContain('Counting takes too long for this filter');
    expect(textOf(text)).toContain('3 products');
  });

  it('shows the next step when there is no product, and when none matches', async () => {
    const context = await openMany();
    context.products.facets = async () => ({ counted: 0, complete: true, values: {} as never });
    const other = await context.get("/products?filter=Name+eq+'other'");
    const why = "No product matches this condition: Name = 'other'.";
    expect(textOf(other.text)).toContain(why);
    const deleted = await context.get('/products?deleted=true');
    expect(textOf(deleted.text)).toContain('No deleted product was received yet.');
  });
});
