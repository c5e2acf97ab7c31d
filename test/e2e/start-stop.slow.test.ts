/** The end of `earshot start`: while it starts, while sinks hang, and when a part does not start or close. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startHook } from '../features/sinks/hook-server.ts';
import { notification } from '../helpers/deliveries.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { startTcpServer } from '../helpers/tcp-server.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

async function openFolder() {
  const folder = temporaryDirectory();
  const receiverContext = await createReceiverContext(folder);
  const preload = (text: string) => {
    const file = join(folder, 'preload.mjs');
    writeFileSync(file, text);
    return { NODE_OPTIONS: `--import=${file}` };
  };
  const configure = (text: string) => writeFileSync(join(folder, 'earshot.config.ts'), text);
  return { ...receiverContext, folder, preload, configure };
}

/** Hides one file of the program, as after an interrupted upgrade. */
const missingFile = `import { registerHooks } from 'node:module';
registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context);
    if (found.url.endsWith('/backup/job.ts')) throw new Error('job.ts is missing');
    return found;
  },
});`;

it('closes the receiver and exits 1 when a background job cannot start', async () => {
  const { start, folder, preload } = await openFolder();
  const env = { ...preload(missingFile), EARSHOT_BACKUP_DIR: join(folder, 'backups') };
  const { exit, log } = await start(env);
  expect(await exit).toEqual([1, null]);
  expect(log()).toContain('earshot: A background job failed to start: job.ts is missing');
});

it.each([
  { moment: 'while it starts', config: 'await new Promise(() => undefined);', isReady: false },
  {
    moment: 'before a part has started',
    config: 'await new Promise((resolve) => setTimeout(resolve, 6_000));',
    isReady: true,
  },
  { moment: 'when everything has started', config: '', isReady: true },
])('ends on SIGTERM $moment', async ({ config, isReady }) => {
  const { start, configure } = await openFolder();
  configure(`${config}\nexport default { sinks: {} };\n`);
  const receiver = await start();
  if (isReady) await expect.poll(receiver.log).toContain('ready to receive notifications');
  expect(await receiver.end()).toEqual([0, null]);
  const endedMs = Date.now();
  expect(receiver.log()).not.toContain('"level":"error"');
  const { msg, time } = JSON.parse(receiver.log().trimEnd().split('\n').at(-1) ?? '');
  expect(msg).toBe('stopped');
  // As soon as everything has stopped; a timer of the user delays the end.
  if (config === '') expect(endedMs - Date.parse(time)).toBeLessThan(1_500);
});

it('ends within some seconds while a webhook, NATS, MQTT and a command hang', async () => {
  const { folder, configure, start, ca } = await openFolder();
  const hook = await startHook({ answer: () => 'hang' });
  const silent = await startTcpServer();
  const begun = join(folder, 'begun');
  const stubborn = 'trap "" TERM; : > "$0"; while :; do sleep 0.1; done';
  const nats = { servers: [`nats://127.0.0.1:${silent.port}`], subject: 'earshot.products' };
  const sinks = {
    hook: { webhook: hook.url, from: 'start' },
    bus: { nats, from: 'start' },
    broker: { mqtt: { url: `mqtt://127.0.0.1:${silent.port}` }, from: 'start' },
    act: { command: ['sh', '-c', stubborn, begun], from: 'start' },
  };
  configure(`export default ${JSON.stringify({ sinks })};\n`);
  const receiver = await start({ EARSHOT_RECONCILE: 'off' });
  const send = createClient({ port: receiver.port, ca, connections: 1 });
  await send('POST', '/notifications/all', JSON.stringify(notification(1)));
  await expect.poll(() => hook.received.length).toBe(1);
  await expect.poll(silent.open).toBe(2);
  await expect.poll(() => existsSync(begun)).toBe(true);
  const askedMs = performance.now();
  expect(await receiver.end()).toEqual([0, null]);
  // Two seconds for answers, and two more for the command to end after SIGTERM.
  expect(performance.now() - askedMs).toBeLessThan(8_000);
  expect(receiver.log()).toContain('"msg":"stopped"');
}, 60_000);

/** Listeners that never close, and a limit that ends after five seconds instead of 25. */
const hangingClose = `import { Server } from 'node:net';
Server.prototype.close = function () { return this; };
const { setTimeout: wait } = globalThis;
globalThis.setTimeout = (call, ms, ...rest) => wait(call, ms === 25_000 ? 5_000 : ms, ...rest);`;

it('ends on SIGTERM though a part does not close, and names the part', async () => {
  const { start, preload } = await openFolder();
  const receiver = await start(preload(hangingClose));
  await expect.poll(receiver.log).toContain('ready to receive notifications');
  expect(await receiver.end()).toEqual([1, null]);
  const lines = receiver.log().split('\n');
  const line = lines.find((text) => text.includes('shutdown timed out'));
  expect(JSON.parse(line ?? '{}')).toMatchObject({
    level: 'error',
    open: ['receiver', 'mark of the data directory', 'capture of the console'],
  });
});
