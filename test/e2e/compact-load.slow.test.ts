import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { bodyReader } from '../../src/store/bodies/bodies.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { generatedBodies } from '../helpers/generated-bodies.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { keptRows, openSinglesStore } from '../store/bodies/bodies-in-file.ts';

const oldCount = 800;
const newCount = 1_500;
const senders = 16;
const child = new URL('../store/bodies/compact-child.ts', import.meta.url).pathname;

/** Compacts in another process; resolves with the number of compacted bodies. */
async function compact(dataDir: string): Promise<number> {
  const program = spawn(process.execPath, [child, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [out, [code]] = await Promise.all([text(program.stdout), once(program, 'exit')]);
  expect(code).toBe(0);
  return Number(/compacted (\d+)/.exec(out)?.[1]);
}

it('stores and answers every notification while the log is compacted under load', async () => {
  const cwd = temporaryDirectory();
  const context = await createReceiverContext(cwd);
  const bodies = generatedBodies(oldCount + newCount);
  const { store } = await openSinglesStore(bodies.slice(0, oldCount), { dataDir: context.dataDir });
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
  const compacting = compact(context.dataDir);
  await Promise.all(Array.from({ length: senders }, send));
  expect(await compacting).toBeGreaterThanOrEqual(oldCount);
  await compact(context.dataDir);

  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  const database = new Sqlite(join(context.dataDir, databaseFileName), { readonly: true });
  const ids = database.prepare<[], number>('SELECT body_id FROM notification').pluck().all();
  const { storedBody } = bodyReader(database);
  const kept = ids.map((id) => Buffer.from(storedBody(id)).toString());
  database.close();
  expect(kept.toSorted()).toEqual(bodies.map(String).toSorted());
  expect(keptRows(context.dataDir).length).toBeLessThan(bodies.length / 10);
}, 240_000);
