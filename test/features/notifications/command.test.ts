/** `earshot query`: selection, order and paging. */
import { afterAll, describe, expect, it } from 'vitest';
import { formatDateUs } from '../../../src/core/terms/dates.ts';
import { expectEnd, nowUs } from '../../helpers/fake-io.ts';
import {
  createContext,
  delivery,
  filledContext,
  hourUs,
  numbered,
  rawDelivery,
} from '../../helpers/filled-store.ts';
import { agedDeliveries } from './aged-deliveries.ts';

/** Five notifications that differ in every field that a filter can use. */
async function createVariedContext() {
  const context = createContext(afterAll);
  const ago = (hours: number) => ({ receivedAtUs: nowUs - hours * hourUs });
  const date = (hours: number) => ({ NotificationDate: formatDateUs(nowUs - hours * hourUs) });
  await context.fill([
    delivery({ ...date(49) }, ago(48)),
    delivery(
      { ...date(72), AckId: 'ack-2', ProductId: 'product-2', ProductName: 'S2B_TWO.SAFE' },
      { ...ago(3), source: 'reconcile' },
    ),
    delivery(
      { ...date(2), AckId: 'ack-3', SubscriptionEvent: 'Modified' },
      { ...ago(1.5), subscription: 'fires' },
    ),
    delivery(
      {
        ...{ ...date(1), AckId: 'ack-4', SubscriptionEvent: 'deleted' },
        ...{ ProductId: 'product-3', ProductName: 'S1[A]_*3?.SAFE' },
      },
      { ...ago(0.5), subscription: null },
    ),
    delivery(
      {
        ...{ AckId: undefined, ProductId: 'product-4', ProductName: undefined },
        ...{ NotificationDate: undefined, SubscriptionId: undefined },
      },
      ago(0),
    ),
  ]);
  return context;
}

// These tests only read: they share one data directory, since filling it takes longer than a query.
const context = await createVariedContext();

describe('query', () => {
  it.each<[string, number[]]>([
    ['', [5, 4, 3, 2, 1]],
    ['--ack-id ack-3', [3]],
    ['--product-id product-1', [3, 1]],
    ['--event created', [5, 2, 1]],
    ['--event Deleted,MODIFIED', [4, 3]],
    ['--subscription fires', [3]],
    ['--source reconcile', [2]],
    ['--since 90m', [5, 4, 3]],
    ['--since 1w --until 3h', [1]],
    ['--since 2026-05-02T10:30:00.000001Z', [5, 4]],
    ['--since 2026-05-02T12:30:00+02:00 --until 2026-05-02T10:30:01Z', [3]],
    ['--time notification --since 50h', [4, 3, 1]],
    ['--time notification --until 50h', [2]],
    ['--after 3', [5, 4]],
    ['--after 1 --before 5 --order oldest', [2, 3, 4]],
    ['--limit 2 --order oldest', [1, 2]],
    ['--event created --product-id product-1 --since 7d', [1]],
  ])('%s selects the positions %j', async (line, positions) => {
    const argv = line.split(' ').filter((word) => word !== '');
    expect(await context.positions(['query', ...argv])).toEqual(positions);
  });

  it('warns on stderr of an undocumented event, and searches for it', async () => {
    const argv = ['query', '--event', 'created,updated', '--json'];
    const { out, err } = await expectEnd(context.earshot(argv), 0);
    expect(JSON.parse(out)).toHaveLength(3);
    expect(err).toBe(`Unknown event "updated". Documented events: created, modified, deleted.\n`);
    expect((await context.earshot('query --event Deleted')).err).toBe('');
  });

  it('reports on stderr that nothing matches, and exits 0', async () => {
    const { code, out, err } = await context.earshot('query --product-id none');
    expect({ code, out }).toEqual({ code: 0, out: '' });
    expect(err).toBe(
      'No notification matches. To show the newest notifications: `earshot query`.\n',
    );
    const named = await context.earshot('query --name S2A');
    expect(named.err).toMatch(/^No notification matches\. --name is case-sensitive and must match/);
  });

  it('prints 50 rows in a table, with the flag of the next page, and all of them as JSON', async () => {
    const large = await filledContext(numbered(1, 60));
    const { out, err } = await large.earshot('query');
    expect(out.trimEnd().split('\n')).toHaveLength(51);
    expect(err).toMatch(/^50 rows\..*--before 11\n$/);
    const oldest = await large.earshot('query --order oldest --limit 2');
    expect(oldest.err).toMatch(/^2 rows\. Next page: --after 2\n$/);
    expect(await large.positions('query --order oldest --limit 2 --after 2')).toEqual([3, 4]);
    expect(await large.positions('query')).toHaveLength(60);
  });
});

describe('query --max-age', () => {
  it('leaves out notifications of older products before the limit, in every form', async () => {
    const context = await filledContext(agedDeliveries());
    const positions = (line: string) => context.positions(`query --max-age ${line}`);
    expect(await positions('30d')).toEqual([6, 4, 3, 1]);
    expect(await positions('30d --limit 2 --order oldest')).toEqual([1, 3]);
    expect(await positions('30d --limit 1 --before 6')).toEqual([4]);
    expect(await positions('12h --event created --limit 3')).toEqual([6, 4]);
    const { out, err } = await context.earshot('query --max-age 30d --limit 3');
    expect(out.trimEnd().split('\n')).toHaveLength(4);
    expect(err).toMatch(/^3 rows\. Next page: --before 3\n$/);
    const body = await expectEnd(context.earshot('query --max-age 30d --limit 2 --body'), 0);
    expect(body.out.split('\n').map((line) => JSON.parse(line).AckId)).toEqual(['ack-6', 'ack-4']);
    const refused = context.earshot('query --max-age 30');
    await expectEnd(refused, 2, 'must be an age in hours, days or weeks, such as 36h, 365d or 52w');
  });
});

describe('query --body', () => {
  const odd = `  {"SubscriptionEvent":"created","ProductId":"p","ProductName":"Ærø — 氷 \\u00e9",\r\n\t"AckId":"odd" }  \n\n `;

  it('prints the body byte for byte as received, including broken UTF-8', async () => {
    const broken = Buffer.from(odd.replace('Ærø', '~'));
    broken[broken.indexOf('~')] = 0xff;
    const bytes = Buffer.concat([Buffer.from('\ufeff'), Buffer.from(odd)]);
    for (const body of [bytes, broken]) {
      const context = await filledContext([delivery(), rawDelivery(body)]);
      const { code, outBytes, err } = await context.earshot('query --ack-id odd --body');
      expect({ code, err }).toEqual({ code: 0, err: '' });
      expect(outBytes.equals(body)).toBe(true);
    }
  });

  it('fails when no body matches', async () => {
    const context = await filledContext([delivery()]);
    const { code, out, err } = await context.earshot('query --ack-id none --body');
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toBe('earshot: No notification matches.\n');
  });
});
