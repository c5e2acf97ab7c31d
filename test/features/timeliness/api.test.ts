/** `/api/timeliness`, as a program uses it. */
import { describe, expect, it } from 'vitest';
import { hourUs } from '../../../src/core/terms/dates.ts';
import type { Timeliness } from '../../../src/filter/products.ts';
import { type Console, openConsole } from '../../core/api/console-context.ts';

const startUs = Date.UTC(2026, 4, 2) * 1000;

const delays = (seconds: number) => {
  const [p50, p90, p99, max] = [seconds, 2 * seconds, 3 * seconds, 4 * seconds];
  const one = { count: 3, negative: 1, p50, p90, p99, max };
  return { sensingToPublication: one, publicationToNotification: null, notificationToReceipt: one };
};

const sample: Timeliness = {
  total: {
    ...delays(1.5),
    sensingToReceipt: null,
    publicationToReceipt: delays(7).sensingToPublication,
  },
  hours: [{ hourUs: startUs + hourUs, ...delays(-0.25) }],
  collections: [
    { collection: null, ...delays(1) },
    { collection: 'SENTINEL-2', ...delays(2) },
  ],
};

async function openWithSample(): Promise<Console & { noted: object[] }> {
  const context = await openConsole();
  const noted: object[] = [];
  context.products.timelinessOf = (query) => {
    noted.push(query);
    return sample;
  };
  return { ...context, noted };
}

describe('/api/timeliness', () => {
  it('returns percentiles in seconds by hour and collection', async () => {
    const { get } = await openWithSample();
    const { json, headers } = await get('/api/timeliness');
    expect(json).toEqual({
      ...{ since: '2026-05-01T12:00:00.000000Z', until: '2026-05-02T12:00:00.000000Z' },
      total: sample.total,
      hours: [{ hour: '2026-05-02T01:00:00.000000Z', ...delays(-0.25) }],
      collections: sample.collections,
    });
    expect(headers).not.toHaveProperty('earshot-index-lag');
  });

  it('limits the answer to the parameters', async () => {
    const { get, noted } = await openWithSample();
    const { json } = await get(
      '/api/timeliness?since=2026-05-01&until=2026-05-01T06:00Z&subscription=alps&collection=SENTINEL-2',
    );
    const period = { sinceUs: startUs - 24 * hourUs, untilUs: startUs - 18 * hourUs };
    expect(noted).toEqual([{ ...period, subscription: 'alps', collection: 'SENTINEL-2' }]);
    expect(json.collections).toMatchObject([{ collection: 'SENTINEL-2' }]);
  });

  it.each(['since=2026-05-03', 'since=2026-05-02&until=2026-05-01', 'since=2026-01-01', 'x=1'])(
    'refuses %s',
    async (search) => {
      const { get } = await openWithSample();
      expect(await get(`/api/timeliness?${search}`)).toMatchObject({ status: 400 });
    },
  );
});
