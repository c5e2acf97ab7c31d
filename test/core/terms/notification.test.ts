/** The tolerant reader: accepted forms, faults, drift, dates, and real records. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDateUs, millisecondOf, parseDate } from '../../../src/core/terms/dates.ts';
import { driftShapes, type FaultCode } from '../../../src/core/terms/notification.ts';
import { read, readOne, sample, sampleRead, varied } from './sample-notification.ts';

describe('a body', () => {
  it.each([
    [sample.AckId, sample.AckId, []],
    [undefined, null, ['ack-id-absent']],
    ['', null, ['ack-id-odd']],
    [17, '17', ['ack-id-odd']],
    [{}, null, ['ack-id-odd']],
  ])('with the AckId %j is read in each form, and its drift recorded', (AckId, ackId, drift) => {
    const usual = varied({ AckId });
    const capitalised = varied({ AckId, value: undefined, Value: sample.value });
    for (const [body, more] of [
      [usual, []],
      [[usual], ['body-array']],
      [capitalised, ['value-capitalised']],
      [[capitalised], ['body-array', 'value-capitalised']],
    ] as const) {
      const { drift: found, ...notification } = readOne(body);
      expect(notification).toEqual({ ...sampleRead, ackId });
      expect(found.toSorted()).toEqual([...drift, ...more].toSorted());
    }
  });

  it('keeps the position of each notification in its array, after invalid elements', () => {
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

  it('uses the product for missing fields', () => {
    const bare = { ProductId: undefined, ProductName: undefined };
    for (const product of [{}, { value: undefined, Value: sample.value }]) {
      expect(readOne(varied({ ...bare, ...product }))).toMatchObject({
        productId: sample.ProductId,
        productName: sample.ProductName,
      });
    }
  });

  it('takes precedence over the product', () => {
    const other = varied({ ProductId: 'other', ProductName: 'other name' });
    expect(readOne(other)).toMatchObject({ productId: 'other', productName: 'other name' });
  });

  it('with only product and event is a notification', () => {
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

  it('reads nothing from a prototype that it defines', () => {
    const text = '{"SubscriptionEvent":"created","__proto__":{"ProductId":"p"}}';
    expect(read(text).faults.map(({ code }) => code)).toEqual(['product-id-missing']);
  });
});

type GivenElsewhere = 'unsupported-encoding' | 'ack-id-reused' | 'not-storable';

/** Every code of the reader. */
const faultExamples = {
  'empty-body': ['', ' \r\n\t ', '\ufeff'],
  'too-large': [`"${'x'.repeat(2 ** 20)}"`],
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
});

const brokenUtf8 = Buffer.from(JSON.stringify(varied({ ProductName: 'A~B' })));
brokenUtf8[brokenUtf8.indexOf('~')] = 0xff;
const { value } = sample;

/** For each shape, a body with only this drift. */
const examples: Record<string, { body: unknown }> = {
  'utf8-invalid': { body: new Uint8Array(brokenUtf8) },
  'body-array': { body: [sample] },
  'ack-id-absent': { body: varied({ AckId: undefined }) },
  'ack-id-odd': { body: varied({ AckId: 17 }) },
  'event-case': { body: varied({ SubscriptionEvent: 'Created' }) },
  'event-in-array': { body: varied({ SubscriptionEvent: ['created'] }) },
  'event-unknown': { body: varied({ SubscriptionEvent: 'restored' }) },
  'product-id-from-value': { body: varied({ ProductId: undefined }) },
  'product-id-differs-from-value': { body: varied({ ProductId: 'another' }) },
  'product-name-absent': {
    body: varied({ ProductName: undefined, value: { ...value, Name: undefined } }),
  },
  'subscription-id-absent': { body: varied({ SubscriptionId: undefined }) },
  'notification-date-absent': { body: varied({ NotificationDate: undefined }) },
  'notification-date-odd': { body: varied({ NotificationDate: 'yesterday' }) },
  'notification-date-without-zone': { body: varied({ NotificationDate: '2026-05-01T14:20:00' }) },
  'value-absent': { body: varied({ value: undefined }) },
  'value-capitalised': { body: varied({ value: undefined, Value: value }) },
  'value-odd': { body: varied({ value: [value] }) },
};
/** Reported by the store, which alone knows earlier notifications. */
const foundByStore = 'ack-id-reused';

it.each(driftShapes.filter((shape) => shape !== foundByStore))(
  'the drift shape %s has an example',
  (shape) => {
    const example = examples[shape];
    expect(example, `an example of ${shape} is missing in this file`).toBeDefined();
    expect(read(example?.body).drift).toEqual([shape]);
    expect(read(example?.body).faults).toEqual([]);
  },
);

describe('an unknown field', () => {
  it('is named', () => {
    expect(readOne(varied({ Priority: 1, 'x-y.z@1': 2 })).drift).toEqual([
      'unknown-field:Priority',
      'unknown-field:x-y.z@1',
    ]);
  });

  it.each([
    ['with blanks', 'my field'],
    ['with control characters', '\u001b[31m'],
    ['that is empty', ''],
    ['that is too long', 'x'.repeat(65)],
    ['in another script', 'имя'],
  ])('with a name %s shares a shape with similar names', (_title, name) => {
    expect(readOne(varied({ [name]: 1 })).drift).toEqual(['unknown-field:(odd name)']);
  });

  it('inside the product is not drift: the catalogue adds some every year', () => {
    expect(readOne(varied({ value: { ...value, Novelty: 1 } })).drift).toEqual([]);
  });
});

const secondUs = Date.UTC(2026, 4, 1, 14, 20, 5) * 1000;
/** Digits of a fraction; cut to n digits, the fraction has a known value in microseconds. */
const digits = '123456789';
const fractionUs = [
  0, 100_000, 120_000, 123_000, 123_400, 123_450, 123_456, 123_456, 123_456, 123_456,
];

describe('a date', () => {
  const cases = fractionUs.flatMap((us, count) =>
    ['Z', ''].map((zone) => {
      const fraction = count === 0 ? '' : `.${digits.slice(0, count)}`;
      return { text: `2026-05-01T14:20:05${fraction}${zone}`, us: secondUs + us, zone };
    }),
  );

  it.each(cases)('$text is read, digits below a microsecond are cut', ({ text, us, zone }) => {
    expect(parseDate(text)).toEqual({ us, zoned: zone === 'Z' });
    expect(readOne(varied({ NotificationDate: text }))).toMatchObject({
      notificationDateUs: us,
      drift: zone === 'Z' ? [] : ['notification-date-without-zone'],
    });
  });

  it.each([
    ['2026-05-01T16:20:05+02:00', secondUs],
    ['2026-05-01T08:50:05-05:30', secondUs],
    ['2026-05-01 14:20:05Z', secondUs],
    [' 2026-05-01T14:20:05Z\n', secondUs],
    ['2026-05-01T14:20:05,5Z', secondUs + 500_000],
    ['2026-05-01T14:20Z', secondUs - 5_000_000],
    ['1969-12-31T23:59:59.999999Z', -1],
    // Leap seconds are the start of the next second.
    ['1990-12-31T15:59:60.75-08:00', Date.UTC(1991, 0, 1) * 1000],
    ['2026-05-01T14:20:60Z', secondUs + 55_000_000],
  ])('%j is read', (text, us) => {
    expect(parseDate(text)).toEqual({ us, zoned: true });
  });

  it('without a time is midnight, UTC', () => {
    expect(parseDate('2026-05-01')).toEqual({ us: Date.UTC(2026, 4, 1) * 1000, zoned: false });
  });

  it.each([
    '',
    'yesterday',
    '2026-05',
    '2026-13-01',
    '2026-02-29',
    '2026-05-01T24:00:00Z',
    '2026-05-01T14:60:00Z',
    '2026-05-01T14:20:61Z',
    '9999-12-31T23:59:60Z',
    '0000-01-01T00:00:00+00:01',
    '2026-05-01T14:20:05.Z',
    '2026-05-01T14:20:05 Europe/Rome',
    '2026-05-01T14:20:05+99:99',
    'x2026-05-01T14:20:05Z',
    '1777645205',
  ])('%j is not a date', (text) => {
    expect(parseDate(text)).toBeNull();
  });
});

/** Texts of the years 0000 to 9999, UTC, with six digits. */
const anyDate = fc
  .tuple(
    fc.date({
      min: new Date('0000-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    }),
    fc.nat(999),
  )
  .map(([date, us]) => date.toISOString().replace('Z', `${String(us).padStart(3, '0')}Z`));

const usOf = (text: string) => parseDate(text)?.us ?? Number.NaN;

/** A time is exact to the microsecond from 1684 to 2255, and to the millisecond in other years. */
const represented = (text: string) =>
  text > '1684-07-28T00:12:25.260' && text < '2255-06-05T23:47:34.740'
    ? text
    : `${text.slice(0, 23)}Z`;

describe('writing a date', () => {
  it('gives six digits and UTC', () => {
    expect(formatDateUs(0)).toBe('1970-01-01T00:00:00.000000Z');
    expect(formatDateUs(secondUs + 7)).toBe('2026-05-01T14:20:05.000007Z');
    expect(formatDateUs(-1)).toBe('1969-12-31T23:59:59.999999Z');
  });

  it('survives a round trip', () => {
    fc.assert(
      fc.property(anyDate, (text) => {
        const us = usOf(text);
        expect(formatDateUs(us)).toBe(represented(text));
        expect(parseDate(formatDateUs(us))).toEqual({ us, zoned: true });
        expect(millisecondOf(us)).toBe(Date.parse(text));
      }),
    );
  });
});

const fixtures = new URL('../../../../shared/fixtures/', import.meta.url);
const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';

/** The notification of a product, as the catalogue sends it. */
function notificationOf(product: { Id: string; Name: string }) {
  return varied({ ProductId: product.Id, ProductName: product.Name, value: product });
}

describe('the reader accepts', () => {
  it('every recorded product record, without drift', (context) => {
    if (missing) context.skip(missing);
    const lines = readFileSync(new URL('products.jsonl', fixtures), 'utf8').trim().split('\n');
    expect(lines.length).toBeGreaterThan(100);
    for (const line of lines) {
      const product = JSON.parse(line);
      const read = readOne(notificationOf(product));
      expect(read).toMatchObject({ productId: product.Id, productName: product.Name, drift: [] });
    }
  });

  it('every documented example of a notification', (context) => {
    if (missing) context.skip(missing);
    const folder = new URL('notifications/', fixtures);
    const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) {
      const body = readFileSync(new URL(name, folder));
      const { notifications, faults, drift } = read(new Uint8Array(body));
      expect(faults, name).toEqual([]);
      expect(notifications.length, name).toBeGreaterThan(0);
      expect(notifications.every(({ notificationDateUs }) => notificationDateUs !== null)).toBe(
        true,
      );
      expect(drift.filter((shape) => shape.startsWith('unknown-field:'))).toEqual([]);
    }
  });
});
