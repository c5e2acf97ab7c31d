/** Output formats of `earshot query`, for programs and for people. */
import { describe, expect, test } from 'vitest';
import { expectEnd, printed, printedJson } from '../../helpers/fake-io.ts';
import {
  createContext,
  delivery,
  filledContext,
  numbered,
  rawDelivery,
  subscriptionId,
} from '../../helpers/filled-store.ts';
import { deliveryOf } from '../products/product-samples.ts';

/** The fields of the interface contract, in its order. */
const fields = [
  ...'position ackId productId productName event subscription subscriptionId'.split(' '),
  ...'notificationDate receivedAt source timesSeen'.split(' '),
];
const fullRow = {
  position: 1,
  ackId: 'ack-1',
  productId: 'product-1',
  productName: 'S2A_ONE.SAFE',
  event: 'created',
  subscription: 'sea-ice',
  subscriptionId,
  notificationDate: '2026-05-02T09:00:00.500000Z',
  receivedAt: '2026-05-02T11:00:00.000000Z',
  source: 'push',
  timesSeen: 2,
};
const bareRow = {
  ...fullRow,
  position: 2,
  ackId: null,
  productName: null,
  subscription: null,
  subscriptionId: null,
  notificationDate: null,
  timesSeen: 1,
};

/** A duplicate notification with every field, and one with almost none. */
async function createTwoRows() {
  const context = createContext();
  const bare = { AckId: undefined, ProductName: undefined, SubscriptionId: undefined };
  await context.fill([
    delivery(),
    delivery({ ...bare, NotificationDate: undefined }, { subscription: null }),
    delivery(),
  ]);
  return context;
}

const it = test.extend('context', () => createTwoRows());

describe('the rows for programs', () => {
  it('are the documented fields, as an array or one JSON object a line', async ({ context }) => {
    const out = await printed(context.earshot('query --json --order oldest'));
    expect(JSON.parse(out)).toEqual([fullRow, bareRow]);
    for (const row of JSON.parse(out)) expect(Object.keys(row)).toEqual(fields);
    const lines = (await context.earshot('query --output ndjson --order oldest')).out.split('\n');
    expect(lines.map((line) => line && JSON.parse(line))).toEqual([fullRow, bareRow, '']);
    expect((await context.earshot('query --json --event deleted')).out).toBe('[]\n');
  });

  it('are a header and comma-separated lines as csv, absent values empty', async ({ context }) => {
    const { out } = await context.earshot('query --output csv --order oldest');
    expect(out.split('\n')).toEqual([
      fields.join(','),
      Object.values(fullRow).join(','),
      '2,,product-1,,created,,,,2026-05-02T11:00:00.000000Z,push,1',
      '',
    ]);
  });

  it('have quoted names in csv, and never a formula', async () => {
    const name = '=a "quoted",\r\nnäme, with 氷,\u2028 and more';
    const context = await filledContext([delivery({ ProductName: name })]);
    const { out } = await context.earshot('query --output csv');
    expect(out).toContain(`,product-1,"'${name.replaceAll('"', '""')}",created,`);
  });
});

const sentinel2 = 'S2A_MSIL2A_20260501T103021_N0511_R108_T31UFR_20260501T140000.SAFE';
const box = 'POLYGON ((5 51, 6 51, 6 52, 5 52, 5 51))';
/** Control characters, and marks that reverse text. */
const unprintable = /[\p{Cc}\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u2028\u2029]/u;

describe('the table', () => {
  it('has a header line, and one line per row', async ({ context }) => {
    const { out } = await context.earshot('query --order oldest');
    expect(out.split('\n')).toEqual([
      'received (UTC)    event    product       cloud  place  sensed (UTC)  type  tile/orbit  subscription  position  seen',
      '2026-05-02 11:00  created  S2A_ONE.SAFE      -  -      -             -     -           sea-ice              1     2',
      '2026-05-02 11:00  created  product-1         -  -      -             -     -           -                    2     1',
      '',
    ]);
  });

  it('always has the product name, whole if it fits, else shortened in the middle, and drops position, subscription and times seen first', async () => {
    const context = createContext();
    await context.fill([
      deliveryOf({
        ...{ id: 'product-1', name: sentinel2, cloud: 19.96, area: box },
        sensed: '2026-05-01T10:30:21Z',
      }),
    ]);
    const titlesAt = async (columns: number) => {
      const { out } = await context.earshot('query', { isTTY: true, columns });
      const [title = '', line = ''] = out.split('\n');
      expect(Math.max(title.length, line.length)).toBeLessThanOrEqual(columns);
      expect(line.includes(sentinel2)).toBe(columns >= 120);
      if (columns < 120) expect(line).toMatch(/S2A_MSI\S*…\S*\.SAFE/);
      return title.split(/ {2,}/);
    };
    expect(await titlesAt(60)).toEqual(['received (UTC)', 'event', 'product']);
    expect(await titlesAt(80)).toEqual(['received (UTC)', 'event', 'product']);
    expect(await titlesAt(120)).toEqual(['received (UTC)', 'event', 'product', 'cloud']);
    const wide = ['received (UTC)', 'event', 'product', 'cloud', 'place', 'sensed (UTC)'];
    expect(await titlesAt(160)).toEqual([...wide, 'type']);
    expect(await titlesAt(240)).toEqual([
      ...wide,
      ...['type', 'tile/orbit', 'subscription', 'position', 'seen'],
    ]);
  });

  it('has the columns of --columns, with the same names as csv', async ({ context }) => {
    const argv = ['query', '--order', 'oldest', '--columns', 'ackId,event'];
    expect((await context.earshot(argv)).out).toBe(
      'ackId  event\nack-1  created\n-      created\n',
    );
    const csv = await context.earshot([...argv, '--output', 'csv']);
    expect(csv.out).toBe('ackId,event\nack-1,created\n,created\n');
    const wrong = await expectEnd(context.earshot('query --columns tile'), 2);
    expect(wrong.err).toMatch(/no column tile.*ackId/);
  });

  it('removes control characters of external texts', async () => {
    const context = createContext();
    const hostile =
      '\u001b[2J\u001b]0;title\u0007\u009b31m\u202e\r\n\tevil\u0000\u007f\u2066\u061c';
    await context.fill([
      delivery({ ProductName: hostile, SubscriptionEvent: hostile }),
      delivery({ ProductName: undefined, ProductId: `id${hostile}x`, AckId: 'ack-2' }),
    ]);
    const tail = ['tail', '--from', 'start', '--no-follow'];
    const argvs = [
      ['query'],
      ['query', '--output', 'csv'],
      ['query', '--json'],
      ['query', '--body'],
      tail,
      [...tail, '--output', 'ndjson'],
    ];
    for (const argv of argvs) {
      const out = await printed(context.earshot(argv, { isTTY: true, columns: 120 }));
      expect(out).toContain('evil');
      for (const line of out.split('\n')) expect(line).not.toMatch(unprintable);
    }
  });
});

it('query drift counts the shapes, most frequent first', async () => {
  const context = await filledContext([
    delivery({ SubscriptionEvent: 'Created' }),
    delivery({ SubscriptionEvent: 'CREATED', AckId: 'ack-2' }),
    delivery({ AckId: 'ack-3', value: 'odd' }),
  ]);
  const at = '2026-05-02T11:00:00.000000Z';
  expect(await printedJson(context.earshot('query drift --json'))).toEqual([
    { shape: 'event-case', count: 2, firstSeenAt: at, lastSeenAt: at },
    { shape: 'value-odd', count: 1, firstSeenAt: at, lastSeenAt: at },
  ]);
  const { out } = await context.earshot('query drift');
  expect(out).toMatch(/^shape +count +first seen.*\n[\s\S]*^value-odd +1 +20/m);
  const none = await filledContext([delivery()]);
  expect(await printed(none.earshot('query drift --json'))).toBe('[]\n');
});

it('--body prints a body with several notifications once', async () => {
  const context = createContext();
  const items = [1, 2, 3].map((i) => ({
    ...{ SubscriptionEvent: 'created', ProductId: `product-${i}`, AckId: `ack-${i}` },
  }));
  await context.fill([rawDelivery(JSON.stringify(items)), ...numbered(4, 4)]);
  const { out } = await expectEnd(context.earshot('query --body --order oldest'), 0);
  const bodies = out.split('\n');
  expect(bodies).toHaveLength(2);
  expect(JSON.parse(bodies[0] ?? '')).toEqual(items);
});
