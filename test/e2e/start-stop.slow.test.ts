/** The process of `earshot start` when a job cannot start, when a start hangs and when a part does not close. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createReceiverContext, type SpawnedReceiver } from '../helpers/spawned-receiver.ts';
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

async function terminated({ child }: SpawnedReceiver): Promise<unknown[]> {
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  return exit;
}

/** Hides one file of the program, as after an interrupted upgrade. */
const missingFile = `import { registerHooks } from 'node:module';
registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier.endsWith('/storage-jobs.ts')) throw new Error('storage-jobs.ts is missing');
    return next(specifier, context);
  },
});`;

it('closes the receiver and exits 1 when a background job cannot start', async () => {
  const { start, folder, preload } = await openFolder();
  const env = { ...preload(missingFile), EARSHOT_BACKUP_DIR: join(folder, 'backups') };
  const { child, log } = await start(env);
  expect(await once(child, 'exit')).toEqual([1, null]);
  expect(log()).toContain('a background job failed to start; shutting down');
  expect(log()).toContain('earshot: A background job failed to start: storage-jobs.ts is missing');
});

it('ends on SIGTERM as soon as everything has stopped', async () => {
  const { start } = await openFolder();
  const receiver = await start();
  await expect.poll(receiver.log).toContain('ready to receive notifications');
  expect(await terminated(receiver)).toEqual([0, null]);
  const endedMs = Date.now();
  const { msg, time } = JSON.parse(receiver.log().trimEnd().split('\n').at(-1) ?? '');
  expect(msg).toBe('stopped');
  expect(endedMs - Date.parse(time)).toBeLessThan(1_500);
});

it('ends on SIGTERM while it starts', async () => {
  const { start, configure } = await openFolder();
  configure('await new Promise(() => undefined);\nexport default { sinks: {} };\n');
  const receiver = await start();
  expect(await terminated(receiver)).toEqual([0, null]);
  expect(receiver.log()).toContain('"stopped"');
});

it('closes what starts after SIGTERM', async () => {
  const { start, configure } = await openFolder();
  configure(`const { promise, resolve } = Promise.withResolvers();
    setTimeout(resolve, 6_000);
    await promise;
    export default { sinks: {} };`);
  const receiver = await start();
  await expect.poll(receiver.log).toContain('ready to receive notifications');
  expect(await terminated(receiver)).toEqual([0, null]);
  expect(receiver.log()).not.toContain('"level":"error"');
  expect(receiver.log()).toContain('"stopped"');
});

/** Listeners that never close, and a limit that ends after half a second instead of 25. */
const hangingClose = `import { Server } from 'node:net';
Server.prototype.close = function () { return this; };
const { setTimeout: wait } = globalThis;
globalThis.setTimeout = (call, ms, ...rest) => wait(call, ms === 25_000 ? 5_000 : ms, ...rest);`;

it('ends on SIGTERM though a part does not close, and names the part', async () => {
  const { start, preload } = await openFolder();
  const receiver = await start(preload(hangingClose));
  await expect.poll(receiver.log).toContain('ready to receive notifications');
  expect(await terminated(receiver)).toEqual([1, null]);
  const line = receiver
    .log()
    .split('\n')
    .find((text) => text.includes('shutdown timed out'));
  expect(JSON.parse(line ?? '{}')).toMatchObject({
    level: 'error',
    open: ['receiver', 'mark of the data directory', 'capture of the console'],
  });
});
