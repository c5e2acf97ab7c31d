/** `earshot tail`: start position, following, and named readers that lose nothing. */
import { describe, expect, it, vi } from 'vitest';
import { documentOf, recordOf } from '../../../src/features/messages/document.ts';
import { formatNames, messageWriter } from '../../../src/features/messages/formats.ts';
import { expectRefusal, nowUs } from '../../helpers/fake-io.ts';
import {
  createContext,
  delivery,
  filledContext,
  hourUs,
  numbered,
  withStore,
} from '../../helpers/filled-store.ts';
import { deliveryOf } from '../products/product-samples.ts';
import { aged, agedDeliveries } from './aged-deliveries.ts';

const toTheEnd = ['tail', '--no-follow'];

/** Four rows, received three hours, two hours, one hour and half an hour ago. */
async function createFourHours() {
  const context = createContext();
  const hours = [3, 2, 1, 0.5];
  await context.fill(
    hours.map((hour, i) =>
      delivery(
        { AckId: `ack-${i}`, SubscriptionEvent: i === 2 ? 'deleted' : 'created' },
        { receivedAtUs: nowUs - hour * hourUs },
      ),
    ),
  );
  return context;
}

describe('tail', () => {
  it.each<[string, number[]]>([
    ['', []],
    ['--from start', [1, 2, 3, 4]],
    ['--from 2', [3, 4]],
    ['--from now', []],
    ['--from start --event deleted', [3]],
    ['--since 2h', [2, 3, 4]],
    ['--since 45m', [4]],
    ['--since 3h --until 1h', [1, 2]],
    ['--since 3h --until 1h -n 1', [2]],
    ['-n 2', [3, 4]],
    ['-n 0', []],
    ['-n 1 --event deleted', [3]],
    ['-n 2 --since 45m', [4]],
    ['--from start --until 90m', [1, 2]],
  ])('%s prints the positions %j', async (line, positions) => {
    const context = await createFourHours();
    expect(await context.positions(`tail --no-follow ${line}`.trim())).toEqual(positions);
  });

  it('leaves out notifications of older products, which do not count for -n', async () => {
    const context = await filledContext(agedDeliveries());
    const tail = 'tail --no-follow --max-age 30d';
    expect(await context.positions(`${tail} --from start`)).toEqual([1, 3, 4, 6]);
    expect(await context.positions(`${tail} -n 3`)).toEqual([3, 4, 6]);
    const named = `${tail} --reader downloads`;
    expect(await context.positions(`${named} --from start`)).toEqual([1, 3, 4, 6]);
    await context.fill([40, 2].map((days, i) => delivery({ AckId: `n-${i}`, value: aged(days) })));
    expect(await context.positions(named)).toEqual([8]);
    expect(await context.positions(named)).toEqual([]);
  });

  it.each([
    ['--since 1h --from start', '--since cannot be combined with --from.'],
    ['-n 5 --from 3', '-n cannot be combined with --from.'],
    ['--since 1h --reader downloads', 'the reader starts at its stored position.'],
    ['-n 5 --reader downloads', 'To move the reader, use --from'],
    ['--format stac', '--format and --stac-ids need --output ndjson.'],
    ['--json --stac-ids catalogue', '--format and --stac-ids need --output ndjson.'],
  ])('refuses %s with advice', async (line, advice) => {
    const context = await createFourHours();
    await expectRefusal(context.earshot(['tail', ...line.split(' ')]), advice);
  });

  it.each(['--since 1h', '-n 2', '--since 1h --json'])(
    '%s prints past notifications, then new ones as they arrive',
    async (line) => {
      const context = await createFourHours();
      await withStore(context.dataDir, async (store) => {
        const tail = context.start(['tail', ...line.split(' ')]);
        await vi.waitUntil(() => tail.out().split('\n').length === 3, 10_000);
        await store.accept(delivery({ AckId: 'ack-9' }, { receivedAtUs: nowUs }));
        await vi.waitUntil(() => tail.out().split('\n').length === 4, 10_000);
        tail.stop();
        expect(await tail.ended).toMatchObject({ code: 0, err: '' });
      });
    },
  );

  it('follows until --until, prints notifications received before it, and ends then', async () => {
    const context = await createFourHours();
    let clockUs = nowUs;
    await withStore(context.dataDir, async (store) => {
      const argv = ['tail', '--since', '1h', '--until', '2026-05-02T13:00:00Z'];
      const tail = context.start(argv, { nowUs: () => clockUs });
      await vi.waitUntil(() => tail.out().split('\n').length === 3, 10_000);
      await store.accept(delivery({ AckId: 'ack-8' }, { receivedAtUs: nowUs + hourUs - 1 }));
      await store.accept(delivery({ AckId: 'ack-9' }, { receivedAtUs: nowUs + hourUs }));
      clockUs = nowUs + hourUs;
      const { code, out } = await tail.ended;
      expect({ code, lines: out.split('\n').length - 1 }).toEqual({ code: 0, lines: 3 });
    });
  });
});

const name = 'S2A_MSIL2A_20260501T103021_N0511_R108_T31UFR_20260501T140000.SAFE';
const radar = 'S1A_IW_GRDH_1SDV_20260502T050000_20260502T050025_060000_077000_ABCD_COG.SAFE';
const area = 'POLYGON ((179 10, -179 10, -179 11, 179 11, 179 10))';
const products = [
  deliveryOf({ id: 'product-1', name, cloud: 19.96, area }),
  deliveryOf({ id: 'product-2', name: radar, area }),
  deliveryOf({ id: 'product-3', name: 'unknown' }),
];
const all = ['tail', '--from', 'start', '--no-follow'];
const place = 'North Pacific Ocean';
const full = [
  `2026-05-02 11:00:00  created   ${name}  19.9 %  ${place}`,
  `2026-05-02 11:00:00  created   ${radar}  ${place}`,
  '2026-05-02 11:00:00  created   unknown',
];

it('the lines of tail have the name, and what else fits: all in a wide terminal, a pipe, and with --wide', async () => {
  const context = await filledContext(products);
  const { out } = await context.earshot(all, { isTTY: true, columns: 106 });
  expect(out.split('\n')).toEqual([
    `2026-05-02 11:00:00  created   ${name}  19.9 %`,
    '2026-05-02 11:00:00  created   S1A_IW_GRDH_1SDV_20260502T050000_2026…02T050025_060000_077000_ABCD_COG.SAFE',
    ...[full[2], ''],
  ]);
  for (const columns of [80, 50]) {
    const narrow = await context.earshot(all, { isTTY: true, columns });
    for (const line of narrow.out.split('\n')) expect(line.length).toBeLessThanOrEqual(columns);
    expect(narrow.out).toMatch(/ S2A_MSIL2.*….*\.SAFE\n/);
  }
  const whole = [
    await context.earshot(all, { isTTY: true, columns: 190 }),
    await context.earshot(all, { isTTY: false, columns: 80 }),
    await context.earshot([...all, '--wide'], { isTTY: true, columns: 80 }),
  ];
  for (const one of whole) expect(one.out.split('\n')).toEqual([...full, '']);
});

describe('messages', () => {
  const ndjson = [...all, '--output', 'ndjson'];
  const lines = ({ out }: { out: string }) =>
    out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));

  it('ndjson prints what the feed sends, in each format', async () => {
    const context = await filledContext(products);
    const urls = { catalogue: 'https://catalogue.test', receiver: 'https://me.test' };
    const base = 'http://127.0.0.1:7070';
    const env = {
      EARSHOT_CATALOGUE_URL: urls.catalogue,
      EARSHOT_PUBLIC_URL: urls.receiver,
      EARSHOT_CONSOLE_LISTEN: '127.0.0.1:7070',
    };
    await withStore(context.dataDir, async (store) => {
      for (const format of formatNames) {
        const settings = { format, stacIds: 'catalogue' } as const;
        const write = messageWriter(settings, { urls: { ...urls, base }, nowUs: () => nowUs });
        const expected: unknown[] = [];
        for await (const row of store.find({ order: 'oldest' })) {
          const record = recordOf(await store.body(row.position), row);
          const document = documentOf({ row, record, sink: 'feed', replayId: null });
          expected.push(JSON.parse((await write(document)).text));
        }
        const words = [...ndjson, '--format', format, '--stac-ids', 'catalogue'];
        expect(lines(await context.earshot(words, { env }))).toEqual(expected);
      }
    });
  });

  it('--filter selects in every output, and -n counts what it selects', async () => {
    const context = await filledContext(products);
    const filter = ['--filter', "startswith(Name,'S')"];
    const printed = async (...words: string[]) => (await context.earshot(words)).out.split('\n');
    expect(await printed(...all, ...filter)).toEqual([full[0], full[1], '']);
    expect(lines(await context.earshot([...ndjson, ...filter]))).toHaveLength(2);
    expect(await context.positions([...all, ...filter])).toEqual([1, 2]);
    const last = ['tail', '--no-follow', '-n', '1', ...filter];
    expect(await context.positions(last)).toEqual([2]);
    expect(await printed(...last)).toEqual([full[1], '']);
    const none = ['--filter', "startswith(Name,'X')"];
    expect(await printed(...last, ...none)).toEqual(['']);
    const wrong = context.earshot([...all, '--filter', 'Name']);
    await expectRefusal(wrong, 'One error in the filter', 1);
  });

  it('moves a reader over notifications that are not selected', async () => {
    const context = await filledContext(products);
    const reader = ['tail', '--no-follow', '--reader', 'radar'];
    const filter = ['--filter', "startswith(Name,'S1')"];
    expect(await context.positions([...reader, '--from', 'start', ...filter])).toEqual([2]);
    expect(await context.positions(reader)).toEqual([]);
  });
});

describe('a named reader', () => {
  const reader = [...toTheEnd, '--reader', 'downloads'];

  it('continues where it stopped', async () => {
    const context = await filledContext(numbered(1, 2));
    expect(await context.positions([...reader, '--from', 'start'])).toEqual([1, 2]);
    expect(await context.positions(reader)).toEqual([]);
    await context.fill(numbered(3, 5));
    expect(await context.positions(reader)).toEqual([3, 4, 5]);
    expect(await context.positions(reader)).toEqual([]);
    expect(await context.positions([...reader, '--from', '4'])).toEqual([5]);
  });

  it('continues with the next row after an interruption', async () => {
    const context = await filledContext(numbered(1, 5));
    const argv = ['tail', '--reader', 'downloads', '--from', 'start'];
    const { code, out } = await context.earshot(argv, { stopAfterChunks: 2 });
    expect({ code, lines: out.trimEnd().split('\n').length }).toEqual({ code: 0, lines: 2 });
    expect(await context.positions([...toTheEnd, '--reader', 'downloads'])).toEqual([3, 4, 5]);
  });
});
