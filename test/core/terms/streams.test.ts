/** Streams: batches in order, and the shared reader of the log. */
import { describe, expect, it } from 'vitest';
import {
  batches,
  followLog,
  type NotificationQuery,
  type NotificationRow,
} from '../../../src/core/terms/ports.ts';
import { collect } from '../../helpers/deliveries.ts';

/** Numbers from 1 on, with a count of those read. */
function numbers(count: number) {
  const state = { read: 0, ended: false };
  const stream = (async function* () {
    try {
      while (state.read < count) {
        state.read += 1;
        yield state.read;
      }
    } finally {
      state.ended = true;
    }
  })();
  return { state, stream };
}

it.each([
  [0, []],
  [3, [[1, 2, 3]]],
  [7, [[1, 2, 3], [4, 5, 6], [7]]],
])('gives %i elements in batches of three', async (count, expected) => {
  expect(await collect(batches(numbers(count).stream, 3))).toEqual(expected);
});

it('reads one batch ahead, and ends the stream with its consumer', async () => {
  const { state, stream } = numbers(100);
  for await (const batch of batches(stream, 4)) {
    expect(batch).toEqual([1, 2, 3, 4]);
    expect(state).toEqual({ read: 4, ended: false });
    break;
  }
  expect(state).toEqual({ read: 4, ended: true });
});

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
