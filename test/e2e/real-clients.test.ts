/** Clients of the private listener: OData libraries, GDAL with a password, and OWSLib. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EdmV4, OData } from '@odata/client';
import { o } from 'odata';
import odataQuery from 'odata-query';
import { describe, expect, it } from 'vitest';
import { generatedProducts, openWithPassword } from '../core/api/console-context.ts';
import { generatedBodies } from '../helpers/generated-bodies.ts';
import { installed } from '../helpers/thorough.ts';
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
async function openPushed(bodies = generatedBodies(40).map(String)) {
  const served = await openServed({ index: true });
  for (const body of bodies) expect(await served.post('/notifications/clients', body)).toBe(200);
  const root = `${served.consoleUrl}/odata/v1/`;
  const get = async (path: string, sent?: RequestInit) => {
    const answer = await fetch(root + path, sent);
    const json = await answer.json();
    expect(answer.status, JSON.stringify(json)).toBe(200);
    return json as { value: Record[]; '@odata.count': number } & Record;
  };
  const count = async () => (await get('Products?$count=true&$top=0'))['@odata.count'];
  await expect.poll(count, { timeout: 20_000 }).toBe(bodies.length);
  const records = bodies.map((body): Record => JSON.parse(body).value ?? {});
  return { root, get, records };
}

const namesOf = (records: readonly Pick<Record, 'Name'>[]) => records.map(({ Name }) => Name);
const isSentinel2 = ({ Name }: Record) => Name.startsWith('S2');
const newestFirst = (a: Record, b: Record) => (a.PublicationDate < b.PublicationDate ? 1 : -1);

describe('a library of OData finds the right products:', () => {
  it('odata-query by fields, functions, dates, ids and attributes', async () => {
    const { root, records, ...pushed } = await openPushed();
    const get = (query: Parameters<typeof buildQuery>[0]) =>
      pushed.get(`Products${buildQuery(query)}`);
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
      ...{ orderBy: 'PublicationDate desc', select: ['Id', 'Name'], expand: 'Attributes' },
      ...{ top: 4, skip: 1, count: true },
    });
    const online = ordered.filter((one) => Date.parse(one.PublicationDate) < after.getTime());
    expect(namesOf(page.value)).toEqual(namesOf(online.slice(1, 5)));
    expect(page['@odata.count']).toBe(online.length);
    const any = [{ Name: 'cloudCover' }, { Value: { lt: 50 } }];
    const clear = await get({
      filter: { 'Attributes/OData.CSC.DoubleAttribute': { any } },
      top: 100,
    });
    const cloudOf = ({ Attributes }: Record) =>
      Number(Attributes.find(({ Name }) => Name === 'cloudCover')?.Value ?? 100);
    const expected = records.filter((one) => cloudOf(one) < 50);
    expect(expected.length).toBeGreaterThan(0);
    expect(namesOf(clear.value).toSorted()).toEqual(namesOf(expected).toSorted());
    const ids = records.slice(5, 8).map(({ Id }) => Id);
    const byId = await get({
      filter: { Id: { in: ids.map((value) => ({ type: 'guid', value })) } },
    });
    expect(byId.value.map(({ Id }) => Id).toSorted()).toEqual(ids.toSorted());
    const count = buildQuery({ count: { 'Collection/Name': 'SENTINEL-2' } });
    const counted = await fetch(`${root}Products${count}`);
    expect([counted.status, await counted.text()]).toEqual([200, String(ordered.length)]);
  });

  it('@odata/client by a query, a count, and one id', async () => {
    const { root, records } = await openPushed();
    const products = OData.New4({ serviceEndpoint: root }).getEntitySet<Record>('Products');
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

  it('o.js by a list, one id, and a list of names', async () => {
    const { root, records } = await openPushed();
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

it('a notification without a record has its id and name, in every form of a query', async () => {
  const ids = [0, 1].map((i) => `0ce0aaf7-9708-44e5-a35f-5171947aa74${i}`);
  const names = ['S2A_named.SAFE', null];
  const bodies = ids.map((ProductId, i) =>
    JSON.stringify({
      ...{ SubscriptionEvent: 'created', ProductId, ProductName: names[i] },
      ...{ SubscriptionId: ids[0], NotificationDate: '2026-05-01T00:00:00.000Z', AckId: `${i}` },
    }),
  );
  const { get } = await openPushed(bodies);
  const [named, nameless] = ids.map((Id, i) => ({ Id, Name: names[i] }));
  expect((await get('Products')).value).toMatchObject([nameless, named]);
  expect((await get('Products?$select=Name,Id')).value[1]).toEqual(named);
  expect(await get(`Products(${ids[0]})`)).toMatchObject(named ?? {});
  const body = JSON.stringify({ FilterProducts: [{ Name: names[0] }] });
  const listed = await get('Products/OData.CSC.FilterList', { method: 'POST', body });
  expect(listed.value).toMatchObject([named]);
});

const run = promisify(execFile);
const page = readFileSync(join(import.meta.dirname, '../../docs/stac.md'), 'utf8');

it.skipIf(!installed('/usr/bin/ogrinfo'))(
  'GDAL reads with a password, as the page shows',
  async () => {
    const { products, origin } = await openWithPassword();
    products.add('Products', ...generatedProducts(12).products);
    const [command = ''] = /^ogrinfo .*USERPWD=.*$/m.exec(page) ?? [];
    expect(command).toContain('-oo USERPWD=earshot:<password>');
    const used = command.replace('http://127.0.0.1:8080', origin);
    const { stdout } = await run('sh', ['-c', used.replace('<password>', "'a: word'")]);
    expect(stdout).toContain('Feature Count: ');
    const inside = /`(GDAL_HTTP_USERPWD=earshot:)<password>`/.exec(page)?.[1];
    const set = `${inside}'a: word' ${used.replace(/ -oo USERPWD=\S+/, '')}`;
    expect((await run('sh', ['-c', set])).stdout).toBe(stdout);
    const wrong = await run('sh', ['-c', used.replace('<password>', 'wrong')]).catch((one) => one);
    expect(`${wrong.stdout}${wrong.stderr}`).toContain(
      'A valid user name and password are required.',
    );
  },
);
