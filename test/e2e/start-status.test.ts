/** The status of a running `earshot start`: from inside, from beside it, and when it has ended. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { toStatusJson } from '../../src/domain/status.ts';
import { freePort } from '../helpers/free-ports.ts';
import { openRegistered, publish } from './start-context.ts';

type Told = ReturnType<typeof toStatusJson>;

const part = ({ parts }: Told, name: string) => parts.find((one) => one.part === name);

it('tells the same to the private listener and to the command, and then that it has ended', async () => {
  const context = await openRegistered();
  const port = await freePort();
  const sinks = { odd: { command: ['true'], filter: "Naem eq 'x'" } };
  writeFileSync(
    join(context.folder, 'earshot.config.ts'),
    `export default ${JSON.stringify({ sinks })};\n`,
  );
  context.env.EARSHOT_CONSOLE_LISTEN = `127.0.0.1:${port}`;
  const ask = async (): Promise<Told> =>
    (await fetch(`http://127.0.0.1:${port}/api/status`)).json() as Promise<Told>;
  const running = await context.start();
  await publish(context, 3);

  // A status serves for five seconds of the program's clock, and marks of deliveries are kept every two.
  const told = async () => {
    context.passMs(5_000);
    return ask();
  };
  await expect.poll(async () => (await told()).log?.lastPosition).toBe(3);
  await expect.poll(async () => (await told()).subscriptions[0]?.lastDeliveryAt).not.toBeNull();
  await expect
    .poll(async () => part(await told(), 'readers')?.text)
    .toBe('product index up to date');
  await expect.poll(async () => (await told()).alerts.length).toBe(1);
  const inside = await told();
  expect(inside).toMatchObject({
    ...{ well: false, failures: [], version: expect.stringMatching(/./) },
    receiver: { refusing: null, queue: { bytes: 0 } },
    subscriptions: [{ name: 'default', state: 'running' }],
    certificate: { lastFailure: null },
    sinks: [{ name: 'odd', isSetUp: true, fault: expect.stringContaining('Naem') }],
    alerts: [{ kind: 'sink', subject: 'odd' }],
  });

  const beside = JSON.parse((await context.command('status', '--json')).out) as Told;
  expect(beside).toMatchObject({ receiver: { refusing: null, queue: null } });
  const judged = ({ parts }: Told) =>
    parts
      // What is free on the disk changes as others use it; since when it is up, is written down some time after.
      .filter((one) => one.part !== 'disk' && one.part !== 'log')
      .map((one) => ({ ...one, text: one.text.replace(/, up for [^;]+/, '') }))
      .map((one) => ({ ...one, text: one.text.replaceAll(/\d+ (s|min)\b/g, 'n min') }));
  expect(judged(beside)).toEqual(judged(inside));
  expect(part(beside, 'sinks')).toMatchObject({
    level: 'warning',
    text: 'Nothing is delivered to the sink odd.',
  });

  await context.stop(running);
  const { out } = await context.command('status');
  expect(out).toMatch(/^Not all is well: The receiver is not running: /);
  expect(out).toContain('Nothing is delivered to the sink odd.');
}, 60_000);
