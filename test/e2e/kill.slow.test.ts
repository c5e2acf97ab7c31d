import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { bodyReader } from '../../src/store/bodies/bodies.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { notification } from '../helpers/deliveries.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';

const kills = times(8, 40);
const senders = 16;
const padding = 'x'.repeat(4_500);

it(`stores every answered notification once over at least ${kills} kills at random moments under load`, async () => {
  const context = await createReceiverContext(temporaryDirectory());
  const random = createRandom(20_261_120);
  const answered: string[] = [];
  let next = 0;

  // More kills if a slow machine answers few between them.
  for (let round = 0; round < kills || answered.length <= kills * 20; round += 1) {
    const { end, port } = await context.start();
    const post = createClient({ port, ca: context.ca, connections: senders });
    const atStart = answered.length;
    const send = async () => {
      for (;;) {
        next += 1;
        const number = next;
        const body = JSON.stringify(notification(number, { padding }));
        const { status } = await post('POST', '/notifications/kill', body);
        if (status === 200) answered.push(`ack-${number}`);
      }
    };
    // Each sender continues until the kill breaks its connection.
    const sending = Promise.allSettled(Array.from({ length: senders }, send));
    while (answered.length === atStart) await delay(1);
    // The random delay is the moment of the kill; the test waits for no condition here.
    await delay(random.integer(0, 250));
    await Promise.all([end('SIGKILL'), sending]);
  }

  const database = new Sqlite(join(context.dataDir, databaseFileName));
  const rows = database
    .prepare<[], { ackId: string; bodyId: number }>(
      'SELECT ack_id AS ackId, body_id AS bodyId FROM notification',
    )
    .all();
  const stored = rows.map(({ ackId }) => ackId);
  const check = database.pragma('integrity_check', { simple: true });
  const { body } = bodyReader(database);
  const withBody = rows.filter(({ ackId, bodyId }) => body(bodyId)?.includes(`"${ackId}"`)).length;
  database.close();
  const known = new Set(stored);
  expect(answered.filter((ackId) => !known.has(ackId))).toEqual([]);
  expect(known.size).toBe(stored.length);
  expect(withBody).toBe(stored.length);
  expect(check).toBe('ok');
}, 120_000);
