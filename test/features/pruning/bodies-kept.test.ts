/** After pruning, every remaining body is readable and unchanged, and no unused body is left. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { replaceBody } from '../../helpers/replace-body.ts';
import { times } from '../../helpers/thorough.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';
import { prune, pruneRequest } from './prune-to.ts';

/** Steps of the model. Bodies that arrive together share a transaction, and so a pack. */
type Step =
  | { kind: 'bodies'; bodies: string[] }
  | { kind: 'retry' }
  | { kind: 'prune'; percent: number; withQuarantined: boolean };

const anyBody = fc.constantFrom('one', 'one', 'three', 'broken', 'half', 'known');
const manyBodies = fc.array(anyBody, { minLength: 1, maxLength: 40 });
const someStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: manyBodies.map((bodies): Step => ({ kind: 'bodies', bodies })) },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: 'bodies', bodies: ['broken'] }) },
  { weight: 3, arbitrary: fc.constant<Step>({ kind: 'retry' }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('prune' as const),
      percent: fc.integer({ min: 0, max: 100 }),
      withQuarantined: fc.boolean(),
    }),
  },
);

const beginUs = 1_795_000_000_000_000;

/** A store, and its expected content. */
async function openModel() {
  const { store, dataDir } = await openSqliteStore();
  const bodyOf = new Map<string, string>();
  let nowUs = beginUs;
  let count = 0;

  const one = () => {
    count += 1;
    return notification(count, { pad: 'x'.repeat((count * 37) % 900) });
  };
  const bodyLike = (kind: string): string => {
    if (kind === 'three') return JSON.stringify([one(), one(), one()]);
    if (kind === 'broken') return `{"cut": ${count}`;
    // Stored in part; the whole body is quarantined.
    if (kind === 'half') return JSON.stringify([one(), { SubscriptionEvent: 'created' }, one()]);
    if (kind === 'known') return JSON.stringify(notification(Math.ceil(count / 2)));
    return JSON.stringify(one());
  };

  const act = async (step: Step) => {
    nowUs += 1_000_000;
    if (step.kind === 'bodies') {
      const bodies = step.bodies.map(bodyLike);
      const receipts = bodies.map((body, i) =>
        store.accept(delivery(body, { receivedAtUs: nowUs + i })),
      );
      await Promise.all(receipts);
      for await (const { position, ackId } of store.find({ sinceUs: nowUs })) {
        const body = bodies.find((text) => text.includes(`"${ackId}"`));
        if (body !== undefined) bodyOf.set(String(position), body);
      }
    } else if (step.kind === 'retry') await retryRepaired(store, dataDir);
    else {
      const rows = await collect(store.find({ order: 'oldest' }));
      const cut = rows[Math.floor((step.percent * rows.length) / 100)];
      const request = { nowUs: cut?.receivedAtUs ?? nowUs, withQuarantined: step.withQuarantined };
      await prune(store, pruneRequest({ ageUs: 0 }, request));
    }
  };
  return { store, dataDir, act, bodyOf };
}

/**
 * Makes the oldest quarantined body that is stored alone readable, as a new version might, and
 * retries it.
 */
async function retryRepaired(store: Store, dataDir: string): Promise<void> {
  const database = new Sqlite(join(dataDir, 'earshot.db'), { readonly: true });
  const entry = database
    .prepare<[], { id: number; bodyId: number }>(
      `SELECT quarantine.id, body_id AS bodyId FROM quarantine JOIN body ON body.id = body_id
       WHERE bodies = 1 AND NOT EXISTS
         (SELECT 1 FROM notification WHERE notification.body_id = quarantine.body_id)
       ORDER BY quarantine.id LIMIT 1`,
    )
    .get();
  database.close();
  if (entry === undefined) return;
  const repaired = JSON.stringify(notification(1_000_000 + entry.id));
  replaceBody(dataDir, entry.bodyId, Buffer.from(repaired));
  expect(await store.retry(entry.id)).toMatchObject({ outcome: 'stored' });
}

async function expectWhole({ store, dataDir, bodyOf }: Awaited<ReturnType<typeof openModel>>) {
  for await (const { position, ackId } of store.find({})) {
    const body = Buffer.from(await store.body(position)).toString();
    expect(body).toContain(`"${ackId}"`);
    const known = bodyOf.get(String(position));
    if (known !== undefined) expect(body).toBe(known);
  }
  for await (const { id } of store.quarantined({})) {
    expect((await store.quarantineEntry(id)).body.length).toBeGreaterThan(0);
  }
  const database = new Sqlite(join(dataDir, 'earshot.db'), { readonly: true });
  const unused = database
    .prepare(
      `SELECT id FROM body WHERE NOT EXISTS (SELECT 1 FROM notification
         WHERE body_id >= body.id AND body_id < body.id + bodies)
       AND NOT EXISTS (SELECT 1 FROM quarantine WHERE body_id >= body.id AND body_id < body.id + bodies)`,
    )
    .all();
  expect(unused).toEqual([]);
  expect(database.pragma('integrity_check')).toEqual([{ integrity_check: 'ok' }]);
  database.close();
}

/** The body of the entry follows one that stays in use. */
const entryAfterKept: Step[] = [
  { kind: 'bodies', bodies: ['one'] },
  { kind: 'bodies', bodies: ['broken'] },
  { kind: 'prune', percent: 0, withQuarantined: false },
  { kind: 'prune', percent: 100, withQuarantined: true },
];

it('a pruned log has every referenced body and no others', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(someStep, { minLength: 10, maxLength: 20 }), async (steps) => {
      const model = await openModel();
      for (const step of steps) {
        await model.act(step);
        if (step.kind === 'prune') await expectWhole(model);
      }
      await expectWhole(model);
      await model.store.close();
    }),
    { numRuns: times(6, 12), includeErrorInReport: true, examples: [[entryAfterKept]] },
  );
}, 180_000);
