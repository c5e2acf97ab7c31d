/** Changes of earshot.config.ts while `earshot start` runs: applied, or rejected with the reason. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startHook } from '../features/sinks/hook-server.ts';
import { notification } from '../helpers/deliveries.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

it('applies a valid change to the sinks that differ, and keeps the previous version after a faulty change', async () => {
  const folder = temporaryDirectory();
  const context = await createReceiverContext(folder);
  const [first, second] = [await startHook(), await startHook()];
  const path = join(folder, 'earshot.config.ts');
  const configure = (sinks: string) => writeFileSync(path, `export default { sinks: ${sinks} };\n`);
  configure(`[{ webhook: '${first.url}' }]`);
  const receiver = await context.start({ EARSHOT_RECONCILE: 'off' });
  const send = createClient({ port: receiver.port, ca: context.ca, connections: 1 });
  const push = async (number: number) => {
    const body = JSON.stringify(notification(number, { ProductId: 'same' }));
    expect(await send('POST', '/notifications/all', body)).toMatchObject({ status: 200 });
  };
  const lines = () =>
    receiver
      .log()
      .trim()
      .split('\n')
      .map((line): Record<string, unknown> => JSON.parse(line));
  const errors = () => lines().filter(({ level }) => level === 'error');
  const applied = () => lines().filter(({ msg }) => `${msg}`.startsWith('applied the changed'));
  const partOf = async (name: string) => {
    const address = `${lines().find(({ consoleUrl }) => consoleUrl)?.consoleUrl}/api/status`;
    const { parts } = (await (await fetch(address)).json()) as { parts: { part: string }[] };
    return parts.find(({ part }) => part === name);
  };

  // A faulty file at the start is reported once, and may be removed.
  const details = [expect.stringMatching(/^sinks: must be an object/)];
  await expect.poll(errors).toMatchObject([{ reason: `${path} is invalid.`, details }]);
  await expect
    .poll(() => partOf('sinks'))
    .toMatchObject({
      ...{ level: 'warning', text: expect.stringContaining('is rejected') },
      evidence: [expect.stringContaining('sinks: must be')],
    });
  rmSync(path);
  await expect.poll(applied).toHaveLength(1);

  configure(`{ first: { webhook: '${first.url}', from: 'start' } }`);
  await expect.poll(applied).toHaveLength(2);
  await push(1);
  await expect.poll(first.positions).toEqual([1]);
  configure(`{ second: { webhook: '${second.url}', from: 'start' } }`);
  await expect.poll(applied).toHaveLength(3);
  await push(2);
  await expect.poll(second.positions).toEqual([1, 2]);

  // Neither a faulty file nor the removal of an applied one changes anything.
  configure(`{ second: { webhook: 'nowhere', from: 'start' } }`);
  await expect.poll(errors).toHaveLength(2);
  await push(3);
  await expect.poll(second.positions).toEqual([1, 2, 3]);
  rmSync(path);
  await expect.poll(errors).toHaveLength(3);
  expect(errors()[2]).toMatchObject({
    msg: expect.stringMatching(/^rejected the changed configuration file/),
    reason: expect.stringContaining(`${path} was removed.`),
  });
  await push(4);
  await expect.poll(second.positions).toEqual([1, 2, 3, 4]);
  configure('{}');
  await expect.poll(applied).toHaveLength(4);
  expect(first.positions()).toEqual([1]);
}, 60_000);
