/** `/api/notifications` and `/api/products`, as a program uses them. */
import { describe, expect, it } from 'vitest';
import { notificationFields } from '../../src/domain/json-rows.ts';
import type { NotificationQuery, NotificationRow } from '../../src/domain/ports.ts';
import {
  type Answer,
  createMemoryLog,
  follow,
  generatedProducts,
  openConsole,
} from './console-world.ts';

const rows = Array.from(
  { length: 25 },
  (_, i): NotificationRow => ({
    position: i + 1,
    ackId: i % 2 === 0 ? `ack-${i}` : null,
    productId: `product-${i}`,
    productName: null,
    event: 'created',
    subscription: 'alps',
    subscriptionId: null,
    notificationDateUs: i % 3 === 0 ? null : 1_777_777_777_777_777,
    receivedAtUs: 1_777_777_777_000_001,
    source: 'push',
    timesSeen: 1,
    lastSeenAtUs: 1_777_777_777_000_001,
    bodyIndex: 0,
  }),
);

const nextOf = (json: Answer['json']) => json.next;

describe('/api/notifications', () => {
  it('gives the fields of the command line’s rows, in its form', async () => {
    const world = await openConsole({ notifications: createMemoryLog(rows) });
    const { json } = await world.get('/api/notifications?limit=2');
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

  it.each(['newest', 'oldest'])('gives every row once, %s first, by its links', async (order) => {
    const world = await openConsole({ notifications: createMemoryLog(rows) });
    const answers = await follow(world, `/api/notifications?order=${order}&limit=10`, nextOf);
    const positions = answers.flatMap(({ json }) =>
      json.notifications.map(({ position }: NotificationRow) => position),
    );
    const oldestFirst = rows.map(({ position }) => position);
    expect(positions).toEqual(order === 'oldest' ? oldestFirst : oldestFirst.toReversed());
    expect(answers).toHaveLength(3);
  });

  it('asks the log for what the parameters say', async () => {
    const noted: NotificationQuery[] = [];
    const world = await openConsole({ notifications: createMemoryLog(rows, noted) });
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
    await world.get(`/api/notifications?${search}&event=Created,modified&event=deleted`);
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
    'limit=0',
    'limit=1001',
    'limit=ten',
    'since=yesterday',
    'order=up',
    'limt=3',
    'name=a&name=b',
    'after=-1',
    'source=x',
  ])('refuses %s, and names it', async (search) => {
    const world = await openConsole();
    const { status, json, headers } = await world.get(`/api/notifications?${search}`);
    expect(status).toBe(400);
    expect(headers['content-type']).toBe('application/problem+json');
    expect(json.errors.join()).toContain(search.split('=')[0]);
  });
});

describe('/api/products', () => {
  async function openFilled() {
    const world = await openConsole();
    const { products, deleted } = generatedProducts(30);
    world.products.add('Products', ...products);
    world.products.add('DeletedProducts', ...deleted.slice(0, 4));
    return { ...world, published: products };
  }

  const namesIn = (answers: readonly Answer[]) =>
    answers.flatMap(({ json }) =>
      json.products.map(({ productName }: { productName: string }) => productName),
    );

  it('gives every match once, newest first, by its links', async () => {
    const world = await openFilled();
    const filter = encodeURIComponent("contains(Name,'S')");
    const answers = await follow(
      world,
      `/api/products?limit=8&count=true&filter=${filter}`,
      nextOf,
    );
    const matching = world.published.filter(({ Name }) => Name.includes('S')).toReversed();
    expect(namesIn(answers)).toEqual(matching.map(({ Name }) => Name));
    expect(answers.map(({ json }) => json.count)).toEqual(answers.map(() => matching.length));
  });

  it('orders by a date, either way', async () => {
    const world = await openFilled();
    const search = 'orderby=PublicationDate&direction=asc&limit=20';
    const answers = await follow(world, `/api/products?${search}`, nextOf);
    expect(namesIn(answers)).toEqual(world.published.map(({ Name }) => Name));
  });

  it('refuses an order that only the others have, and says which there are', async () => {
    const world = await openFilled();
    const refused = [
      ['orderby=DeletionDate', /^orderby: .*received.*PublicationDate, ModificationDate$/],
      ['deleted=true&orderby=PublicationDate', /^orderby: .*received.*DeletionDate$/],
      ['deleted=true&orderby=ModificationDate', /^orderby: .*received.*DeletionDate$/],
    ] as const;
    for (const [search, errors] of refused) {
      const { status, json } = await world.get(`/api/products?${search}`);
      expect({ search, status }).toEqual({ search, status: 400 });
      expect(json.errors.join()).toMatch(errors);
    }
    for (const search of ['orderby=ModificationDate', 'orderby=DeletionDate&deleted=true']) {
      expect(await world.get(`/api/products?${search}`)).toMatchObject({ status: 200 });
    }
  });

  it('has the record when asked, and the deleted ones', async () => {
    const world = await openFilled();
    const plain = await world.get('/api/products?limit=1');
    expect(plain.json.products[0]).not.toHaveProperty('record');
    expect(plain.json).not.toHaveProperty('count');
    const whole = await world.get('/api/products?limit=1&record=true');
    expect(whole.json.products[0]).toMatchObject({
      publicationDate: world.published.at(-1)?.PublicationDate,
      deletionDate: null,
      record: world.published.at(-1),
    });
    const { json } = await world.get('/api/products?deleted=true');
    expect(json.products).toHaveLength(4);
    expect(json.products[0].deletionDate).toMatch(/^\d{4}-.*Z$/);
  });

  it('chooses by a box, together with a filter', async () => {
    const world = await openFilled();
    const within = ({ json }: Answer) =>
      json.products.map(({ productId }: { productId: string }) => productId);
    const ring = '-60 -40,100 -40,100 70,-60 70,-60 -40';
    const area = `OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${ring}))')`;
    const name = "contains(Name,'S2')";
    const asked = (filter: string) =>
      world.get(`/api/products?filter=${encodeURIComponent(filter)}`);
    const byBox = await world.get('/api/products?bbox=-60,-40,100,70');
    expect(within(byBox)).toEqual(within(await asked(area)));
    expect(within(byBox).length).toBeGreaterThan(0);
    expect(within(byBox).length).toBeLessThan(30);
    const both = await world.get(
      `/api/products?bbox=-60,-40,100,70&filter=${encodeURIComponent(name)}`,
    );
    expect(within(both)).toEqual(within(await asked(`${area} and ${name}`)));
  });

  it('warns of a box that looks like latitude first, and refuses one that is none', async () => {
    const world = await openFilled();
    const { headers } = await world.get('/api/products?bbox=48,6,45,11');
    expect(headers['earshot-warning']).toContain('If latitudes come first here, use 6,45,11,48.');
    expect((await world.get('/api/products?bbox=6,45,11,48')).headers).not.toHaveProperty(
      'earshot-warning',
    );
    const { status, json } = await world.get('/api/products?bbox=1,2,3');
    expect(status).toBe(400);
    expect(json.errors).toEqual([
      'bbox: Use west,south,east,north in degrees, such as 5.5,45,11,48.',
    ]);
  });

  it.each([
    ['?format=geojson&', {}],
    ['?', { Accept: 'application/geo+json' }],
  ])('gives features with footprint, S3 path and download URL: %s', async (search, headers) => {
    const world = await openFilled();
    const path = `/api/products${search}limit=7&count=true`;
    const pages: Answer[] = [];
    for (let next = path; next !== null && pages.length < 9; ) {
      pages.push(await world.get(next, { headers }));
      next = pages.at(-1)?.json.next ?? null;
    }
    for (const page of pages) {
      expect(page.headers['content-type']).toBe('application/geo+json');
      expect(page.json).toMatchObject({ type: 'FeatureCollection', count: 30 });
    }
    const features = pages.flatMap(({ json }) => json.features);
    expect(features.map(({ id }) => id)).toEqual(world.published.map(({ Id }) => Id).toReversed());
    const { Id, S3Path, GeoFootprint } = world.published.at(-1) ?? {};
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

  it('has no download URL for what is deleted', async () => {
    const world = await openFilled();
    const { json } = await world.get('/api/products?deleted=true&format=geojson&limit=1');
    expect(json.features[0].properties).toMatchObject({ downloadUrl: null, s3Path: null });
  });

  it('gives JSON where the parameter says so, whatever is accepted', async () => {
    const world = await openFilled();
    const headers = { Accept: 'application/geo+json' };
    const { json } = await world.get('/api/products?format=json&limit=1', { headers });
    expect(json.products).toHaveLength(1);
  });

  it('refuses a filter as the command line does: the place, and what to try', async () => {
    const world = await openFilled();
    const filter = encodeURIComponent("Naem eq 'x'");
    const { status, json } = await world.get(`/api/products?filter=${filter}`);
    expect(status).toBe(400);
    expect(json.errors.join('\n')).toMatch(/Naem eq 'x'\n\s*\^+/);
  });

  it.each(['cursor=x', 'deleted=yes', 'orderby=Name', 'limit=5000', '$filter=x', '__proto__=x'])(
    'refuses %s',
    async (search) => {
      const world = await openConsole();
      expect(await world.get(`/api/products?${search}`)).toMatchObject({ status: 400 });
    },
  );
});
