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

/** Stores notifications at these positions, received one second apart. */
async function fill(store: Store, from: number, to: number) {
  for (let i = from; i <= to; i += 1) {
    await store.accept(delivery(notification(i), { receivedAtUs: at(i) }));
  }
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

const cursor = (reader: string, position: number) => (store: Store) =>
  store.moveCursor(reader, position, at(9));
const drop = (state: 'dead' | 'waiting') => (store: Store) =>
  store.sinks.drop({ sink: 'orders', state });
const settleAs = (settled: object) => (store: Store) =>
  store.sinks.settle([{ id: 1, ...settled } as never], at(count));
const queueDead = async (store: Store) => {
  await queue(store, 9);
  await settleAs({ outcome: 'dead', error: 'refused' })(store);
};

type Act = (store: Store) => Promise<unknown>;
/** Each reader needs position 8 and later ones, until it is released. */
const holders: [name: string, hold: Act, free: Act][] = [
  ['reader downloads', cursor('downloads', 8), (store) => store.pruning.removeReader('downloads')],
  ['sink orders', cursor('sink:orders', 8), cursor('sink:orders', count)],
  ['summaries', cursor('summaries', 8), cursor('summaries', count)],
  ['queue of sink orders', (store) => queue(store, 9), settleAs({ outcome: 'acknowledged' })],
  ['dead letters of sink orders', queueDead, drop('dead')],
  ['replay 1 of sink orders', (store) => replayAll(store, 8), drop('waiting')],
];

it.each(holders)('pruning stops before what is needed by %s', async (name, hold, free) => {
  const { store } = await openSqliteStore();
  await fill(store, 1, count);
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
  await fill(store, 1, 8);
  await catchUpIndex({ dataDir });
  await fill(store, 9, count);
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
