/** `earshot prune` while the receiver is under load: removes old notifications, and nothing else. */
import { expect, it } from 'vitest';
import { notification } from '../helpers/deliveries.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { fillLog, inspectLog } from './prune-context.ts';

const counts = { old: 6_000, kept: 1_500 };
const senders = 8;

it('removes old notifications under load, and keeps new ones and all that it answers', async () => {
  const folder = temporaryDirectory();
  const context = await createReceiverContext(folder);
  const { dataDir } = context;
  const { kept } = await fillLog(dataDir, counts);
  const { port, child } = await context.start();
  const post = createClient({ port, ca: context.ca, connections: senders });
  const command = (...argv: string[]) =>
    spawnCommand(argv, { env: { EARSHOT_DATA_DIR: dataDir }, cwd: folder }).ended;
  const products = async () => {
    const { out } = await command('admin', 'index', 'status', '--json');
    return JSON.parse(out);
  };
  // Rows that the index has not read block pruning.
  await expect
    .poll(async () => (await products()).products, { timeout: 60_000 })
    .toBe(counts.old + counts.kept);

  const answered: string[] = [];
  let isSending = true;
  let slowestMs = 0;
  let next = 2_000_000;
  const send = async () => {
    while (isSending) {
      next += 1;
      const number = next;
      const beganMs = performance.now();
      const { status } = await post(
        'POST',
        '/notifications/load',
        JSON.stringify(notification(number)),
      );
      slowestMs = Math.max(slowestMs, performance.now() - beganMs);
      expect(status).toBe(200);
      answered.push(`ack-${number}`);
    }
  };
  const sending = Promise.all(Array.from({ length: senders }, send));
  const ended = await command('prune', '--older-than', '365d', '--yes', '--json');
  isSending = false;
  await sending;

  expect(ended.code, ended.err).toBe(0);
  const { notifications, heldBy, removed } = JSON.parse(ended.out);
  expect({ notifications, heldBy }).toEqual({ notifications: counts.old, heldBy: [] });
  expect(removed.notifications).toBe(counts.old);
  expect(answered.length).toBeGreaterThan(100);
  // Far below the 30 s after which the sender would give up; a step holds the lock for some 25 ms.
  expect(slowestMs).toBeLessThan(10_000);
  await expect
    .poll(async () => (await products()).products, { timeout: 60_000 })
    .toBe(counts.kept + answered.length);
  child.kill('SIGTERM');
  await new Promise((resolve) => child.once('exit', resolve));

  const { ackIds, ...found } = inspectLog(dataDir);
  expect(found).toEqual({ unreadable: [], unused: 0, check: 'ok' });
  expect(ackIds.toSorted()).toEqual([...kept, ...answered].toSorted());
  expect(removed.givenBackBytes).toBeGreaterThan(0);
}, 180_000);
