/** Changes of earshot.config.ts while `earshot start` runs: applied, or rejected with the reason. */
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startHook } from '../features/sinks/hook-server.ts';
import { notification } from '../helpers/deliveries.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

it('applies a valid change to the sinks that differ, and keeps the previous version after a faulty change', async () => {
  const folder = temporaryDirectory();
  const context = await createReceiverContext(folder);
  const [first, second] = [await startHook(), await startHook()];
  const configure = (sinks: string) =>
    writeFileSync(join(folder, 'earshot.config.ts'), `export default { sinks: ${sinks} };\n`);
  configure(`{ first: { webhook: '${first.url}', from: 'start' } }`);
  const receiver = await context.start({ EARSHOT_RECONCILE: 'off' });
  const send = createClient({ port: receiver.port, ca: context.ca, connections: 1 });
  const push = async (number: number) => {
    const body = JSON.stringify(notification(number, { ProductId: 'same' }));
    expect(await send('POST', '/notifications/all', body)).toMatchObject({ status: 200 });
  };
  const logged = (text: string) => receiver.log().split(text).length - 1;
  const applied = '"applied the changed configuration file"';

  await push(1);
  await expect.poll(first.positions).toEqual([1]);
  configure(`{ second: { webhook: '${second.url}', from: 'start' } }`);
  await expect.poll(() => logged(applied)).toBe(1);
  await push(2);
  await expect.poll(second.positions).toEqual([1, 2]);

  configure(`{ second: { webhook: 'nowhere', from: 'start' } }`);
  await expect.poll(() => logged('"rejected the changed configuration file')).toBe(1);
  await push(3);
  await expect.poll(second.positions).toEqual([1, 2, 3]);
  const listing = spawnCommand(['sinks', 'list'], {
    env: { EARSHOT_DATA_DIR: context.dataDir },
    cwd: folder,
  });
  const { code, out, err } = await listing.ended;
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toContain('The current earshot.config.ts is rejected');
  expect(out).toMatch(/^second +ok +- +0 /m);

  configure(`{ second: { webhook: '${second.url}', from: 'start', attempts: 2 } }`);
  await expect.poll(() => logged(applied)).toBe(2);
  await push(4);
  await expect.poll(second.positions).toEqual([1, 2, 3, 4]);
  expect(first.positions()).toEqual([1]);
  const exit = once(receiver.child, 'exit');
  receiver.child.kill('SIGTERM');
  expect(await exit).toEqual([0, null]);
});

it('reports a faulty file once, accepts its removal, and rejects the removal of an applied file', async () => {
  const folder = temporaryDirectory();
  const context = await createReceiverContext(folder);
  const hook = await startHook();
  const path = join(folder, 'earshot.config.ts');
  const configure = (sinks: string) => writeFileSync(path, `export default { sinks: ${sinks} };\n`);
  configure(`[{ webhook: '${hook.url}' }]`);
  const receiver = await context.start({ EARSHOT_RECONCILE: 'off', EARSHOT_INDEX: 'on' });
  const lines = () =>
    receiver
      .log()
      .split('\n')
      .filter((line) => line !== '')
      .map((line): Record<string, unknown> => JSON.parse(line));
  const errors = () => lines().filter(({ level }) => level === 'error');
  const applied = () => lines().filter(({ msg }) => `${msg}`.startsWith('applied the changed'));
  const parts = async () => {
    const address = `${lines().find(({ consoleUrl }) => consoleUrl)?.consoleUrl}/api/status`;
    const { parts } = (await (await fetch(address)).json()) as { parts: Part[] };
    return parts.filter(({ part }) => part === 'sinks' || part === 'summaries');
  };
  const details = [expect.stringMatching(/^sinks: must be an object with a name for each sink/)];
  await expect.poll(errors).toMatchObject([{ reason: `${path} is invalid.`, details }]);
  await expect.poll(parts).toMatchObject([
    {
      level: 'warning',
      text: expect.stringMatching(/^The current earshot\.config\.ts is rejected/),
      evidence: [expect.stringContaining('sinks: must be')],
    },
    { level: 'ok', text: 'unknown while earshot.config.ts is rejected' },
  ]);

  rmSync(path);
  await expect.poll(applied).toHaveLength(1);
  configure(`{ hook: { webhook: '${hook.url}', from: 'start' } }`);
  await expect.poll(applied).toHaveLength(2);
  rmSync(path);
  await expect.poll(errors).toHaveLength(2);
  expect(errors()[1]).toMatchObject({
    msg: 'rejected the changed configuration file; the previous version stays in effect',
    reason: `${path} was removed. Restore the file. If the file is no longer needed, restart the receiver. Without a restart, write \`export default { sinks: {} };\` to the file.`,
  });
  const send = createClient({ port: receiver.port, ca: context.ca, connections: 1 });
  await send('POST', '/notifications/all', JSON.stringify(notification(1)));
  await expect.poll(hook.positions).toEqual([1]);
  configure('{}');
  await expect.poll(applied).toHaveLength(3);
}, 60_000);

interface Part {
  part: string;
  level: string;
  text: string;
}
