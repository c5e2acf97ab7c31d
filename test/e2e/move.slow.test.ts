/** A move to another host as in docs/start.md: no notification that either host has answered is lost. */
import { once } from 'node:events';
import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { notification } from '../helpers/deliveries.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import {
  createClient,
  createReceiverContext,
  type SpawnedReceiver,
} from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** Moves the files of a database, as `mv earshot.db*` does. */
function moveDatabase(from: string, to: string): void {
  const names = readdirSync(from).filter((name) => name.startsWith('earshot.db'));
  for (const name of names) renameSync(join(from, name), join(to, name));
}

async function stop({ child }: SpawnedReceiver): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await exit).toEqual([0, null]);
}

it('keeps the notifications that the old host, the new one, or both have received', {
  timeout: 60_000,
}, async () => {
  const context = await createReceiverContext(temporaryDirectory());
  const fresh = join(temporaryDirectory(), 'data');
  const send = async ({ port }: SpawnedReceiver, numbers: readonly number[]) => {
    const post = createClient({ port, ca: context.ca });
    for (const number of numbers) {
      const { status } = await post(
        'POST',
        '/notifications/moved',
        JSON.stringify(notification(number)),
      );
      expect(status).toBe(200);
    }
  };
  const run = async (...argv: string[]) => {
    const env = { EARSHOT_DATA_DIR: fresh };
    const ended = await spawnCommand(argv, { env, cwd: temporaryDirectory() }).ended;
    expect(ended).toMatchObject({ code: 0 });
    return ended.out;
  };
  // Both receive while the DNS records change; both get notification 3.
  const old = await context.start();
  await send(old, [1, 2, 3]);
  const first = await context.start({ EARSHOT_DATA_DIR: fresh });
  await send(first, [3, 4, 5]);
  await stop(old);
  await stop(first);
  // The new host continues with the old database, and imports its own first one.
  const between = join(fresh, 'between');
  mkdirSync(between);
  moveDatabase(fresh, between);
  moveDatabase(context.dataDir, fresh);
  const second = await context.start({ EARSHOT_DATA_DIR: fresh });
  await send(second, [6]);
  expect(JSON.parse(await run('import', between, '--json'))).toEqual({
    notifications: 3,
    stored: 2,
    duplicates: 1,
    quarantined: 0,
  });
  await send(second, [7]);
  const rows: { ackId: string }[] = JSON.parse(await run('query', '--output', 'json'));
  expect(rows.map(({ ackId }) => ackId).toSorted()).toEqual(
    [1, 2, 3, 4, 5, 6, 7].map((number) => `ack-${number}`),
  );
});
