/** `/api/footprints` over a real store. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSeeded, type SeededReceiver } from '../../core/page/seeded-receiver.ts';

interface Footprint {
  position: number;
  productId: string;
  productName: string;
  receivedAt: string;
  geometry: { type: string; coordinates: number[][][] | number[][][][] };
}

let seeded: SeededReceiver;
beforeAll(async () => {
  seeded = await openSeeded({ products: 60 });
});
afterAll(() => seeded.close());

interface Answer {
  footprints?: Footprint[];
  next: string | null;
  indexedPosition: number;
}

const get = async (search: string | Record<string, string | number>) => {
  const pairs = typeof search === 'string' ? [] : Object.entries(search);
  const text = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
  const answer = await fetch(`${seeded.url}/api/footprints?${text || search}`);
  const body = (await answer.json()) as Answer;
  return { status: answer.status, answer, body, footprints: body.footprints ?? [] };
};

test('lists the footprints of all products, newest first', async () => {
  const { footprints, body, answer } = await get({ limit: 1_000 });
  const withArea = seeded.products.filter(({ GeoFootprint }) => GeoFootprint !== null);
  expect(footprints.map(({ productId }) => productId)).toEqual(
    withArea.map(({ Id }) => Id).toReversed(),
  );
  expect(body.next).toBe(null);
  expect(body.indexedPosition).toBeGreaterThanOrEqual(footprints[0]?.position ?? Infinity);
  expect(answer.headers.get('content-encoding')).toBe('gzip');
});

test('follows `next` to older products, and `after` to newer ones, without a gap', async () => {
  const all = (await get({ limit: 1_000 })).footprints;
  const older: Footprint[] = [];
  for (let url: string | null = '?limit=17'; url !== null; ) {
    const { body, footprints } = await get(url.slice(url.indexOf('?') + 1));
    older.push(...footprints);
    url = body.next;
  }
  expect(older).toEqual(all);
  const newer = (await get({ after: all[10]?.position ?? 0, limit: 1_000 })).footprints;
  expect(newer).toEqual(all.slice(0, 10).toReversed());
});

test('selects by time of receipt, filter and subscription', async () => {
  const all = (await get({ limit: 1_000 })).footprints;
  const [since, until] = [all[40]?.receivedAt ?? '', all[20]?.receivedAt ?? ''];
  const within = await get({ since, until, limit: 1_000 });
  expect(within.footprints).toEqual(all.slice(21, 41));
  const sentinel2 = await get({ filter: "startswith(Name,'S2')", limit: 1_000 });
  expect(sentinel2.footprints).toEqual(
    all.filter(({ productName }) => productName.startsWith('S2')),
  );
  expect((await get({ subscription: 'alps', limit: 1_000 })).footprints).toEqual(all);
  expect((await get({ subscription: 'none', limit: 1_000 })).footprints).toEqual([]);
});

test.each([
  ['after=1&before=9', '`after` and `before`'],
  ['filter=Name%20is', 'filter'],
])('refuses %s with the reason', async (search, reason) => {
  const { status, body } = await get(search);
  expect(status).toBe(400);
  expect(JSON.stringify(body)).toContain(reason);
});
