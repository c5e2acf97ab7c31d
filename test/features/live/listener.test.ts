/** The page `/live` without a browser: rows of a log and of its index. */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/terms/app-error.ts';
import type { EventQuery } from '../../../src/filter/products.ts';
import {
  createMemoryLog,
  createMemoryProducts,
  notificationRow,
  openConsole,
} from '../../core/api/console-context.ts';

const unknown = { platform: null, productType: null, tile: null, cloudCoverPercent: null };
const nowUs = () => Date.UTC(2026, 4, 3, 12) * 1_000;

describe('the list', () => {
  const name = 'S2B_MSIL2A_20260502T101559_N0511_R065_T32TMT_20260502T175912.SAFE';

  /** Opens the page of two notifications, of which the index has read `indexed`; null without an index. */
  async function textOf(indexed: number | null, idOf = (position: number) => `id-${position}`) {
    const rows = [1, 2].map((position) => {
      const times = { receivedAtUs: nowUs() - 1 };
      return notificationRow(position, { productName: name, ...times, productId: idOf(position) });
    });
    const missing = new AppError('unavailable', 'There is no index.');
    const footprint = { type: 'Point', coordinates: [11, 45.5] } as const;
    const products = {
      ...createMemoryProducts(),
      indexedPosition: async () => indexed ?? Promise.reject(missing),
      events: async () => {
        if (indexed === null) throw missing;
        const known = rows.slice(0, indexed).map((row) => {
          const product = { ...row, ...unknown, tile: '32TMT', cloudCoverPercent: 12 };
          return { position: row.position, product, footprint };
        });
        return { events: known as never, next: null };
      },
    };
    const { get } = await openConsole({ notifications: createMemoryLog(rows), products, nowUs });
    return (await get('/live')).text;
  }

  it('describes products by the index, and before by their names', async () => {
    const rowsIn = (text: string) => text.split('<tr>').slice(2);
    const [newest, oldest] = rowsIn(await textOf(1));
    expect(oldest).toMatch(/northern Italy[\s\S]*12\.0 %/);
    expect(newest).not.toContain('northern Italy');
    expect(newest).toMatch(/S2MSI2A|Level-2A/);
    const without = await textOf(null);
    expect(rowsIn(without)).toHaveLength(2);
    expect(without).toContain('There is no product index');
    expect(await textOf(2)).not.toContain('product index');
    expect(await textOf(-1_000)).toContain('The product index lags by 1,002 notifications');
  });

  it('leaves out rows with long texts, and shows the others', async () => {
    const text = await textOf(2, (position) => (position === 2 ? '"'.repeat(150_000) : 'ü'));
    expect(text.match(/<summary class="name">/g)).toHaveLength(1);
    expect(text.length).toBeLessThan(100_000);
    expect(text).toContain('1 with long texts are left out');
  });
});

describe('the list with a $filter', () => {
  /** An index that finds one match on each page of ten notifications, which arrived a minute apart. */
  it.each([
    [100, 10, /10 in this period(?![\s\S]*were searched)/],
    [1_000, 20, /Only notifications after 2026-05-03 08:40\S* UTC were searched/],
  ])(
    'of %i notifications reads up to 20 pages, and reports up to when',
    async (count, most, is) => {
      let pages = 0;
      const events = async ({ afterPosition = 0, beforePosition = 0 }: EventQuery) => {
        pages += 1;
        const row = notificationRow(Math.max(afterPosition, beforePosition - 11) + 1);
        const product = { ...row, ...unknown };
        const event = { position: row.position, product, footprint: null };
        return { events: [event], next: row.position > afterPosition + 1 ? row.position : null };
      };
      const rows = Array.from({ length: count }, (_, i) =>
        notificationRow(i + 1, { receivedAtUs: nowUs() - (count - i) * 60_000_000 }),
      );
      const products = { ...createMemoryProducts(), events: events as never };
      const { get } = await openConsole({ notifications: createMemoryLog(rows), products, nowUs });
      const { text, status } = await get('/live?filter=Online%20eq%20true');
      expect({ status, pages }).toEqual({ status: 200, pages: most });
      expect(text.match(/<summary class="name">/g)).toHaveLength(most);
      expect(text).toMatch(is);
    },
  );
});
