/** The list of the page `/map`. */
import { expect, test, vi } from 'vitest';
import { createMemoryProducts, openConsole } from '../../core/api/console-context.ts';

test('reads no more products than it shows', async () => {
  const memory = createMemoryProducts();
  const find = vi.fn(memory.find);
  const { get } = await openConsole({ products: { ...memory, find } });
  expect((await get('/map')).status).toBe(200);
  expect(find.mock.calls.map(([query]) => query.limit)).toEqual([100]);
});
