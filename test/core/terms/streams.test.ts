/** The shared reader of the log. */
import { describe, expect, it } from 'vitest';
import {
  followLog,
  type NotificationQuery,
  type NotificationRow,
} from '../../../src/core/terms/ports.ts';

const row = (position: number, event = 'created') => ({ position, event }) as NotificationRow;

/** A log in memory that records its queries. */
function createLog(rows: NotificationRow[]) {
  const queries: NotificationQuery[] = [];
  return {
    rows,
    queries,
    lastPosition: async () => rows.at(-1)?.position ?? 0,
    find: async function* (query: NotificationQuery) {
      queries.push(query);
      const { afterPosition = 0, beforePosition = Number.POSITIVE_INFINITY, events } = query;
      for (const each of rows.slice()) {
        const within = each.position > afterPosition && each.position < beforePosition;
        if (within && (events?.includes(each.event) ?? true)) yield each;
      }
    },
  };
}

/** Follows a log; `waits` run each time the end is reached; then it stops. */
async function follow(
  log: ReturnType<typeof createLog>,
  options: {
    afterPosition?: number;
    query?: NotificationQuery;
    waits?: (() => void)[];
    onRow?: (row: NotificationRow, stop: () => void) => void;
  } = {},
): Promise<number[]> {
  const { afterPosition = 0, query = {}, waits = [], onRow } = options;
  const stop = new AbortController();
  const wait = async () => {
    const next = waits.shift();
    if (next === undefined) stop.abort();
    else next();
  };
  const positions: number[] = [];
  for await (const each of followLog({ log, query, afterPosition, wait, signal: stop.signal })) {
    positions.push(each.position);
    onRow?.(each, () => stop.abort());
  }
  return positions;
}

describe('following the log', () => {
  it('returns the rows after the position, oldest first', async () => {
    const log = createLog([row(1), row(2), row(5)]);
    expect(await follow(log, { afterPosition: 1 })).toEqual([2, 5]);
    expect(log.queries.every(({ order }) => order === 'oldest')).toBe(true);
  });

  it('returns rows that arrive during a round once, in the next round', async () => {
    const log = createLog([row(1), row(2)]);
    const onRow = ({ position }: NotificationRow) => {
      if (position <= 2) log.rows.push(row(position + 2));
    };
    expect(await follow(log, { waits: [() => undefined], onRow })).toEqual([1, 2, 3, 4]);
  });
});
