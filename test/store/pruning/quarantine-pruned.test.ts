/** What becomes of the quarantine when the log is pruned. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { replaceBody } from '../../helpers/replace-body.ts';
import { openSqliteStore } from '../sqlite-store.ts';
import { prune, pruneBefore, pruneWish } from './prune-to.ts';

const beginUs = 1_795_000_000_000_000;
const at = (second: number) => beginUs + second * 1_000_000;

/** One notification a second, with what cannot be read at the second 2 and, released by now, at 4. */
async function openQuarantined() {
  const { store, dataDir } = await openSqliteStore();
  const accept = (body: unknown, second: number) =>
    store.accept(delivery(body, { receivedAtUs: at(second) }));
  for (const second of [0, 1]) await accept(notification(second), second);
  await accept('{"held": ', 2);
  await accept(notification(3), 3);
  await accept('{"mended": ', 4);
  for (const second of [5, 6, 7]) await accept(notification(second), second);
  const [mended, held] = await collect(store.quarantined({ released: false }));
  if (mended === undefined || held === undefined) throw new Error('not held');
  replaceBody(dataDir, 5, Buffer.from(JSON.stringify(notification(4))));
  expect(await store.retry(mended.id, at(8))).toMatchObject({ outcome: 'stored' });
  await accept(notification(9), 9);
  const entries = async () =>
    (await collect(store.quarantined({ released: true }))).map(({ receivedAtUs }) => receivedAtUs);
  return { store, dataDir, entries };
}

it('keeps what is held, unless told otherwise', async () => {
  const { store, entries } = await openQuarantined();
  expect(await pruneBefore(store, at(3))).toMatchObject({ notifications: 2, quarantine: 0 });
  expect(await entries()).toEqual([at(4), at(2)]);
  const wish = pruneWish({ ageUs: 0 }, { nowUs: at(3), withHeld: true });
  expect(await store.pruning.prunable(wish)).toMatchObject({ notifications: 0, quarantined: 1 });
  expect(await prune(store, wish)).toMatchObject({ notifications: 0, quarantine: 1 });
  expect(await entries()).toEqual([at(4)]);
});

it('keeps a released entry as long as the log has a notification from it', async () => {
  const { store, dataDir, entries } = await openQuarantined();
  expect(await pruneBefore(store, at(7))).toMatchObject({ notifications: 5, quarantine: 0 });
  const left = await collect(store.find({ order: 'oldest' }));
  expect(left.map(({ ackId }) => ackId)).toEqual(['ack-7', 'ack-4', 'ack-9']);
  for (const { position, ackId } of left) {
    expect(Buffer.from(await store.body(position)).toString()).toContain(`"${ackId}"`);
  }
  expect(await pruneBefore(store, at(9))).toMatchObject({ notifications: 2, quarantine: 1 });
  expect(await entries()).toEqual([at(2)]);
  const database = new Sqlite(join(dataDir, 'earshot.db'), { readonly: true });
  expect(database.prepare('SELECT id FROM body ORDER BY id').pluck().all()).toEqual([3, 9]);
  database.close();
});
