/** Product queries from indexes and packed blocks: the same results as a full scan. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { requireFilter } from '../../src/filter/check.ts';
import { compileFilter } from '../../src/filter/evaluate.ts';
import { productView } from '../../src/filter/product-view.ts';
import type { NotificationEvent } from '../../src/sandbox/delivery/notification.ts';
import { serviceSettingsSchema } from '../../src/sandbox/live-settings.ts';
import { createProductGenerator } from '../../src/sandbox/products/product-generator.ts';
import { createHoldings } from '../../src/sandbox/publishing/holdings.ts';
import { createRecordArchive } from '../../src/sandbox/publishing/record-archive.ts';
import { answerProductQuery } from '../../src/sandbox/services/product-queries.ts';

type Record = ReturnType<ReturnType<typeof createRecordArchive>['keep']>['record'];
type Holdings = ReturnType<typeof createHoldings>;

const settings = serviceSettingsSchema.parse({});
// Few ids and few dates, so that equal dates, changes and recreated products are frequent.
const dates = ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.000001Z', '2026-01-01T00:00:01.5Z'];
const day = fc.constantFrom(...dates);
const product = fc.record(
  {
    Id: fc.constantFrom(...'abcdefghijkl', 'A', 'B').map((letter) => `${letter}0`),
    Name: fc.constantFrom('S1A_X', 'S2A_Y'),
    PublicationDate: day,
    ModificationDate: day,
    DeletionDate: day,
    ContentDate: fc.record({ Start: day, End: day }),
  },
  { requiredKeys: ['Id', 'Name'] },
);
const events = fc.array(
  fc.tuple(fc.constantFrom<NotificationEvent>('created', 'modified', 'deleted'), product),
  { maxLength: 40 },
);
const condition = (entity: 'Products' | 'DeletedProducts') =>
  fc.oneof(
    fc
      .tuple(
        fc.constantFrom(
          ...(entity === 'Products' ? ['PublicationDate', 'ModificationDate'] : ['DeletionDate']),
          'ContentDate/Start',
        ),
        fc.constantFrom('lt', 'le', 'gt', 'ge', 'eq', 'ne'),
        day,
      )
      .map((parts) => parts.join(' ')),
    fc.constantFrom(
      "startswith(Name,'S1')",
      "not (Name eq 'S1A_X')",
      'ContentDate/End lt 2027-01-01',
    ),
  );
const filterOf = (entity: 'Products' | 'DeletedProducts') =>
  fc.oneof(
    fc.array(condition(entity), { maxLength: 4 }).map((terms) => terms.join(' and ')),
    fc.tuple(condition(entity), condition(entity)).map((terms) => `(${terms.join(' or ')})`),
  );
const query = fc.constantFrom('Products' as const, 'DeletedProducts' as const).chain((entity) =>
  fc.record({
    entity: fc.constant(entity),
    filter: filterOf(entity),
    field: fc.constantFrom(
      '',
      'ContentDate/End',
      ...(entity === 'Products' ? ['PublicationDate', 'ModificationDate'] : ['DeletionDate']),
    ),
    direction: fc.constantFrom('asc', 'desc'),
    skip: fc.integer({ min: 0, max: 6 }),
    top: fc.integer({ min: 0, max: 6 }),
    count: fc.boolean(),
  }),
);
type Query = typeof query extends fc.Arbitrary<infer Value> ? Value : never;

/** Returns the newest states in order of arrival, without an index. */
function plainHoldings(
  history: readonly (readonly [NotificationEvent, Record])[],
  holdingsMax: number,
) {
  const of = { Products: new Map<string, Record>(), DeletedProducts: new Map<string, Record>() };
  for (const [event, record] of history) {
    const [into, other] =
      event === 'deleted' ? [of.DeletedProducts, of.Products] : [of.Products, of.DeletedProducts];
    const key = record.Id.toLowerCase();
    other.delete(key);
    if (event === 'deleted') into.delete(key);
    into.set(key, record);
    const [oldest] = into.keys();
    if (into.size > holdingsMax && oldest !== undefined) into.delete(oldest);
  }
  return of;
}

/** Filters every record, then sorts the matches. */
function plainAnswer(
  records: Record[],
  { entity, filter, field, direction, skip, top, count }: Query,
) {
  const tree = requireFilter(filter, entity);
  const matches = tree === null ? () => true : compileFilter(tree);
  const found = records.filter((record) => matches(productView(record)));
  const sign = direction === 'asc' ? 1 : -1;
  const dateOf = (record: Record) => productView(record).dateUs(field) ?? Number.NEGATIVE_INFINITY;
  if (field !== '') {
    found.sort((one, other) => {
      const [a, b] = [dateOf(one), dateOf(other)];
      if (a !== b) return a < b ? -sign : sign;
      return one.Id.toLowerCase() < other.Id.toLowerCase() ? -1 : 1;
    });
  }
  return {
    value: found.slice(skip, skip + top).map(({ Id }) => Id),
    isMore: found.length > skip + top && top > 0,
    count: count ? found.length : undefined,
  };
}

function ask(holdings: Holdings, asked: Query) {
  const { entity, filter, field, direction, skip, top, count } = asked;
  const url = new URL(`http://localhost/odata/v1/${entity}`);
  if (filter !== '') url.searchParams.set('$filter', filter);
  if (field !== '') url.searchParams.set('$orderby', `${field} ${direction}`);
  for (const [name, value] of Object.entries({ skip, top, count })) {
    url.searchParams.set(`$${name}`, String(value));
  }
  const answer = answerProductQuery({ url, holdings, settings, requestId: 'r' }, entity, null);
  const body = answer.body as { value: Record[] } & { [name: string]: unknown };
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return {
    value: body.value.map(({ Id }) => Id),
    isMore: '@odata.nextLink' in body,
    count: body['@odata.count'],
  };
}

describe('holdings', () => {
  it('answer every query like a full scan', () => {
    fc.assert(
      fc.property(
        events,
        fc.constantFrom(3, 100),
        fc.array(query, { minLength: 1, maxLength: 5 }),
        (history, holdingsMax, queries) => {
          const holdings = createHoldings({ holdingsMax });
          for (const [event, record] of history) holdings.apply(event, record as Record);
          const plain = plainHoldings(history as [NotificationEvent, Record][], holdingsMax);
          for (const asked of queries) {
            const expected = plainAnswer([...plain[asked.entity].values()], asked);
            expect(ask(holdings, asked)).toEqual(expected);
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  it('read no more than the requested range of dates', () => {
    const holdings = createHoldings();
    const atMs = (index: number) => Date.UTC(2026, 0, 1) + index * 1_000;
    for (let index = 0; index < 5_000; index += 1) {
      const PublicationDate = new Date(atMs(index)).toISOString();
      holdings.apply('created', { Id: `id-${index}`, Name: `n-${index}`, PublicationDate });
    }
    const range = { fromUs: atMs(2_000) * 1_000, toUs: atMs(2_100) * 1_000 };
    const ranges = new Map([['PublicationDate' as const, range]]);
    const orderby = { field: 'PublicationDate' as const, direction: 'asc' as const };
    const selection = holdings.select('Products', { ranges, orderby });
    expect([selection.size, selection.covered]).toEqual([100, 'PublicationDate']);
    const names = [...selection.items(98)].map(({ record }) => record.Name);
    expect(names).toEqual(['n-2098', 'n-2099']);
  });

  it('list a delayed record only from its publication time on, unless it is deleted before', () => {
    let nowMs = 0;
    const holdings = createHoldings({ now: () => nowMs });
    holdings.apply('created', { Id: 'a', Name: 'a' }, 10);
    holdings.apply('modified', { Id: 'a', Name: 'newer' }, 10);
    holdings.apply('created', { Id: 'b', Name: 'b' }, 5);
    holdings.apply('created', { Id: 'c', Name: 'c' }, 20);
    holdings.apply('deleted', {
      Id: 'C',
      Name: 'c',
      '@odata.context': '$metadata#DeletedProducts(Attributes())/$entity',
      DeletionDate: dates[0] ?? '',
      DeletionCause: 'Other',
    });
    const names = () =>
      [...holdings.select('Products', { ranges: new Map(), orderby: null }).items(0)].map(
        ({ record }) => record.Name,
      );
    expect(holdings.totals()).toMatchObject({ products: 0, deletedProducts: 1 });
    expect(holdings.find('Products', 'a')).toBeUndefined();
    nowMs = 9;
    expect(names()).toEqual(['b']);
    nowMs = 30;
    expect(names()).toEqual(['b', 'newer']);
    expect(holdings.find('Products', 'A')?.record.Name).toBe('newer');
  });
});

describe('the archive of records', () => {
  it('returns packed records unchanged', () => {
    const generator = createProductGenerator({ seed: 3 });
    const archive = createRecordArchive();
    const kept = Array.from({ length: 4_600 }, (_, index) => {
      const record = generator.next(Date.UTC(2026, 0, 1) + index * 1_000);
      return { stored: archive.keep(record), record };
    });
    for (const { stored, record } of kept.slice(0, 40)) {
      expect(stored.record).not.toBe(record);
      expect(stored.record).toEqual(record);
      expect(stored.view.text('Collection/Name')).toBe(productView(record).text('Collection/Name'));
    }
    const newest = kept.at(-1);
    expect(newest?.stored.record).toBe(newest?.record);
  });
});
