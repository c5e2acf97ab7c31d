/** The shared reader of the log. */
import { expect, it } from 'vitest';
import {
  followLog,
  type NotificationQuery,
  type NotificationRow,
} from '../../../src/core/terms/ports.ts';

const row = (position: number) => ({ position }) as NotificationRow;

it('following the log returns the rows after a position, and once those that arrive meanwhile', async () => {
  const rows = [row(1), row(2), row(5)];
  const log = {
    lastPosition: async () => rows.at(-1)?.position ?? 0,
    find: async function* ({ order, afterPosition = 0, beforePosition = 0 }: NotificationQuery) {
      expect(order).toBe('oldest');
      // Also rows that arrive during the iteration.
      for (const one of rows) {
        if (one.position > afterPosition && one.position < beforePosition) yield one;
      }
    },
  };
  const stop = new AbortController();
  let rounds = 0;
  const wait = async () => {
    rounds += 1;
    if (rounds === 2) stop.abort();
  };
  const positions: number[] = [];
  for await (const { position } of followLog({
    ...{ log, afterPosition: 1, wait, signal: stop.signal },
  })) {
    positions.push(position);
    if (position <= 5) rows.push(row(position + 5));
  }
  expect([positions, rounds]).toEqual([[2, 5, 7, 10], 2]);
});
