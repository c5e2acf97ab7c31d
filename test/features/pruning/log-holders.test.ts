/** Pruning removes nothing that a reader of the log still needs. */
import { expect, it } from 'vitest';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import type { Store } from '../../../src/store/store.ts';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';
import { prune, pruneRequest } from './prune-to.ts';

const count = 20;
const beginUs = 1_795_000_000_000_000;
const at = (position: number) => beginUs + position * 1_000_000;
const everything = pruneRequest({ ageUs: 0 }, { nowUs: at(count + 1) });

/** Creates a store with positions 1 to 20, received one second apart. */
async function openFilled() {
  const opened = await openSqliteStore();
  const { store } = opened;
  for (let i = 1; i <= count; i += 1) {
    await store.accept(delivery(notification(i), { receivedAtUs: at(i) }));
  }
  return opened;
}

const queue = ({ sinks }: Store, position: number) => {
  const items = [{ position, productId: 'a' }];
  const read = { sink: 'orders', replayId: null, after: 0, upTo: count };
  return sinks.enqueue({ ...read, items, atUs: at(count) });
};
const replayAll = ({ sinks }: Store, afterPosition: number) =>
  sinks.addReplay({
    ...{ sink: 'orders', filter: '', sinceUs: null, untilUs: null },
    ...{ afterPosition, lastPosition: count, requestedAtUs: at(count) },
  });

/** Each reader needs position 8 and later ones, until it is released. */
const holders: [
  name: string,
  hold: (store: Store) => Promise<unknown>,
  free: (store: Store) => Promise<unknown>,
][] = [
  [
    'reader downloads',
    (store) => store.moveCursor('downloads', 8, at(9)),
    (store) => store.pruning.removeReader('downloads'),
  ],
  [
    'sink orders',
    (store) => store.moveCursor('sink:orders', 8, at(9)),
    (store) => store.moveCursor('sink:orders', count, at(9)),
  ],
  [
    'summaries',
    (store) => store.moveCursor('summaries', 8, at(9)),
    (store) => store.moveCursor('summaries', count, at(9)),
  ],
  [
    'queue of sink orders',
    (store) => queue(store, 9),
    (store) => store.sinks.settle([{ id: 1, outcome: 'acknowledged' }]),
  ],
  [
    'dead letters of sink orders',
    async (store) => {
      await queue(store, 9);
      await store.sinks.settle([{ id: 1, outcome: 'dead', error: 'refused' }]);
    },
    (store) => store.sinks.drop({ sink: 'orders', state: 'dead', ids: 'all', nowUs: at(count) }),
  ],
  [
    'replay 1 of sink orders',
    (store) => replayAll(store, 8),
    (store) => store.sinks.drop({ sink: 'orders', state: 'waiting', ids: 'all', nowUs: at(count) }),
  ],
];

it.each(holders)('pruning stops before what is needed by %s', async (name, hold, free) => {
  const { store } = await openFilled();
  await hold(store);
  const found = await store.pruning.prunable(everything);
  expect(found.heldBy.map((holder) => [holder.name, holder.position])).toEqual([[name, 8]]);
  const { notifications } = await prune(store, everything);
  // The position of the reader stays as well.
  expect(notifications).toBe(7);
  expect(found.notifications).toBe(7);
  await free(store);
  expect(await store.pruning.prunable(everything)).toMatchObject({ heldBy: [] });
  expect((await prune(store, everything)).notifications + notifications).toBe(count - 1);
  expect(await store.lastPosition()).toBe(count);
});

it('pruning stops before what the product index has not read, and keeps the position that identifies its log', async () => {
  const { store, dataDir } = await openSqliteStore();
  const add = async (from: number, to: number) => {
    for (let i = from; i <= to; i += 1) {
      await store.accept(delivery(notification(i), { receivedAtUs: at(i) }));
    }
  };
  await add(1, 8);
  await catchUpIndex({ dataDir });
  await add(9, count);
  const { heldBy } = await store.pruning.prunable(everything);
  expect(heldBy.map(({ name, position }) => [name, position])).toEqual([['product index', 8]]);
  expect(await prune(store, everything)).toMatchObject({ notifications: 7 });
  const progress: number[] = [];
  await catchUpIndex({ dataDir, onProgress: (done) => progress.push(done.indexedPosition) });
  // The index continued; it was not rebuilt.
  expect(progress[0]).toBe(count);
  expect(await prune(store, everything)).toMatchObject({ notifications: count - 1 - 7 });
  expect(await store.pruning.pruneBlockers()).toMatchObject([{ kind: 'index', position: count }]);
});
