import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { expectRefused } from '../../helpers/refusals.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { spawnServer } from '../sinks/spawned-server.ts';
import { atPort, createDatabase, hasPostgres, openNode, useServer } from './shared-log-context.ts';

const program = '/usr/sbin/pgbouncer';

/** Starts PgBouncer in transaction mode in front of a server; returns its port. */
async function startPooler(target: number): Promise<number> {
  const folder = temporaryDirectory();
  const port = await freePort();
  const users = join(folder, 'users.txt');
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(users, '"postgres" ""\n');
  writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${target}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = 3
`,
  );
  chmodSync(folder, 0o755);
  for (const path of [users, file]) chmodSync(path, 0o644);
  // It refuses to run as root.
  const as = process.getuid?.() === 0 ? ['-u', 'postgres'] : [];
  await spawnServer([program, ...as, file], { port, answersWith: 'connect' });
  return port;
}

describe.runIf(hasPostgres && (process.env.CI !== undefined || existsSync(program)))(
  'nodes behind PgBouncer in transaction mode',
  () => {
    const server = useServer();

    it('append, follow by polling, and hold leases', async () => {
      const url = atPort(await createDatabase(server()), await startPooler(server().port));
      const [a, b] = [await openNode({ url }), await openNode({ url })];
      const release = await a.store.acquireLock('leader', { waitMs: 0 });
      await expectRefused(b.store.acquireLock('leader', { waitMs: 0 }), 'conflict');
      const all = Array.from({ length: 200 }, (_, i) => delivery(notification(i)));
      await Promise.all(all.map((one, i) => (i % 2 === 0 ? a : b).store.accept(one)));
      const soon = { interval: 20, timeout: 3_000 };
      await expect.poll(() => b.store.counts(), soon).toMatchObject({ notifications: 200 });
      release();
      (await b.store.acquireLock('leader', { waitMs: 5_000 }))();
    });
  },
);
