/** A backup of a receiver under load, restored in a new folder: no earlier acknowledged notification is lost. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { notification } from '../helpers/deliveries.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import {
  createClient,
  createReceiverContext,
  credentials,
  type SpawnedReceiver,
} from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const senders = 16;
/** The credentials come from the data directory, so that the backup contains them. */
const withoutCredentials = { EARSHOT_ENDPOINT_USERNAME: '', EARSHOT_ENDPOINT_PASSWORD: '' };

async function openContext() {
  const folder = temporaryDirectory();
  const context = await createReceiverContext(folder);
  mkdirSync(context.dataDir, { mode: 0o700 });
  const secret = join(context.dataDir, 'endpoint-credentials.json');
  writeFileSync(secret, JSON.stringify({ pairs: [credentials] }), { mode: 0o600 });
  const out = join(folder, 'backups');
  mkdirSync(out, { mode: 0o700 });
  const command = (...argv: string[]) =>
    spawnCommand(argv, { env: { EARSHOT_DATA_DIR: context.dataDir }, cwd: folder });
  const start = (dataDir = context.dataDir) =>
    context.start({ ...withoutCredentials, EARSHOT_DATA_DIR: dataDir });
  return { ...context, folder, out, command, start };
}

type Context = Awaited<ReturnType<typeof openContext>>;

const bodyOf = (number: number) =>
  JSON.stringify(notification(number, { padding: `${number} `.repeat(500) }));

/** Sends notifications until it is stopped; records the numbers answered with 200. */
function startLoad({ ca }: Context, { port }: SpawnedReceiver, answered: number[]) {
  const post = createClient({ port, ca, connections: senders });
  let isGoing = true;
  let next = answered.length;
  const send = async () => {
    while (isGoing) {
      const number = next;
      next += 1;
      const { status } = await post('POST', '/notifications/load', bodyOf(number));
      expect(status).toBe(200);
      answered.push(number);
    }
  };
  const sending = Promise.all(Array.from({ length: senders }, send));
  return {
    stop: async () => {
      isGoing = false;
      await sending;
    },
  };
}

/** Returns the numbers of all notifications in a store, including duplicates. */
function storedIn(dataDir: string): number[] {
  const database = new Sqlite(join(dataDir, databaseFileName));
  const stored = database.prepare<[], string>('SELECT ack_id FROM notification').pluck().all();
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
  database.close();
  return stored.map((ackId) => Number(ackId.replace('ack-', ''))).toSorted((a, b) => a - b);
}

it('contains every notification acknowledged before, and runs in a new folder', async () => {
  const context = await openContext();
  const receiver = await context.start();
  const answered: number[] = [];
  const load = startLoad(context, receiver, answered);
  await expect.poll(() => answered.length, { timeout: 60_000 }).toBeGreaterThan(2_000);

  const before = [...answered];
  const ended = await context.command('backup', context.out, '--json').ended;
  const atEnd = answered.length;
  await expect.poll(() => answered.length, { timeout: 60_000 }).toBeGreaterThan(atEnd + 100);
  await load.stop();
  expect(await receiver.end()).toEqual([0, null]);
  expect(ended).toMatchObject({ code: 0, err: '' });
  const made: { path: string; notifications: number } = JSON.parse(ended.out);
  expect(atEnd).toBeGreaterThan(before.length);

  const fresh = join(context.folder, 'fresh');
  const restored = await context.command('restore', made.path, '--data-dir', fresh).ended;
  expect(restored).toMatchObject({ code: 0 });
  const stored = storedIn(fresh);
  const isStored = new Set(stored);
  expect(before.filter((number) => !isStored.has(number))).toEqual([]);
  expect(stored).toHaveLength(made.notifications);
  expect(isStored.size).toBe(stored.length);
  expect(stored.length).toBeLessThan(answered.length);

  // Later notifications are sent again with all others, as by the catalogue: each is stored once.
  const again = await context.start(fresh);
  const post = createClient({ port: again.port, ca: context.ca, connections: senders });
  const outcomes = { stored: 0, duplicate: 0 };
  for (let from = 0; from < answered.length; from += senders) {
    const some = answered.slice(from, from + senders);
    const answers = await Promise.all(
      some.map((number) => post('POST', '/notifications/load', bodyOf(number))),
    );
    for (const { body } of answers) {
      outcomes[JSON.parse(body).status as keyof typeof outcomes] += 1;
    }
  }
  expect(await again.end()).toEqual([0, null]);
  expect(outcomes).toEqual({
    stored: answered.length - stored.length,
    duplicate: stored.length,
  });
  expect(storedIn(fresh)).toEqual(answered.toSorted((a, b) => a - b));
}, 240_000);
