/** The tolerant reader: every accepted form, and every reason to refuse. */
import { describe, expect, it } from 'vitest';
import type { FaultCode } from '../../src/domain/notification.ts';
import { read, readOne, sample, sampleRead, varied } from './sample-notification.ts';

/** All combinations of the forms in which a notification is known to come. */
const ackIds = [
  { title: 'an AckId', changes: {}, ackId: sample.AckId, drift: [] },
  { title: 'no AckId', changes: { AckId: undefined }, ackId: null, drift: ['ack-id-absent'] },
  { title: 'AckId null', changes: { AckId: null }, ackId: null, drift: ['ack-id-absent'] },
  { title: 'an empty AckId', changes: { AckId: '' }, ackId: null, drift: ['ack-id-odd'] },
  { title: 'a number as AckId', changes: { AckId: 17 }, ackId: '17', drift: ['ack-id-odd'] },
  { title: 'an object as AckId', changes: { AckId: {} }, ackId: null, drift: ['ack-id-odd'] },
  { title: 'a GUID as AckId', changes: { AckId: sample.ProductId }, ackId: sample.ProductId },
];
const values = [
  { title: 'value', changes: {}, drift: [] },
  {
    title: 'Value',
    changes: { value: undefined, Value: sample.value },
    drift: ['value-capitalised'],
  },
];
const wraps = [
  { title: 'one object', wrap: (item: object): unknown => item, drift: [] },
  { title: 'an array of one', wrap: (item: object): unknown => [item], drift: ['body-array'] },
];
const combinations = ackIds.flatMap((ack) =>
  values.flatMap((value) => wraps.map((wrap) => ({ ack, value, wrap }))),
);

describe('a body', () => {
  it.each(combinations)(
    'of $wrap.title with $value.title and $ack.title is read, and its drift noted',
    ({ ack, value, wrap }) => {
      const { drift, ...notification } = readOne(
        wrap.wrap(varied({ ...ack.changes, ...value.changes })),
      );
      expect(notification).toEqual({ ...sampleRead, ackId: ack.ackId });
      const expected = [...wrap.drift, ...(ack.drift ?? []), ...value.drift];
      expect(drift.toSorted()).toEqual(expected.toSorted());
    },
  );

  it('in the documented form shows no drift at all', () => {
    expect(readOne(sample)).toEqual({ ...sampleRead, drift: [] });
  });

  it('keeps the place of each notification in its array, past those that are none', () => {
    const { notifications, faults } = read([sample, 7, varied({ AckId: 'second' }), {}]);
    expect(notifications.map(({ index, ackId }) => [index, ackId])).toEqual([
      [0, sample.AckId],
      [2, 'second'],
    ]);
    expect(faults.map(({ code, index }) => [code, index])).toEqual([
      ['not-an-object', 1],
      ['event-missing', 3],
    ]);
  });

  it('with a byte order mark is read without drift', () => {
    expect(readOne(`\ufeff${JSON.stringify(sample)}`)).toEqual({ ...sampleRead, drift: [] });
  });

  it('with broken UTF-8 is read all the same', () => {
    const bytes = Buffer.from(JSON.stringify(varied({ ProductName: 'A~B' })));
    bytes[bytes.indexOf('~')] = 0xff;
    expect(readOne(new Uint8Array(bytes))).toMatchObject({
      productName: 'A\ufffdB',
      drift: ['utf8-invalid'],
    });
  });

  it('with a deletion in the documented form is read', () => {
    const value = {
      '@odata.context': '$metadata#DeletedProducts(Attributes())/$entity',
      Id: sample.ProductId,
      Name: sample.ProductName,
      DeletionDate: '2026-05-02T00:00:00.000000Z',
      DeletionCause: 'Reprocessed product',
      Attributes: [],
    };
    const deleted = varied({ SubscriptionEvent: 'deleted', value });
    expect(readOne(deleted)).toEqual({ ...sampleRead, event: 'deleted', drift: [] });
  });

  it.each([
    ['Created', 'created'],
    ['MODIFIED', 'modified'],
    [' deleted ', 'deleted'],
  ])('with the event %j has the event %s', (written, event) => {
    expect(readOne(varied({ SubscriptionEvent: written })).event).toBe(event);
  });

  it('takes what it lacks from the product', () => {
    const bare = { ProductId: undefined, ProductName: undefined };
    for (const product of [{}, { value: undefined, Value: sample.value }]) {
      expect(readOne(varied({ ...bare, ...product }))).toMatchObject({
        productId: sample.ProductId,
        productName: sample.ProductName,
      });
    }
  });

  it('is taken at its own word when the product says otherwise', () => {
    const other = varied({ ProductId: 'other', ProductName: 'other name' });
    expect(readOne(other)).toMatchObject({ productId: 'other', productName: 'other name' });
  });

  it('with nothing but product and event is a notification', () => {
    const { drift: _, ...rest } = readOne({ SubscriptionEvent: 'created', ProductId: 'p' });
    expect(rest).toEqual({
      index: 0,
      ackId: null,
      productId: 'p',
      productName: null,
      event: 'created',
      subscriptionId: null,
      notificationDateUs: null,
    });
  });

  it('finds nothing in a prototype that it brings along', () => {
    const text = '{"SubscriptionEvent":"created","__proto__":{"ProductId":"p"}}';
    expect(read(text).faults.map(({ code }) => code)).toEqual(['product-id-missing']);
  });
});

type GivenElsewhere =
  | 'unsupported-encoding'
  | 'undecodable-body'
  | 'ack-id-reused'
  | 'not-storable';

/** Each code that the reader gives. */
const faultExamples = {
  'empty-body': ['', ' \r\n\t ', '\ufeff'],
  'not-json': ['nonsense', '{"SubscriptionEvent":', '{} {}', "{'a':1}", 'NaN', '\u0000'],
  'not-an-object': ['7', '"created"', 'null', 'true', '[7]', '[null]', '[[]]'],
  'empty-array': ['[]', ' [ ] '],
  'too-deep': [`${'['.repeat(101)}${']'.repeat(101)}`],
  'event-missing': ['{}', '{"ProductId":"p"}', '{"ProductId":"p","SubscriptionEvent":null}'],
  'product-id-missing': [
    '{"SubscriptionEvent":"created"}',
    '{"SubscriptionEvent":"created","ProductId":" "}',
    '{"SubscriptionEvent":"created","ProductId":{},"value":[]}',
  ],
} satisfies Record<Exclude<FaultCode, GivenElsewhere>, string[]>;

describe('the reader refuses', () => {
  const cases = Object.entries(faultExamples).flatMap(([code, bodies]) =>
    bodies.map((body) => ({ code, body })),
  );

  it.each(cases)('$body as $code', ({ code, body }) => {
    const { notifications, faults } = read(body);
    expect(notifications).toEqual([]);
    expect(faults.map((fault) => fault.code)).toEqual([code]);
    expect(faults[0]?.message).toMatch(/^[\x20-\x7e]{10,}$/);
  });

  it.each([[''], [' '], [17.5], [true], [{}], [[]], [['created', 'modified']], [[['created']]]])(
    'the event %j',
    (event) => {
      const { faults } = read(varied({ SubscriptionEvent: event }));
      expect(faults.map(({ code }) => code)).toEqual(['event-missing']);
    },
  );

  it('with a message that shows no character of the body that is not plain', () => {
    const [fault] = read('\u001b[31mé').faults;
    expect(fault?.code).toBe('not-json');
    expect(fault?.message).toMatch(/^[\x20-\x7e]+$/);
    expect(fault?.message.length).toBeLessThan(300);
  });
});
