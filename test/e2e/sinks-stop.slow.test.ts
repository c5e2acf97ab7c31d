/** SIGTERM to `earshot start` while sinks of every kind hang: it ends soon, and in order. */
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startHook } from '../features/sinks/hook-server.ts';
import { notification } from '../helpers/deliveries.ts';
import { startSilentServer } from '../helpers/silent-server.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

it('ends within some seconds while a webhook, NATS, MQTT and a command hang', async () => {
  const folder = temporaryDirectory();
  const context = await createReceiverContext(folder);
  const hook = await startHook({ answer: () => 'hang' });
  const silent = await startSilentServer();
  const begun = join(folder, 'begun');
  const stubborn = 'trap "" TERM; : > "$0"; while :; do sleep 0.1; done';
  const nats = { servers: [`nats://127.0.0.1:${silent.port}`], subject: 'earshot.products' };
  const sinks = {
    hook: { webhook: hook.url, from: 'start' },
    bus: { nats, from: 'start' },
    broker: { mqtt: { url: `mqtt://127.0.0.1:${silent.port}` }, from: 'start' },
    act: { command: ['sh', '-c', stubborn, begun], from: 'start' },
  };
  writeFileSync(
    join(folder, 'earshot.config.ts'),
    `export default ${JSON.stringify({ sinks })};\n`,
  );
  const { child, port, log } = await context.start({ EARSHOT_RECONCILE: 'off' });
  const send = createClient({ port, ca: context.ca, connections: 1 });
  await send('POST', '/notifications/all', JSON.stringify(notification(1)));
  await expect.poll(() => hook.received.length).toBe(1);
  await expect.poll(silent.open).toBe(2);
  await expect.poll(() => existsSync(begun)).toBe(true);

  const exit = once(child, 'exit');
  const askedMs = performance.now();
  child.kill('SIGTERM');
  expect(await exit).toEqual([0, null]);
  // Two seconds for answers, and two more for the command to end after SIGTERM.
  expect(performance.now() - askedMs).toBeLessThan(8_000);
  expect(log()).toContain('"msg":"stopped"');
}, 60_000);
