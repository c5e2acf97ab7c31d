/** The rows that `earshot demo` prints on a terminal as notifications arrive. */
import { expect, it, vi } from 'vitest';
import { startCommand } from '../../helpers/fake-io.ts';

const arrival = /^ +\d+ {2}(?:created|modified|deleted) .*$/gm;

it('arrivals fit a terminal of 80 columns and show both ends of the product name', async () => {
  // The sandbox publishes by this clock, so it must advance.
  const nowUs = () => Date.now() * 1000;
  const env = { NO_COLOR: '1' };
  const demo = startCommand(['demo'], { isTTY: true, columns: 80, env, nowUs });
  const rows = () => demo.out().match(arrival) ?? [];
  await vi.waitUntil(() => rows().length >= 3, 20_000);
  demo.stop();
  await demo.ended;
  for (const row of rows()) {
    expect(row.length, row).toBeLessThanOrEqual(80);
    expect(row).toMatch(/ ms {2}S2[A-D]_MSI\S+…\S+\.SAFE$/);
  }
}, 40_000);
