/** The routes of `/api`, as a program uses them. `open-api.test.ts` tests their parameters and fields. */
import { describe, expect, it } from 'vitest';
import { hourUs } from '../../../src/core/terms/dates.ts';
import type { NotificationQuery } from '../../../src/core/terms/ports.ts';
import {
  notificationFields,
  productFields,
  productLinkFields,
  summaryFields,
} from '../../../src/core/terms/read-models.ts';
import type { Definition, HourCoverage } from '../../../src/features/coverage/completeness.ts';
import { sampleStatus } from '../../features/status/status-sample.ts';
import {
  type Answer,
  createMemoryCompleteness,
  createMemoryLog,
  follow,
  generatedProducts,
  notificationRow,
  openConsole,
  openFilled,
  summaryRow,
} from './console-context.ts';

const rows = Array.from({ length: 25 }, (_, i) =>
  notificationRow(i + 1, { ackId: i % 2 === 0 ? `ack-${i}` : null }),
);

/** The listener's clock. */
const nowUs = Date.UTC(2026, 4, 2, 12) * 1000;
const startUs = Date.UTC(2026, 4, 1) * 1000;

const summaryRows = rows.map((_, i) => summaryRow(i + 1, { requestedAtUs: startUs + i * hourUs }));

const nextOf = ({ next }: Answer['json']) => next;

/** Returns the values of a field of all items of a list. */
const valuesIn = (list: string, field: string, ...answers: Answer[]) =>
  answers.flatMap(({ json }) => json[list].map((item: Record<string, unknown>) => item[field]));

describe('/api/notifications', () => {
  it('returns the fields of the command line’s rows, in the same form', async () => {
    const context = await openConsole({ notifications: createMemoryLog(rows) });
    const { json } = await context.get('/api/notifications?limit=2');
    expect(Object.keys(json.notifications[0])).toEqual(notificationFields);
    expect(json.notifications[1]).toMatchObject({
      ...{ position: 24, ackId: null, productId: 'product-23', event: 'created', source: 'push' },
      notificationDate: '2026-05-03T03:09:37.777777Z',
      receivedAt: '2026-05-03T03:09:37.000001Z',
    });
  });

  it.each(['newest', 'oldest'])('gives every row once, %s first, by its links', async (order) => {
    const context = await openConsole({ notifications: createMemoryLog(rows) });
    const answers = await follow(context, `/api/notifications?order=${order}&limit=10`, nextOf);
    const oldestFirst = rows.map(({ position }) => position);
    expect(valuesIn('notifications', 'position', ...answers)).toEqual(
      order === 'oldest' ? oldestFirst : oldestFirst.toReversed(),
    );
    expect(answers).toHaveLength(3);
  });

  it('gives every row of a product that is not too old once, by its links', async () => {
    const value = (hours: number) => ({
      ContentDate: { End: new Date(0).toISOString() },
      PublicationDate: new Date(hours * 3_600_000).toISOString(),
    });
    const body = async (position: number) =>
      Buffer.from(JSON.stringify({ value: value(position) }));
    const context = await openConsole({ notifications: { ...createMemoryLog(rows), body } });
    const answers = await follow(context, '/api/notifications?maxAge=9h&limit=4', nextOf);
    const positions = answers.map((answer) => valuesIn('notifications', 'position', answer));
    expect(positions).toEqual([[9, 8, 7, 6], [5, 4, 3, 2], [1]]);
  });

  it('queries the log for the parameters', async () => {
    const noted: NotificationQuery[] = [];
    const context = await openConsole({ notifications: createMemoryLog(rows, noted) });
    const texts = { ackId: 'a', productId: 'p', name: 'S2?_*', subscription: 'alps' };
    const choices = { source: 'reconcile', time: 'notification' } as const;
    const times = { since: '2026-05-01', until: '2026-05-02T00:00:00.000001+02:00' };
    const numbers = { after: '3', before: '9', limit: '7' };
    const search = new URLSearchParams({ ...texts, ...choices, ...times, ...numbers });
    await context.get(`/api/notifications?${search}&event=Created,modified&event=deleted`);
    expect(noted).toEqual([
      {
        ...{ ...texts, ...choices, events: ['created', 'modified', 'deleted'] },
        ...{ sinceUs: startUs, untilUs: Date.UTC(2026, 4, 1, 22) * 1000 + 1 },
        ...{ afterPosition: 3, beforePosition: 9, order: 'newest', limit: 8 },
      },
    ]);
  });
});

it.each([
  ['notifications?since=2026-05-02&until=2026-05-01', 'since must be before until.'],
  ['products?since=2026-05-02&until=2026-05-01', 'since must be before until.'],
  ['summaries?since=9999-01-01&until=2026-05-01', 'since must be before until.'],
  ['footprints?since=2026-05-02&until=0000-05-01', 'since must be before until.'],
  ['coverage?since=2026-05-02T12:00:00Z', 'since must be before until'],
  ['coverage?since=2026-01-01', '100 days'],
  ['products?until=2026-05-01T00:00:00+01:00', 'write + as %2B'],
  ['summaries?kind=digest&kind=product', 'kind'],
  ['products?__proto__=x', '__proto__'],
  ['products?bbox=1,2,3', 'Use west,south,east,north in degrees'],
  ['products?orderby=DeletionDate', 'PublicationDate, ModificationDate'],
  ['products?deleted=true&orderby=PublicationDate', 'received'],
  ["products?filter=Naem eq 'x'", 'Naem'],
])('/api/%s is refused, with the reason %s', async (path, reason) => {
  const { get } = await openConsole();
  const { status, text, headers } = await get(`/api/${path}`);
  expect([status, headers['content-type']]).toEqual([400, 'application/problem+json']);
  expect(text).toContain(reason);
});

describe('/api/products', () => {
  it.each<[string, (name: string) => boolean, boolean]>([
    ["filter=contains(Name,'S')", (name) => name.includes('S'), true],
    ['orderby=PublicationDate&direction=asc', () => true, false],
    ['maxAge=1h', () => false, true],
  ])('with %s returns each match once, by its links', async (search, matches, isReversed) => {
    const context = await openFilled(30, 4);
    const answers = await follow(context, `/api/products?limit=8&count=true&${search}`, nextOf);
    const names = context.published.map(({ Name }) => Name).filter(matches);
    expect(valuesIn('products', 'productName', ...answers)).toEqual(
      isReversed ? names.toReversed() : names,
    );
    expect(answers.map(({ json }) => json.count)).toEqual(answers.map(() => names.length));
  });

  it('marks a count that ended early, in the answer and in a header', async () => {
    const context = await openFilled(30);
    for (const format of ['json', 'geojson']) {
      for (const isMinimum of [true, false]) {
        context.products.countsPartly = isMinimum;
        const path = `/api/products?limit=1&count=true&format=${format}`;
        const { json, headers } = await context.get(path);
        expect([json.count, json.countIsMinimum]).toEqual([30, isMinimum || undefined]);
        expect(headers['earshot-count']).toBe(isMinimum ? 'minimum' : undefined);
      }
    }
  });

  it('includes record and count on request only, and deleted products', async () => {
    const context = await openFilled(30, 4);
    const plain = await context.get('/api/products?limit=1');
    expect(plain.json.products[0]).not.toHaveProperty('record');
    expect(plain.json).not.toHaveProperty('count');
    const record = context.published.at(-1);
    const whole = await context.get('/api/products?limit=1&record=true');
    const dates = { publicationDate: record?.PublicationDate, deletionDate: null };
    expect(whole.json.products[0]).toMatchObject({ ...dates, record });
    const { json } = await context.get('/api/products?deleted=true&orderby=DeletionDate');
    expect(json.products).toHaveLength(4);
    expect(json.products[0].deletionDate).toMatch(/^\d{4}-.*Z$/);
  });

  it('combines a box with a filter, and warns about a box with latitude first', async () => {
    const context = await openFilled(30, 4);
    const idsOf = async (search: Record<string, string>) =>
      valuesIn(
        'products',
        'productId',
        await context.get(`/api/products?${new URLSearchParams(search)}`),
      );
    const ring = '-60 -40,100 -40,100 70,-60 70,-60 -40';
    const area = `OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${ring}))')`;
    const [bbox, filter] = ['-60,-40,100,70', "contains(Name,'S2')"];
    const inBox = await idsOf({ bbox });
    expect(inBox).toEqual(await idsOf({ filter: area }));
    expect([0, 30]).not.toContain(inBox.length);
    expect(await idsOf({ bbox, filter })).toEqual(await idsOf({ filter: `${area} and ${filter}` }));
    for (const path of ['/api/products', '/stac/search']) {
      const { headers } = await context.get(`${path}?bbox=48,6,45,11`);
      expect(headers['earshot-warning']).toContain('If you wrote latitudes first, use 6,45,11,48.');
      const usual = await context.get(`${path}?bbox=6,45,11,48`);
      expect(usual.headers).not.toHaveProperty('earshot-warning');
    }
  });

  it.each([
    ['?format=geojson&', {}],
    ['?', { Accept: 'application/geo+json' }],
  ])('gives features with footprint, S3 path and download URL: %s', async (search, headers) => {
    const context = await openFilled(30, 4);
    const pages: Answer[] = [];
    for (let next = `/api/products${search}limit=7&count=true`; next && pages.length < 9; ) {
      pages.push(await context.get(next, { headers }));
      next = pages.at(-1)?.json.next;
    }
    for (const page of pages) {
      expect(page.headers['content-type']).toBe('application/geo+json');
      expect(page.json).toMatchObject({ type: 'FeatureCollection', count: 30 });
    }
    const ids = context.published.map(({ Id }) => Id).toReversed();
    expect(valuesIn('features', 'id', ...pages)).toEqual(ids);
    const { Id, S3Path, GeoFootprint } = context.published.at(-1) ?? {};
    const downloadUrl = `https://catalogue.test/odata/v1/Products(${Id})/$value`;
    expect(pages[0]?.json.features[0]).toMatchObject({
      ...{ type: 'Feature', geometry: { type: GeoFootprint?.type } },
      properties: { productId: Id, s3Path: S3Path, downloadUrl },
    });
    const deleted = await context.get(`/api/products${search}deleted=true`, { headers });
    const none = { downloadUrl: null, s3Path: null };
    expect(deleted.json.features[0].properties).toMatchObject(none);
    // The parameter has precedence.
    const json = await context.get('/api/products?format=json', { headers });
    expect(json.json.products).toHaveLength(30);
  });

  it('gives CSV with the columns of the command line, and the next page in the header Link', async () => {
    const context = await openFilled(5, 0);
    context.products.add('Products', { Id: 'one', Name: '=1+1' });
    const { headers, text } = await context.get('/api/products?format=csv&limit=4');
    expect(headers['content-type']).toBe('text/csv; charset=utf-8');
    const [head, ...lines] = text.trim().split('\n');
    expect(head).toBe([...productFields, ...productLinkFields].join(','));
    expect(lines).toHaveLength(4);
    // No spreadsheet evaluates it as a formula.
    expect(text).toContain("'=1+1");
    const [, next = ''] = /^<(.*)>; rel="next"$/.exec(String(headers.link)) ?? [];
    const rest = await context.get(next);
    expect(rest.text.trim().split('\n')).toHaveLength(3);
    expect(rest.headers.link).toBeUndefined();
  });

  it('has the summary with each product on request, null where there is none', async () => {
    const context = await openConsole();
    const { products, deleted } = generatedProducts(3);
    context.products.add('Products', ...products);
    context.products.add('DeletedProducts', ...deleted.slice(0, 1));
    const [{ Id: done } = { Id: '' }, { Id: open } = { Id: '' }] = products;
    context.summaries.rows = [
      summaryRow(1, { productId: done }),
      summaryRow(2, { productId: open, state: 'waiting', text: null }),
    ];
    const summariesOf = async (search: string) =>
      valuesIn('products', 'summary', await context.get(`/api/products?${search}`));
    expect(await summariesOf('direction=asc')).toEqual([undefined, undefined, undefined]);
    expect(await summariesOf('summary=true&direction=asc')).toEqual([shownText, null, null]);
    expect(await summariesOf('summary=true&deleted=true')).toEqual([shownText]);
    const { text } = await context.get('/api/products?summary=true&direction=asc&format=csv');
    const [header = '', first = '', second = ''] = text.split('\n');
    expect(header).toMatch(/,s3Path,downloadUrl,summary,summaryModel$/);
    expect(first).toMatch(new RegExp(`,${shownText.text},${shownText.model}$`));
    expect(second).toMatch(/,,$/);
  });
});

async function openWith(summaries: typeof summaryRows) {
  const context = await openConsole();
  context.summaries.rows = summaries;
  return context;
}

/** The text of a row in memory, as JSON. */
const shownText = {
  ...{ text: 'A text.', model: 'a/b', facts: {} },
  createdAt: '2026-05-01T00:00:00.000000Z',
};

describe('/api/summaries', () => {
  it('returns the fields of the command line’s rows, in the same order and form', async () => {
    const waiting = { state: 'waiting', text: null, reason: 'Why.', dueAtUs: startUs } as const;
    const context = await openWith([summaryRow(1, { productName: 'S2A' }), summaryRow(2, waiting)]);
    const { json } = await context.get('/api/summaries');
    expect(Object.keys(json.summaries[0])).toEqual(summaryFields);
    const at = '2026-05-01T00:00:00.000000Z';
    expect(json.summaries[0]).toMatchObject({ text: null, reason: 'Why.', nextTryAt: at });
    expect(json.summaries[1]).toMatchObject({
      ...{ id: 1, kind: 'product', productId: 'product-1', productName: 'S2A', state: 'done' },
      ...{ ...shownText, requestedAt: at, nextTryAt: null },
    });
  });

  it('returns every row once, newest first, by its links', async () => {
    const context = await openWith(summaryRows);
    const answers = await follow(context, '/api/summaries?limit=10&state=done', nextOf);
    const ids = summaryRows.map(({ id }) => id).toReversed();
    expect(valuesIn('summaries', 'id', ...answers)).toEqual(ids);
    // A page that is exactly full is the last one.
    expect((await context.get('/api/summaries?limit=25')).json.next).toBe(null);
  });

  it('queries the store for the parameters', async () => {
    const { get, summaries } = await openWith(summaryRows);
    const equal = { kind: 'digest', state: 'waiting', productId: 'p', subscription: 'sea' };
    const times = { since: '2026-05-01T03:00:00Z', until: '2026-05-01T05:00:00Z' };
    await get(`/api/summaries?${new URLSearchParams({ ...equal, ...times })}&before=3&limit=7`);
    const window = { sinceUs: startUs + 3 * hourUs, untilUs: startUs + 5 * hourUs };
    expect(summaries.noted).toEqual([{ ...equal, ...window, beforeId: 3, limit: 8 }]);
  });

  it('returns texts unchanged, as JSON that no browser renders as a page', async () => {
    const text = '<script>alert(1)</script>\u001b[2J\u202e';
    const kept = { text, model: 'a/b', facts: {}, createdAtUs: 0 };
    const context = await openWith([summaryRow(1, { text: kept, productName: text })]);
    const { json, headers } = await context.get('/api/summaries');
    expect(json.summaries[0]).toMatchObject({ text, productName: text });
    expect(headers).toMatchObject({
      ...{ 'content-type': 'application/json', 'x-content-type-options': 'nosniff' },
    });
  });
});

const definitions: Definition[] = ['alps', 'sea'].map((subscription) => {
  return { subscription, fromUs: nowUs - 3 * hourUs, events: ['created'], filter: '' };
});

function compared(hoursAgo: number, pushed: number, missing: number): HourCoverage {
  const counts = { expected: pushed + missing, pushed, late: 0, recovered: 0, missing };
  const about = { subscription: 'alps', comparedAtUs: nowUs, event: 'created' } as const;
  return { ...about, hourUs: nowUs - hoursAgo * hourUs, ...counts };
}

async function openCompared() {
  const hours = [compared(2, 5, 0), compared(1, 3, 1)];
  const completeness = createMemoryCompleteness({ definitions, hours });
  return openConsole({ completeness });
}

it('/api/coverage reports each subscription and hour', async () => {
  const { get } = await openCompared();
  const { json } = await get('/api/coverage?since=2026-05-02T08:30:00Z&subscription=alps');
  const none = { expected: 0, pushed: 0, late: 0, recovered: 0, missing: 0 };
  const hour = (at: string, state: string, counts: object = {}) => ({
    ...{ hour: `2026-05-02T${at}:00:00.000000Z`, state, ...none, ...counts },
  });
  expect(json).toEqual({
    ...{ since: '2026-05-02T08:00:00.000000Z', until: '2026-05-02T12:00:00.000000Z' },
    ...{ missing: 1, comparison: { automatic: true, reason: null } },
    subscriptions: [
      {
        ...{ subscription: 'alps', ...none, expected: 9, pushed: 8, missing: 1 },
        ...{ comparedHours: 2, unknownHours: 1, complete: 8 / 9, pushedShare: 8 / 9 },
        ...{ state: 'partly-compared', pendingHours: 0 },
        nextComparison: '2026-05-02T10:30:00.000000Z',
        hours: [
          hour('08', 'outside'),
          hour('09', 'unknown'),
          hour('10', 'pushed', { expected: 5, pushed: 5 }),
          hour('11', 'missing', { expected: 4, pushed: 3, missing: 1 }),
        ],
      },
    ],
  });
});

describe('/api/status', () => {
  it('reports facts and status, with times in ISO 8601', async () => {
    const { get } = await openConsole({ status: async () => sampleStatus(true) });
    const { json, headers } = await get('/api/status');
    expect(headers['cache-control']).toBe('no-store');
    expect(json).toMatchObject({
      ...{ at: '2026-05-02T12:00:00.000000Z', version: '0.1.0', ok: false },
      failures: [{ part: 'disk', reason: 'It does not say.' }],
      receiver: { refusing: 'The disk is full.', queue: { bytes: 1_000, bytesMax: 2_000 } },
      certificate: { lifetimeSeconds: 90 * 86_400 },
    });
    const healthy = await openConsole();
    expect((await healthy.get('/api/status')).json.ok).toBe(true);
  });

  it('does not wait in the queue of log queries', async () => {
    const hanging = Promise.withResolvers<never>();
    const hang = { definitions: () => hanging.promise, coverage: () => hanging.promise };
    const context = await openConsole({
      completeness: { ...createMemoryCompleteness(), ...hang },
      limits: { atOnceMax: 1, waitingMax: 1 },
    });
    const waiting = context.get('/api/coverage').catch(() => null);
    expect((await context.get('/api/status')).status).toBe(200);
    hanging.reject(new Error('enough'));
    await waiting;
  });
});
