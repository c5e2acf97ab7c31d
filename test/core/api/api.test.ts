/** The routes of `/api`, as a program uses them. */

import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { parseDate } from '../../../src/core/terms/dates.ts';
import type { NotificationQuery, NotificationRow } from '../../../src/core/terms/ports.ts';
import {
  notificationFields,
  productFields,
  productLinkFields,
  summaryFields,
} from '../../../src/core/terms/read-models.ts';
import { hourUs } from '../../../src/core/terms/time-units.ts';
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

describe('/api/notifications', () => {
  it('returns the fields of the command line’s rows, in the same form', async () => {
    const context = await openConsole({ notifications: createMemoryLog(rows) });
    const { json } = await context.get('/api/notifications?limit=2');
    expect(Object.keys(json.notifications[0])).toEqual(notificationFields);
    expect(json.notifications[1]).toEqual({
      position: 24,
      ackId: null,
      productId: 'product-23',
      productName: null,
      event: 'created',
      subscription: 'alps',
      subscriptionId: null,
      notificationDate: '2026-05-03T03:09:37.777777Z',
      receivedAt: '2026-05-03T03:09:37.000001Z',
      source: 'push',
      timesSeen: 1,
    });
  });

  it.each(['newest', 'oldest'])(
    'gives every row once, %s first, through its links',
    async (order) => {
      const context = await openConsole({ notifications: createMemoryLog(rows) });
      const answers = await follow(context, `/api/notifications?order=${order}&limit=10`, nextOf);
      const positions = answers.flatMap(({ json }) =>
        json.notifications.map(({ position }: NotificationRow) => position),
      );
      const oldestFirst = rows.map(({ position }) => position);
      expect(positions).toEqual(order === 'oldest' ? oldestFirst : oldestFirst.toReversed());
      expect(answers).toHaveLength(3);
    },
  );

  it('queries the log for the parameters', async () => {
    const noted: NotificationQuery[] = [];
    const context = await openConsole({ notifications: createMemoryLog(rows, noted) });
    const search = new URLSearchParams({
      ackId: 'a',
      productId: 'p',
      name: 'S2?_*',
      subscription: 'alps',
      source: 'reconcile',
      time: 'notification',
      since: '2026-05-01',
      until: '2026-05-02T00:00:00.000001+02:00',
      after: '3',
      before: '9',
      limit: '7',
    });
    await context.get(`/api/notifications?${search}&event=Created,modified&event=deleted`);
    expect(noted).toEqual([
      {
        ackId: 'a',
        productId: 'p',
        name: 'S2?_*',
        events: ['created', 'modified', 'deleted'],
        subscription: 'alps',
        source: 'reconcile',
        time: 'notification',
        sinceUs: Date.UTC(2026, 4, 1) * 1000,
        untilUs: Date.UTC(2026, 4, 1, 22) * 1000 + 1,
        afterPosition: 3,
        beforePosition: 9,
        order: 'newest',
        limit: 8,
      },
    ]);
  });

  it.each([
    ['0000-01-01', '9999-12-31T23:59:59.999Z'],
    ['0001-01-01T00:00:00Z', '3500-01-01T00:00:00Z'],
    ['1684-01-01T00:00:00+23:59', '2256-01-01'],
    ['2016-12-31T23:59:60Z', '9999-12-31'],
  ])('accepts times of the years 0000 to 9999: %s to %s', async (since, until) => {
    const noted: NotificationQuery[] = [];
    const context = await openConsole({ notifications: createMemoryLog(rows, noted) });
    const search = new URLSearchParams({ since, until });
    expect((await context.get(`/api/notifications?${search}`)).status).toBe(200);
    expect(noted).toMatchObject([{ sinceUs: parseDate(since)?.us, untilUs: parseDate(until)?.us }]);
  });

  it.each([
    ['notifications?since=2026-05-02&until=2026-05-01', 'since must be before until.'],
    ['products?since=2026-05-02&until=2026-05-01', 'since must be before until.'],
    ['summaries?since=9999-01-01&until=2026-05-01', 'since must be before until.'],
    ['footprints?since=2026-05-02&until=0000-05-01', 'since must be before until.'],
    ['products?until=2026-05-01T00:00:00+01:00', 'write + as %2B'],
    ['notifications?since=2026-05-01T00:00:00.5+01:00', 'write + as %2B'],
  ])('refuses the times of %s: %s', async (path, message) => {
    const { get } = await openConsole({});
    const { status, json } = await get(`/api/${path}`);
    expect([status, JSON.stringify(json)]).toEqual([400, expect.stringContaining(message)]);
  });
});

describe('/api/products', () => {
  const namesIn = (answers: readonly Answer[]) =>
    answers.flatMap(({ json }) =>
      json.products.map(({ productName }: { productName: string }) => productName),
    );

  it('returns every match once, newest first, through its links', async () => {
    const context = await openFilled(30, 4);
    const filter = encodeURIComponent("contains(Name,'S')");
    const answers = await follow(
      context,
      `/api/products?limit=8&count=true&filter=${filter}`,
      nextOf,
    );
    const matching = context.published.filter(({ Name }) => Name.includes('S')).toReversed();
    expect(namesIn(answers)).toEqual(matching.map(({ Name }) => Name));
    expect(answers.map(({ json }) => json.count)).toEqual(answers.map(() => matching.length));
  });

  it('marks a count that ended early, in the answer and in a header', async () => {
    const context = await openFilled(30);
    const answerTo = (format: string) =>
      context.get(`/api/products?limit=1&count=true&format=${format}`);
    for (const format of ['json', 'geojson']) {
      context.products.countsPartly = false;
      const exact = await answerTo(format);
      expect(exact.json).toMatchObject({ count: 30 });
      expect(exact.json).not.toHaveProperty('countIsMinimum');
      expect(exact.headers).not.toHaveProperty('earshot-count');
      context.products.countsPartly = true;
      const partial = await answerTo(format);
      expect(partial.json).toMatchObject({ count: 30, countIsMinimum: true });
      expect(partial.headers['earshot-count']).toBe('minimum');
    }
  });

  it('sorts by a date, in both directions', async () => {
    const context = await openFilled(30, 4);
    const search = 'orderby=PublicationDate&direction=asc&limit=20';
    const answers = await follow(context, `/api/products?${search}`, nextOf);
    expect(namesIn(answers)).toEqual(context.published.map(({ Name }) => Name));
  });

  it('refuses an order of other paths, and lists the possible ones', async () => {
    const context = await openFilled(30, 4);
    const refused = [
      ['orderby=DeletionDate', /^orderby: .*received.*PublicationDate, ModificationDate$/],
      ['deleted=true&orderby=PublicationDate', /^orderby: .*received.*DeletionDate$/],
      ['deleted=true&orderby=ModificationDate', /^orderby: .*received.*DeletionDate$/],
    ] as const;
    for (const [search, errors] of refused) {
      const { status, json } = await context.get(`/api/products?${search}`);
      expect({ search, status }).toEqual({ search, status: 400 });
      expect(json.errors.join()).toMatch(errors);
    }
    for (const search of ['orderby=ModificationDate', 'orderby=DeletionDate&deleted=true']) {
      expect(await context.get(`/api/products?${search}`)).toMatchObject({ status: 200 });
    }
  });

  it('includes the record on request, and deleted products', async () => {
    const context = await openFilled(30, 4);
    const plain = await context.get('/api/products?limit=1');
    expect(plain.json.products[0]).not.toHaveProperty('record');
    expect(plain.json).not.toHaveProperty('count');
    const whole = await context.get('/api/products?limit=1&record=true');
    expect(whole.json.products[0]).toMatchObject({
      publicationDate: context.published.at(-1)?.PublicationDate,
      deletionDate: null,
      record: context.published.at(-1),
    });
    const { json } = await context.get('/api/products?deleted=true');
    expect(json.products).toHaveLength(4);
    expect(json.products[0].deletionDate).toMatch(/^\d{4}-.*Z$/);
  });

  it('combines a box with a filter', async () => {
    const context = await openFilled(30, 4);
    const within = ({ json }: Answer) =>
      json.products.map(({ productId }: { productId: string }) => productId);
    const ring = '-60 -40,100 -40,100 70,-60 70,-60 -40';
    const area = `OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${ring}))')`;
    const name = "contains(Name,'S2')";
    const search = (filter: string) =>
      context.get(`/api/products?filter=${encodeURIComponent(filter)}`);
    const byBox = await context.get('/api/products?bbox=-60,-40,100,70');
    expect(within(byBox)).toEqual(within(await search(area)));
    expect(within(byBox).length).toBeGreaterThan(0);
    expect(within(byBox).length).toBeLessThan(30);
    const both = await context.get(
      `/api/products?bbox=-60,-40,100,70&filter=${encodeURIComponent(name)}`,
    );
    expect(within(both)).toEqual(within(await search(`${area} and ${name}`)));
  });

  it('warns about a box with latitude first, and refuses an invalid one', async () => {
    const context = await openFilled(30, 4);
    const { headers } = await context.get('/api/products?bbox=48,6,45,11');
    expect(headers['earshot-warning']).toContain('If you wrote latitudes first, use 6,45,11,48.');
    expect((await context.get('/api/products?bbox=6,45,11,48')).headers).not.toHaveProperty(
      'earshot-warning',
    );
    const { headers: ofStac } = await context.get('/stac/search?bbox=48,6,45,11');
    expect(ofStac['earshot-warning']).toBe(headers['earshot-warning']);
    const { status, json } = await context.get('/api/products?bbox=1,2,3');
    expect(status).toBe(400);
    expect(json.errors).toEqual([
      'bbox: Use west,south,east,north in degrees, such as 5.5,45,11,48.',
    ]);
  });

  it.each([
    ['?format=geojson&', {}],
    ['?', { Accept: 'application/geo+json' }],
  ])('gives features with footprint, S3 path and download URL: %s', async (search, headers) => {
    const context = await openFilled(30, 4);
    const path = `/api/products${search}limit=7&count=true`;
    const pages: Answer[] = [];
    for (let next = path; next !== null && pages.length < 9; ) {
      pages.push(await context.get(next, { headers }));
      next = pages.at(-1)?.json.next ?? null;
    }
    for (const page of pages) {
      expect(page.headers['content-type']).toBe('application/geo+json');
      expect(page.json).toMatchObject({ type: 'FeatureCollection', count: 30 });
    }
    const features = pages.flatMap(({ json }) => json.features);
    expect(features.map(({ id }) => id)).toEqual(
      context.published.map(({ Id }) => Id).toReversed(),
    );
    const { Id, S3Path, GeoFootprint } = context.published.at(-1) ?? {};
    expect(features[0]).toMatchObject({
      type: 'Feature',
      geometry: { type: GeoFootprint?.type },
      properties: {
        productId: Id,
        s3Path: S3Path,
        downloadUrl: `https://catalogue.test/odata/v1/Products(${Id})/$value`,
      },
    });
  });

  it('has no download URL for deleted products', async () => {
    const context = await openFilled(30, 4);
    const { json } = await context.get('/api/products?deleted=true&format=geojson&limit=1');
    expect(json.features[0].properties).toMatchObject({ downloadUrl: null, s3Path: null });
  });

  it('returns JSON when the parameter requests it, whatever is accepted', async () => {
    const context = await openFilled(30, 4);
    const headers = { Accept: 'application/geo+json' };
    const { json } = await context.get('/api/products?format=json&limit=1', { headers });
    expect(json.products).toHaveLength(1);
  });

  it('refuses a filter as the command line does: with place and advice', async () => {
    const context = await openFilled(30, 4);
    const filter = encodeURIComponent("Naem eq 'x'");
    const { status, json } = await context.get(`/api/products?filter=${filter}`);
    expect(status).toBe(400);
    expect(json.errors.join('\n')).toMatch(/Naem eq 'x'\n\s*\^+/);
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

const idsIn = ({ json }: Answer) => json.summaries.map(({ id }: { id: number }) => id);

describe('/api/summaries', () => {
  it('returns the fields of the command line’s rows, in the same order and form', async () => {
    const context = await openWith([
      summaryRow(1, { productName: 'S2A' }),
      summaryRow(2, { state: 'waiting', text: null, reason: 'Why.', dueAtUs: startUs }),
    ]);
    const { json } = await context.get('/api/summaries');
    expect(json.next).toBe(null);
    expect(Object.keys(json.summaries[0])).toEqual(summaryFields);
    expect(json.summaries[0]).toMatchObject({
      ...{ text: null, model: null, facts: null, createdAt: null, reason: 'Why.' },
      nextTryAt: '2026-05-01T00:00:00.000000Z',
    });
    expect(json.summaries[1]).toEqual({
      ...{ kind: 'product', productId: 'product-1', productName: 'S2A', ...shownText },
      ...{ reason: null, id: 1, state: 'done', subscription: 'alps' },
      requestedAt: '2026-05-01T00:00:00.000000Z',
      ...{ nextTryAt: null, receivedFrom: null, receivedUntil: null, filter: null },
    });
  });

  it('returns every row once, newest first, through its links', async () => {
    const context = await openWith(summaryRows);
    const answers = await follow(context, '/api/summaries?limit=10&state=done', nextOf);
    expect(answers.flatMap(idsIn)).toEqual(summaryRows.map(({ id }) => id).toReversed());
    expect(answers).toHaveLength(3);
    // A page that is exactly full is the last one.
    expect((await context.get('/api/summaries?limit=25')).json.next).toBe(null);
  });

  it.each([
    ['kind=digest', [21]],
    ['state=waiting', [22]],
    ['limit=2', [25, 24]],
    ['productId=product-7', [7]],
    ['subscription=sea', [24]],
    ['since=2026-05-01T03:00:00Z&until=2026-05-01T05:00:00Z', [5, 4]],
    ['since=2026-05-02', [25]],
    ['before=3', [2, 1]],
    ['before=1', []],
  ])('with %s gives %j', async (search, ids) => {
    const changed: Record<number, Parameters<typeof summaryRow>[1]> = {
      21: { kind: 'digest' },
      22: { state: 'waiting' },
      24: { subscription: 'sea' },
    };
    const context = await openWith(summaryRows.map((row) => ({ ...row, ...changed[row.id] })));
    expect(idsIn(await context.get(`/api/summaries?${search}`))).toEqual(ids);
  });

  it('returns texts unchanged, as JSON that no browser renders as a page', async () => {
    const text = '<script>alert(1)</script>\u001b[2J\u202e';
    const kept = { text, model: 'a/b', facts: {}, createdAtUs: 0 };
    const context = await openWith([
      summaryRow(1, { text: kept, reason: text, productName: text }),
    ]);
    const { json, headers } = await context.get('/api/summaries');
    expect(json.summaries[0]).toMatchObject({ text, reason: text, productName: text });
    expect(headers['content-type']).toBe('application/json');
    expect(headers['x-content-type-options']).toBe('nosniff');
  });
});

describe('/api/products?format=csv', () => {
  it('returns the columns of the command line, and the next page in the header Link', async () => {
    const context = await openFilled(5, 0);
    const { status, headers, text } = await context.get('/api/products?format=csv&limit=3');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/csv; charset=utf-8');
    const [head, ...rows] = text.trim().split('\n');
    expect(head).toBe([...productFields, ...productLinkFields].join(','));
    expect(rows).toHaveLength(3);
    const [, next = ''] = /^<(.*)>; rel="next"$/.exec(String(headers.link)) ?? [];
    const rest = await context.get(next);
    expect(rest.text.trim().split('\n')).toHaveLength(3);
    expect(rest.headers.link).toBeUndefined();
  });

  it('does not let a spreadsheet evaluate a name as a formula', async () => {
    const context = await openConsole();
    context.products.add('Products', { Id: 'one', Name: '=1+1' });
    const { text } = await context.get('/api/products?format=csv');
    expect(text).toContain("'=1+1");
  });
});

describe('/api/products?summary=true', () => {
  it('has the text with each product, null where there is none', async () => {
    const context = await openConsole();
    const { products, deleted } = generatedProducts(3);
    context.products.add('Products', ...products);
    context.products.add('DeletedProducts', ...deleted.slice(0, 1));
    const plain = await context.get('/api/products');
    expect(plain.json.products[0]).not.toHaveProperty('summary');
    context.summaries.rows = [
      summaryRow(1, { productId: products[0]?.Id ?? '' }),
      summaryRow(2, { productId: products[1]?.Id ?? '', state: 'waiting', text: null }),
    ];
    const { json } = await context.get('/api/products?summary=true&direction=asc');
    const summaries = json.products.map(({ summary }: { summary: unknown }) => summary);
    expect(summaries).toEqual([shownText, null, null]);
    const gone = await context.get('/api/products?summary=true&deleted=true');
    expect(gone.json.products).toMatchObject([{ productId: products[0]?.Id, summary: shownText }]);
  });
});

const definitions: Definition[] = ['alps', 'sea'].map((subscription) => {
  return { subscription, fromUs: nowUs - 3 * hourUs, events: ['created'], filter: '' };
});

function compared(subscription: string, hoursAgo: number, pushed: number, missing: number) {
  const counts = { expected: pushed + missing, pushed, late: 0, recovered: 0, missing };
  const about = { comparedAtUs: nowUs, event: 'created' } as const;
  return { subscription, hourUs: nowUs - hoursAgo * hourUs, ...about, ...counts };
}

const hours: HourCoverage[] = [compared('alps', 2, 5, 0), compared('alps', 1, 3, 1)];

async function openCompared() {
  const context = await openConsole({
    completeness: createMemoryCompleteness({ definitions, hours }),
  });
  const delay = { count: 8, negative: 0, p50Ms: 1_500, p90Ms: 2_000, p99Ms: 3_000, maxMs: 4_000 };
  context.products.late = [
    {
      subscription: 'alps',
      sensingToPublication: delay,
      publicationToNotification: delay,
      notificationToReceipt: null,
    },
  ];
  return context;
}

describe('/api/coverage', () => {
  it('reports each subscription and hour, and the delays', async () => {
    const { get } = await openCompared();
    const { status, json } = await get(
      '/api/coverage?since=2026-05-02T08:30:00Z&subscription=alps',
    );
    expect(status).toBe(200);
    const none = { expected: 0, pushed: 0, late: 0, recovered: 0, missing: 0 };
    const hour = (at: number, state: string, counts: object = {}) => ({
      ...{ hour: `2026-05-02T${String(at).padStart(2, '0')}:00:00.000000Z`, state },
      ...{ ...none, ...counts },
    });
    const delay = { count: 8, negative: 0, p50: 1.5, p90: 2, p99: 3, max: 4 };
    expect(json).toEqual({
      since: '2026-05-02T08:00:00.000000Z',
      until: '2026-05-02T12:00:00.000000Z',
      missing: 1,
      comparison: { automatic: true, reason: null },
      subscriptions: [
        {
          subscription: 'alps',
          ...{ ...none, expected: 9, pushed: 8, missing: 1 },
          ...{ comparedHours: 2, unknownHours: 1, complete: 8 / 9, pushedShare: 8 / 9 },
          ...{ state: 'partly-compared', pendingHours: 0 },
          nextComparison: '2026-05-02T10:30:00.000000Z',
          hours: [
            hour(8, 'outside'),
            hour(9, 'unknown'),
            hour(10, 'pushed', { expected: 5, pushed: 5 }),
            hour(11, 'missing', { expected: 4, pushed: 3, missing: 1 }),
          ],
          delays: {
            sensingToPublication: delay,
            publicationToNotification: delay,
            notificationToReceipt: null,
          },
        },
      ],
    });
  });

  it('reports the last seven days, of all subscriptions, by default', async () => {
    const { get } = await openCompared();
    const { json } = await get('/api/coverage');
    expect(json).toMatchObject({
      since: '2026-04-25T12:00:00.000000Z',
      until: '2026-05-02T12:00:00.000000Z',
      missing: 1,
      comparison: { automatic: true, reason: null },
      subscriptions: [
        { subscription: 'alps' },
        { subscription: 'sea', complete: null, pushedShare: null, delays: null },
      ],
    });
    expect(json.subscriptions[1].hours).toHaveLength(7 * 24);
  });

  it('is empty without registered subscriptions, and has no delays without an index', async () => {
    const empty = await openConsole();
    expect((await empty.get('/api/coverage')).json).toMatchObject({
      missing: 0,
      subscriptions: [],
    });
    const context = await openCompared();
    context.products.failure = new AppError('unavailable', 'There is no product index yet.');
    const { status, json } = await context.get('/api/coverage');
    expect(status).toBe(200);
    expect(json.subscriptions[0]).toMatchObject({ expected: 9, delays: null });
  });

  it('reports its own failure as an internal error', async () => {
    const context = await openCompared();
    context.products.failure = new Error('broken');
    expect(await context.get('/api/coverage')).toMatchObject({ status: 500 });
  });

  it.each([
    ['since=2026-05-02&until=2026-05-01', 'since must be before until'],
    ['since=2026-05-02T12:00:00Z', 'since must be before until'],
    ['since=2027-01-01', 'since must be before until'],
    ['since=2026-01-01', '100 days'],
    ['since=yesterday', 'since'],
    ['days=7', 'days'],
  ])('refuses %s', async (search, words) => {
    const { get } = await openCompared();
    const { status, text } = await get(`/api/coverage?${search}`);
    expect(status).toBe(400);
    expect(text).toContain(words);
  });
});

describe('an invalid parameter', () => {
  it.each([
    'notifications?limit=0',
    'notifications?limit=1001',
    'notifications?limit=ten',
    'notifications?since=yesterday',
    'notifications?order=up',
    'notifications?limt=3',
    'notifications?name=a&name=b',
    'notifications?after=-1',
    'notifications?source=x',
    'summaries?limit=0',
    'summaries?limit=1001',
    'summaries?kind=area',
    'summaries?state=open',
    'summaries?since=yesterday',
    'summaries?until=25',
    'summaries?before=x',
    'summaries?stat=done',
    'summaries?kind=digest&kind=product',
    'products?deleted=yes',
    'products?orderby=Name',
    'products?limit=5000',
    'products?$filter=x',
    'products?__proto__=x',
    'products?summary=yes',
  ])('is refused by name: %s', async (target) => {
    const { get } = await openConsole();
    const { status, json, headers } = await get(`/api/${target}`);
    expect(status).toBe(400);
    expect(headers['content-type']).toBe('application/problem+json');
    expect(json.errors.join()).toContain(/\?(.*?)=/.exec(target)?.[1]);
  });

  it('is refused when it is a cursor from elsewhere', async () => {
    const { get } = await openConsole();
    expect(await get('/api/products?cursor=x')).toMatchObject({ status: 400 });
  });
});

describe('/api/status', () => {
  it('reports facts and status, with times in ISO 8601', async () => {
    const { get } = await openConsole({ status: async () => sampleStatus(true) });
    const { status, json, headers } = await get('/api/status');
    expect({ status, kept: headers['cache-control'] }).toEqual({ status: 200, kept: 'no-store' });
    expect(json).toMatchObject({
      ...{ at: '2026-05-02T13:00:00.000000Z', version: '0.2.0', ok: false },
      failures: [{ part: 'disk', reason: 'It does not say.' }],
      receiver: { refusing: 'The disk is full.', queue: { bytes: 1_001, bytesMax: 2_001 } },
      log: { usedBytes: 3_001, lastPosition: 6_001, pruned: { position: 9 } },
      certificate: { lifetimeSeconds: 90 * 86_400 + 0.000001 },
      coverage: [{ subscription: 'alps', missing: 19 }],
      readers: [{ name: 'product index', of: 'index', behind: 1_001 }, { of: 'sink' }],
      backups: { made: { bytes: 25_001 }, failed: { error: 'There is no space.' }, everyHours: 25 },
      alerts: [{ kind: 'disk', level: 'warning', nextStep: 'Free some space.' }],
    });
    expect(json.parts).toContainEqual({
      ...{ part: 'disk', level: 'critical', text: 'It has a fault.' },
      ...{ nextStep: 'Run `earshot doctor`.', evidence: ['It says so.'] },
    });
  });

  it('is ok when every part is', async () => {
    const { get } = await openConsole();
    expect((await get('/api/status')).json.ok).toBe(true);
  });

  it('accepts no parameters, and no other method', async () => {
    const { get } = await openConsole();
    expect(await get('/api/status?part=disk')).toMatchObject({ status: 400 });
    expect(await get('/api/status', { method: 'POST' })).toMatchObject({ status: 405 });
  });

  it('does not wait in the queue of log queries', async () => {
    const hanging = Promise.withResolvers<never>();
    const completeness = {
      definitions: () => hanging.promise,
      coverage: () => hanging.promise,
    };
    const context = await openConsole({
      completeness: { ...createMemoryCompleteness(), ...completeness },
      limits: { atOnceMax: 1, waitingMax: 1 },
    });
    const waiting = context.get('/api/coverage').catch(() => null);
    expect((await context.get('/api/status')).status).toBe(200);
    hanging.reject(new Error('enough'));
    await waiting;
  });
});
