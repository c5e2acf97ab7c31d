/** A product's row has its newest state, whatever the order of its notifications. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FoundProduct } from '../../../../src/filter/products.ts';
import { openProductContext, type TestEvent, type TestRecord } from './product-context.ts';

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1) + minute * 60_000).toISOString();

const alive = (Id: string, minute: number, more: object = {}): TestRecord => ({
  Id,
  Name: `${Id}.SAFE`,
  PublicationDate: at(0),
  ModificationDate: at(minute),
  ContentLength: minute,
  ...more,
});
const gone = (Id: string, minute: number, DeletionCause = 'Other'): TestRecord => ({
  Id,
  Name: `${Id}.SAFE`,
  DeletionDate: at(minute),
  DeletionCause,
});

/** An event of one product, at one of a few minutes so that some coincide. */
const someEvent = fc
  .record({
    minute: fc.integer({ min: 1, max: 6 }),
    event: fc.constantFrom('created', 'modified', 'deleted'),
    hasRecord: fc.constantFrom(true, true, true, false),
    variant: fc.boolean(),
  })
  .map(({ minute, event, hasRecord, variant }): TestEvent => {
    const record =
      event === 'deleted'
        ? gone('p', minute, variant ? 'Other' : 'Corrupted product')
        : alive('p', minute, { Online: variant });
    return { event, record: hasRecord ? record : null, notificationDate: at(minute + 1) };
  });

/** Some events, and the same events in another order, some of them twice. */
const shuffled = fc.array(someEvent, { minLength: 1, maxLength: 5 }).chain((list) => {
  const all = [...list, ...list.slice(0, 2)];
  const length = { minLength: all.length, maxLength: all.length };
  return fc.tuple(fc.constant(list), fc.shuffledSubarray(all, length));
});

function named(list: readonly TestEvent[], productId: string): TestEvent[] {
  return list.map((one) => {
    const record = one.record === null ? null : { ...one.record, Id: productId };
    return { ...one, productId, productName: 'p.SAFE', record };
  });
}

/** The fields that must not depend on the order: all except ids and times of receipt. */
function stateOf({ row, record }: FoundProduct) {
  const { position: _, productId: __, receivedAtUs: ___, ...state } = row;
  return { state, record: { ...record, Id: null } };
}

describe('the state of a product', () => {
  it('is the same whatever the order and number of its notifications', async () => {
    const context = await openProductContext();
    const cases = fc.sample(shuffled, 500);
    await context.index(
      ...cases.flatMap(([inOrder, shuffle], i) => [
        ...named(inOrder, `${i}-in-order`),
        ...named(shuffle, `${i}-shuffled`),
      ]),
    );
    const found = [...(await context.find('Products')), ...(await context.find('DeletedProducts'))];
    const states = new Map(found.map((one) => [one.row.productId, stateOf(one)]));
    expect(found).toHaveLength(2 * cases.length);
    cases.forEach(([inOrder], i) => {
      expect(states.get(`${i}-shuffled`), JSON.stringify(inOrder)).toEqual(
        states.get(`${i}-in-order`),
      );
    });
  }, 30_000);

  it('is that of the newest modification or deletion, even when older events arrive later', async () => {
    const context = await openProductContext();
    await context.index(
      { event: 'modified', record: alive('changed', 9) },
      { event: 'created', record: alive('changed', 1) },
      { event: 'modified', record: alive('changed', 5) },
      { event: 'deleted', record: gone('gone', 5, 'Corrupted product') },
      { event: 'modified', record: alive('gone', 4) },
      { event: 'deleted', record: gone('restored', 5) },
      { event: 'modified', record: alive('restored', 6) },
    );
    expect(await context.find('Products')).toMatchObject([
      { row: { productId: 'restored', deletionDateUs: null } },
      { record: { ContentLength: 9 }, row: { productId: 'changed', sizeBytes: 9, position: 1 } },
    ]);
    const record = gone('gone', 5, 'Corrupted product');
    expect(await context.find('DeletedProducts')).toMatchObject([{ record }]);
  });

  it('keeps the last record when the deletion has none, with the time of receipt', async () => {
    const context = await openProductContext();
    await context.index(
      { event: 'created', record: alive('a', 1, { Online: true }) },
      { event: 'deleted', record: null, productId: 'a', notificationDate: at(8) },
    );
    const [tombstone] = await context.find('DeletedProducts', `DeletionDate ge ${at(8)}`);
    expect(tombstone?.record).toMatchObject({ ContentLength: 1, DeletionCause: null });
    expect(tombstone?.row.deletionDateUs).toBe(Date.parse(at(8)) * 1000);
  });

  it('has the path of its record, whatever the path and the name', async () => {
    const context = await openProductContext();
    const part = fc.constantFrom('/', '"', 'a.SAFE', '\0', '.zip', '\\', 'é');
    const anyText = fc.array(part, { maxLength: 4 }).map((parts) => parts.join(''));
    const record = fc.record({ Name: anyText, folder: anyText, end: anyText });
    const records = fc.sample(record, { numRuns: 150, seed: 1 }).flatMap((one, i) => [
      { Id: `${i}-any`, Name: one.Name, S3Path: `${one.folder}${one.end}` },
      { Id: `${i}-usual`, Name: one.Name, S3Path: `/eodata/${one.folder}/${one.Name}` },
    ]);
    await context.index(...records.map((record) => ({ event: 'created', record })));
    const found = await context.find('Products', '', { records: false });
    const paths = new Map(found.map(({ row }) => [row.productId, row.s3Path]));
    expect(paths).toEqual(new Map(records.map(({ Id, S3Path }) => [Id, S3Path])));
  });

  it('is only a name until a record arrives', async () => {
    const context = await openProductContext();
    await context.index({ event: 'created', record: null, productId: 'a', productName: 'a.SAFE' });
    expect(await context.find('Products', "contains(Name,'a.SA')")).toMatchObject([
      { record: { Id: 'a', Name: 'a.SAFE' }, row: { productName: 'a.SAFE', sizeBytes: null } },
    ]);
    await context.index({ event: 'modified', record: alive('a', 3, { Name: 'b.SAFE' }) });
    expect(await context.find('Products', "contains(Name,'a.SA')")).toEqual([]);
    expect(await context.find('Products', "contains(Name,'b.SA')")).toHaveLength(1);
  });
});
