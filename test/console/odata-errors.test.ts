/** Refusals of queries: those recorded of the catalogue, byte for byte, and those of our own. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Answer, openConsole } from './console-world.ts';

const fixtures = new URL('../../../shared/fixtures/errors/', import.meta.url);
const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';
const recordings = missing
  ? []
  : readdirSync(fixtures).filter((name) => /^products-\d{3}-\d+\.json$/.test(name));

const idForm = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g;
const withoutIds = (text: string) => text.replaceAll(idForm, '<id>');

/** The id in the header must be the one in the body, where the body has one. */
function expectOneId({ json, headers }: Answer) {
  expect(headers['request-id']).toMatch(idForm);
  if (!Array.isArray(json.detail)) expect(json.detail.request_id).toBe(headers['request-id']);
}

async function refusalOf(search: string, entity = 'Products') {
  const world = await openConsole();
  const answer = await world.get(`/odata/v1/${entity}?${search}`);
  expectOneId(answer);
  return { status: answer.status, detail: answer.json.detail };
}

describe('a refusal of the catalogue is repeated', () => {
  it('by as many tests as there are recordings', (context) => {
    if (missing) context.skip(missing);
    expect(recordings.length).toBeGreaterThanOrEqual(7);
  });

  it.each(recordings)('as in %s', async (name) => {
    const { request, response } = JSON.parse(readFileSync(new URL(name, fixtures), 'utf8'));
    const world = await openConsole();
    const { pathname, search } = new URL(request.uri);
    const answer = await world.get(pathname + search);
    expect(answer.status).toBe(response.status.code);
    expect(withoutIds(answer.text)).toBe(withoutIds(JSON.stringify(response.body)));
    expect(answer.headers['content-type']).toBe(response.headers['Content-Type']);
    expect(String(Buffer.byteLength(answer.text))).toBe(response.headers['Content-Length']);
    expectOneId(answer);
  });
});

describe('a query is refused', () => {
  it.each([
    ['$filter=foo%20eq%20%27bar%27', /^Invalid field: .*foo.*\(at character 1 of \$filter\)/],
    ['$filter=Online%20and%20DeletionDate%20gt%202024-01-01', /^Invalid /],
    ['$filter=DeletionDate%20gt%202024-01-01', /^Invalid field: /],
    ['$filter=Name%20eq%20S2A', /^Invalid value: .*\(at character 9 of \$filter\)/],
    ['$filter=Name%20eq', /^Invalid value: /],
    [`$filter=${'('.repeat(3000)}`, /^Invalid value: /],
    ['filter=Online%20eq%20true', /^Invalid option: filter\. Did you mean \$filter\?/],
    ['$fliter=Online%20eq%20true', /^Invalid option: \$fliter\. Did you mean \$filter\?/],
    ['top=5', /Did you mean \$top\?/],
    ['$orderby=Name', /^Invalid value: Invalid field name in the order by clause/],
    ['$orderby=PublicationDate%20down', /order by clause/],
    ['$orderby=PublicationDate%20asc,ContentDate/Start%20asc', /order by clause/],
    ['$orderby=DeletionDate', /order by clause/],
    ['$orderby=PublicationDate%20constructor', /order by clause/],
    ['$orderby=PublicationDate%20__proto__', /order by clause/],
    ['$orderby=constructor', /order by clause/],
    ['$select=constructor', /^Invalid field in select: constructor$/],
    ['$expand=__proto__', /^Expand parameter only accepts/],
    ['$filter=constructor%20eq%201', /^Invalid field: /],
    ['$select=Id,Attributes', /^Invalid field in select: Attributes$/],
    ['$expand=attributes', /^Expand parameter only accepts/],
    ['$filter=&$filter=Online', /^Invalid value: \$filter is given more than once\.$/],
  ])('with 400 and the reason for %s', async (search, message) => {
    const { status, detail } = await refusalOf(search.slice(0, 8_000));
    expect(status).toBe(400);
    expect(detail.message).toMatch(message);
  });

  it('with 422 and all that is wrong with its numbers', async () => {
    const { status, detail } = await refusalOf('$top=ten&$skip=&$count=maybe');
    expect(status).toBe(422);
    expect(
      detail.map(({ type, loc, input }: Record<string, unknown>) => [type, loc, input]),
    ).toEqual([
      ['int_parsing', ['query', '$top'], 'ten'],
      ['int_parsing', ['query', '$skip'], ''],
      ['bool_parsing', ['query', '$count'], 'maybe'],
    ]);
  });

  it('by what its own entity knows', async () => {
    const deleted = 'DeletedProducts';
    expect((await refusalOf('$orderby=PublicationDate', deleted)).status).toBe(400);
    expect((await refusalOf('$select=Online', deleted)).detail.message).toBe(
      'Invalid field in select: Online',
    );
  });

  it('with nothing but the known words where the path leads nowhere', async () => {
    const world = await openConsole();
    for (const path of [
      'Product',
      "Products('x')",
      'Products(x)/$value',
      'Products/',
      '$metadata',
      '',
      '../v2/Products',
    ]) {
      const { status, text, headers } = await world.get(`/odata/v1/${path}`);
      expect({ status, text }).toEqual({ status: 404, text: '{"detail":"Invalid odata path"}' });
      expect(headers['request-id']).toMatch(idForm);
    }
  });
});

describe('a query is answered', () => {
  it.each([
    '$top=1000&$skip=10000',
    '$count=True',
    '$count=0',
    '$filter=',
    '$filter=%20',
    '$orderby=',
    '$orderby=contentdate/start',
    '$orderby=ModificationDate%20DESC',
    '$select=',
    '$select=*',
    '$expand=',
    '$format=json',
    'unknown=1',
  ])('for %s', async (search) => {
    const world = await openConsole();
    expect(await world.get(`/odata/v1/Products?${search}`)).toMatchObject({ status: 200 });
  });
});
