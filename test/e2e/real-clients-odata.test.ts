/** OData libraries that read the private listener: odata-query, @odata/client and o.js. */
import { EdmV4, OData } from '@odata/client';
import { o } from 'odata';
import odataQuery from 'odata-query';
import { describe, expect, it } from 'vitest';
import { generatedBodies } from '../helpers/generated-bodies.ts';
import { openServed } from '../receiver/served-context.ts';

// The package declares its types as CommonJS, but the import is the function itself.
const buildQuery = odataQuery as unknown as typeof odataQuery.default;

interface Record {
  Id: string;
  Name: string;
  PublicationDate: string;
  Attributes: { Name: string; Value: unknown }[];
}

/** Opens a receiver whose index has read all pushes. */
async function openFilled() {
  const served = await openServed({ index: true });
  const bodies = generatedBodies(40).map(String);
  for (const body of bodies) expect(await served.post('/notifications/clients', body)).toBe(200);
  const root = `${served.consoleUrl}/odata/v1/`;
  const count = async () => {
    const answer = await fetch(`${root}Products?$count=true&$top=0`);
    return Object(await answer.json())['@odata.count'];
  };
  await expect.poll(count, { timeout: 20_000 }).toBe(bodies.length);
  const records = bodies.map((body): Record => JSON.parse(body).value);
  return { root, records };
}

const attributeOf = (record: Record, name: string) =>
  record.Attributes.find((one) => one.Name === name)?.Value;
const namesOf = (records: readonly Pick<Record, 'Name'>[]) => records.map(({ Name }) => Name);
const isSentinel2 = ({ Name }: Record) => Name.startsWith('S2');
const newestFirst = (a: Record, b: Record) => (a.PublicationDate < b.PublicationDate ? 1 : -1);

describe('odata-query', () => {
  it('builds queries by fields, functions, dates, ids and attributes that find the right products', async () => {
    const { root, records } = await openFilled();
    const get = async (query: Parameters<typeof buildQuery>[0]) => {
      const answer = await fetch(`${root}Products${buildQuery(query)}`);
      const json = await answer.json();
      expect(answer.status, JSON.stringify(json)).toBe(200);
      return json as { value: Record[]; '@odata.count'?: number };
    };
    const ordered = records.filter(isSentinel2).toSorted(newestFirst);
    // Dates of the catalogue are more precise than those of JavaScript.
    const after = new Date(Date.parse(ordered[3]?.PublicationDate ?? '') + 1);
    const page = await get({
      filter: {
        and: [
          { 'Collection/Name': 'SENTINEL-2' },
          { Name: { startswith: 'S2' } },
          { PublicationDate: { lt: after } },
          { not: { Online: false } },
        ],
      },
      orderBy: 'PublicationDate desc',
      select: ['Id', 'Name'],
      expand: 'Attributes',
      top: 4,
      skip: 1,
      count: true,
    });
    const online = ordered.filter((one) => Date.parse(one.PublicationDate) < after.getTime());
    expect(namesOf(page.value)).toEqual(namesOf(online.slice(1, 5)));
    expect(page['@odata.count']).toBe(online.length);
    const clear = await get({
      filter: {
        'Attributes/OData.CSC.DoubleAttribute': {
          any: [{ Name: 'cloudCover' }, { Value: { lt: 50 } }],
        },
      },
      top: 100,
    });
    const expected = records.filter((one) => Number(attributeOf(one, 'cloudCover') ?? 100) < 50);
    expect(expected.length).toBeGreaterThan(0);
    expect(namesOf(clear.value).toSorted()).toEqual(namesOf(expected).toSorted());
    const ids = records.slice(5, 8).map(({ Id }) => Id);
    const byId = await get({
      filter: { Id: { in: ids.map((value) => ({ type: 'guid', value })) } },
    });
    expect(byId.value.map(({ Id }) => Id).toSorted()).toEqual(ids.toSorted());
    const counted = await fetch(
      `${root}Products${buildQuery({ count: { 'Collection/Name': 'SENTINEL-2' } })}`,
    );
    expect([counted.status, await counted.text()]).toEqual([200, String(ordered.length)]);
  });
});

describe('@odata/client', () => {
  it('queries, counts, and retrieves one product by its id', async () => {
    const { root, records } = await openFilled();
    const client = OData.New4({ serviceEndpoint: root });
    const products = client.getEntitySet<Record>('Products');
    const ordered = records.filter(isSentinel2).toSorted(newestFirst);
    const filter = OData.newFilter().property('Collection/Name').eq("'SENTINEL-2'");
    const query = OData.newOptions().filter(filter).orderby('PublicationDate', 'desc').top(5);
    const found = await products.query(query.select(['Name', 'PublicationDate']));
    expect(namesOf(found)).toEqual(namesOf(ordered.slice(0, 5)));
    expect(await products.count(filter)).toBe(ordered.length);
    const [first] = records;
    const one = await products.retrieve(EdmV4.Guid.from(first?.Id ?? ''));
    expect(one.Name).toBe(first?.Name);
    expect(namesOf(await products.find({ Name: first?.Name ?? '' }))).toEqual([first?.Name]);
  });
});

describe('o.js', () => {
  it('reads a list, one product, and products by a list of names', async () => {
    const { root, records } = await openFilled();
    const ordered = records.toSorted(newestFirst);
    const options = { $orderby: 'PublicationDate desc', $top: 3, $expand: 'Attributes' };
    const found: Record[] = await o(root).get('Products').query(options);
    expect(namesOf(found)).toEqual(namesOf(ordered.slice(0, 3)));
    expect(found[0]?.Attributes).toEqual(ordered[0]?.Attributes);
    const one = await o(root).get(`Products(${ordered[0]?.Id})`).query();
    expect(one.Name).toBe(ordered[0]?.Name);
    const names = namesOf(records).slice(4, 9);
    const body = { FilterProducts: names.map((Name) => ({ Name })) };
    const listed: Record[] = await o(root).post('Products/OData.CSC.FilterList', body).query();
    expect(namesOf(listed).toSorted()).toEqual(names.toSorted());
    const refused = o(root).get('Products').query({ $filter: "foo eq 'bar'" });
    await expect(refused).rejects.toMatchObject({ status: 400 });
  });
});

describe('a notification without a record', () => {
  it('has its id and name, in every form of a query', async () => {
    const served = await openServed({ index: true });
    const ids = [0, 1, 2, 3].map((i) => `0ce0aaf7-9708-44e5-a35f-5171947aa74${i}`);
    const bodyOf = (event: string, i: number) => ({
      SubscriptionEvent: event,
      ProductId: ids[i],
      ProductName: `S2A_${event}.SAFE`,
      SubscriptionId: ids[0],
      NotificationDate: '2026-05-01T00:00:00.000Z',
      AckId: `ack-${i}`,
    });
    for (const [i, event] of ['created', 'modified', 'deleted'].entries()) {
      const body = JSON.stringify(bodyOf(event, i));
      expect(await served.post('/notifications/bare', body)).toBe(200);
    }
    const root = `${served.consoleUrl}/odata/v1/`;
    const get = async (path: string, sent?: RequestInit) => {
      const answer: unknown = await (await fetch(root + path, sent)).json();
      return answer as { value: Record[] } & Record;
    };
    const named = (i: number) => ({ Id: ids[i], Name: expect.stringMatching(/^S2A_.*\.SAFE$/) });
    const list = () => get('DeletedProducts').then(({ value }) => value);
    await expect.poll(list, { timeout: 20_000 }).toMatchObject([named(2)]);
    expect((await get('Products')).value).toMatchObject([named(1), named(0)]);
    expect((await get('Products?$select=Name,Id')).value[0]).toEqual(named(1));
    expect(await get(`Products(${ids[0]})`)).toMatchObject(named(0));
    expect(await get(`DeletedProducts(${ids[2]})`)).toMatchObject(named(2));
    const body = JSON.stringify({ FilterProducts: [{ Name: 'S2A_created.SAFE' }] });
    const listed = await get('Products/OData.CSC.FilterList', { method: 'POST', body });
    expect(listed.value).toMatchObject([named(0)]);
    const client = OData.New4({ serviceEndpoint: root });
    const nameless = { ...bodyOf('created', 3), ProductName: null };
    expect(await served.post('/notifications/bare', JSON.stringify(nameless))).toBe(200);
    const newest = () => get('Products?$top=1').then(({ value }) => value);
    await expect.poll(newest, { timeout: 20_000 }).toEqual([{ Id: ids[3], Name: null }]);
    const one = await client
      .getEntitySet<Record>('Products')
      .retrieve(EdmV4.Guid.from(ids[1] ?? ''));
    expect(one).toMatchObject(named(1));
  });
});
