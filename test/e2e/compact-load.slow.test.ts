import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { bodyReader } from '../../src/store/bodies/bodies.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { generatedBodies } from '../helpers/generated-bodies.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { keptRows, openOldStore } from '../store/bodies/bodies-in-file.ts';

const oldCount = 800;
const newCount = 1_500;
const senders = 16;

it('stores and answers every notification while the log is compacted under load', async () => {
  const cwd = temporaryDirectory();
  const context = await createReceiverContext(cwd);
  const bodies = generatedBodies(oldCount + newCount);
  const { store } = await openOldStore(bodies.slice(0, oldCount), { dataDir: context.dataDir });
  await store.close();
  const { port } = await context.start();
  const post = createClient({ port, ca: context.ca, connections: senders });
  const statuses: number[] = [];
  let next = oldCount;
  const send = async () => {
    for (let body = bodies[next]; body !== undefined; body = bodies[next]) {
      next += 1;
      statuses.push((await post('POST', '/notifications/load', body)).status);
    }
  };
  const compact = () =>
    spawnCommand(['compact', '--json'], { cwd, env: { EARSHOT_DATA_DIR: context.dataDir } }).ended;
  const compacting = compact();
  await Promise.all(Array.from({ length: senders }, send));
  const { code, out } = await compacting;
  expect(code).toBe(0);
  expect(JSON.parse(out).bodies).toBeGreaterThanOrEqual(oldCount);
  expect((await compact()).code).toBe(0);

  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  const database = new Sqlite(join(context.dataDir, databaseFileName), { readonly: true });
  const ids = database.prepare<[], number>('SELECT body_id FROM notification').pluck().all();
  const { storedBody } = bodyReader(database);
  const kept = ids.map((id) => Buffer.from(storedBody(id)).toString());
  database.close();
  expect(kept.toSorted()).toEqual(bodies.map(String).toSorted());
  expect(keptRows(context.dataDir).length).toBeLessThan(bodies.length / 10);
}, 240_000);
