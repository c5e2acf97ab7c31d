/** Drift: every shape has an example, and the examples show nothing else. */
import { describe, expect, it } from 'vitest';
import { driftShapes } from '../../src/domain/notification.ts';
import { read, readOne, sample, varied } from './sample-notification.ts';

const brokenUtf8 = Buffer.from(JSON.stringify(varied({ ProductName: 'A~B' })));
brokenUtf8[brokenUtf8.indexOf('~')] = 0xff;
const { value } = sample;

/** For each shape a body whose only drift it is. */
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
/** Given by the store, which alone knows earlier notifications. */
const foundByStore = 'ack-id-reused';

describe('the drift shape', () => {
  it.each(driftShapes.filter((shape) => shape !== foundByStore))('%s has an example', (shape) => {
    const example = examples[shape];
    expect(example, `an example of ${shape} is missing in this file`).toBeDefined();
    expect(read(example?.body).drift).toEqual([shape]);
    expect(read(example?.body).faults).toEqual([]);
  });

  it.each([17, {}, [], true, ''])('notification-date-odd is told of the date %j', (date) => {
    expect(readOne(varied({ NotificationDate: date }))).toMatchObject({
      notificationDateUs: null,
      drift: ['notification-date-odd'],
    });
  });

  it.each([17, 'text', [], true])('value-odd is told of the value %j', (odd) => {
    expect(readOne(varied({ value: odd })).drift).toEqual(['value-odd']);
  });

  it.each(['SubscriptionId', 'NotificationDate', 'AckId', 'value'])(
    'of an absent field is told of %s null, too',
    (name) => {
      expect(readOne(varied({ [name]: null })).drift).toEqual(
        readOne(varied({ [name]: undefined })).drift,
      );
    },
  );
});

describe('a field that nobody knows', () => {
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
  ])('and has a name %s shares a shape with its like', (_title, name) => {
    expect(readOne(varied({ [name]: 1 })).drift).toEqual(['unknown-field:(odd name)']);
  });

  it('inside the product is no drift: the catalogue adds some every year', () => {
    expect(readOne(varied({ value: { ...value, Novelty: 1 } })).drift).toEqual([]);
  });
});
