/** `/api/timeliness`, as a program uses it. */
import { describe, expect, it } from 'vitest';
import { hourUs } from '../../../src/core/terms/dates.ts';
import type { Timeliness } from '../../../src/filter/products.ts';
import { type Console, openConsole } from '../../core/api/console-context.ts';

const startUs = Date.UTC(2026, 4, 2) * 1000;

const delays = (ms: number) => {
  const one = { count: 3, negative: 1, p50Ms: ms, p90Ms: 2 * ms, p99Ms: 3 * ms, maxMs: 4 * ms };
  return { sensingToPublication: one, publicationToNotification: null, notificationToReceipt: one };
};

const sample: Timeliness = {
  total: {
    ...delays(1_500),
    sensingToReceipt: null,
    publicationToReceipt: delays(7_000).sensingToPublication,
  },
  hours: [{ hourUs: startUs + hourUs, ...delays(-250) }],
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
    const seconds = (one: number) => {
      const stage = { count: 3, negative: 1, p50: one, p90: 2 * one, p99: 3 * one, max: 4 * one };
      const ends = { sensingToPublication: stage, notificationToReceipt: stage };
      return { ...ends, publicationToNotification: null };
    };
    const publicationToReceipt = seconds(7).sensingToPublication;
    expect(json).toEqual({
      ...{ since: '2026-05-01T12:00:00.000000Z', until: '2026-05-02T12:00:00.000000Z' },
      total: { ...seconds(1.5), sensingToReceipt: null, publicationToReceipt },
      hours: [{ hour: '2026-05-02T01:00:00.000000Z', ...seconds(-0.25) }],
      collections: [
        { collection: null, ...seconds(0.001) },
        { collection: 'SENTINEL-2', ...seconds(0.002) },
      ],
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
