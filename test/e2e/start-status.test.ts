/** Status of a running `earshot start`, by its private listener and by the command, and after its end. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { toStatusJson } from '../../src/features/status/status.ts';
import { freePort } from '../helpers/free-ports.ts';
import { openRegistered, publish } from './start-context.ts';

type StatusJson = ReturnType<typeof toStatusJson>;

const part = ({ parts }: StatusJson, name: string) => parts.find((one) => one.part === name);

it('the status is the same from the private listener and from the command, which later reports the end', async () => {
  const context = await openRegistered();
  const port = await freePort();
  const sinks = { odd: { command: ['true'], filter: "Naem eq 'x'" } };
  writeFileSync(
    join(context.folder, 'earshot.config.ts'),
    `export default ${JSON.stringify({ sinks })};\n`,
  );
  context.env.EARSHOT_CONSOLE_LISTEN = `127.0.0.1:${port}`;
  const ask = async (): Promise<StatusJson> =>
    (await fetch(`http://127.0.0.1:${port}/api/status`)).json() as Promise<StatusJson>;
  const running = await context.start();
  await publish(context, 3);

  // A status is cached for five seconds of the program's clock; marks of deliveries are stored every two.
  const freshStatus = async () => {
    context.passMs(5_000);
    return ask();
  };
  await expect.poll(async () => (await freshStatus()).log?.lastPosition).toBe(3);
  await expect
    .poll(async () => (await freshStatus()).subscriptions[0]?.lastDeliveryAt)
    .not.toBeNull();
  await expect
    .poll(async () => part(await freshStatus(), 'readers')?.text)
    .toBe('product index up to date');
  await expect.poll(async () => (await freshStatus()).alerts.length).toBe(1);
  const byListener = await freshStatus();
  expect(byListener).toMatchObject({
    ...{ ok: false, failures: [], version: expect.stringMatching(/./) },
    receiver: { refusing: null, queue: { bytes: 0 } },
    subscriptions: [{ name: 'default', state: 'running' }],
    certificate: { lastFailure: null },
    sinks: [{ name: 'odd', isSetUp: true, fault: expect.stringContaining('Naem') }],
    alerts: [{ kind: 'sink', subject: 'odd' }],
  });

  const page = `http://127.0.0.1:${port}/`;
  expect((await context.command('status')).out).toContain(`\nWeb page: ${page}\n`);
  expect(running.err()).toContain(`"page":"${page}"`);
  const byCommand = JSON.parse((await context.command('status', '--json')).out) as StatusJson;
  expect(byCommand).toMatchObject({ receiver: { refusing: null, queue: null } });
  const comparable = ({ parts }: StatusJson) =>
    parts
      // Other programs change the free space, and the uptime is stored with a delay.
      .filter((one) => one.part !== 'disk' && one.part !== 'log')
      .map((one) => ({ ...one, text: one.text.replace(/, up for [^;]+/, '') }))
      .map((one) => ({ ...one, text: one.text.replaceAll(/\d+ (s|min)\b/g, 'n min') }));
  expect(comparable(byCommand)).toEqual(comparable(byListener));
  expect(part(byCommand, 'sinks')).toMatchObject({
    level: 'warning',
    text: 'Nothing is delivered to the sink odd.',
  });

  await context.stop(running);
  const { out } = await context.command('status');
  expect(out).toMatch(/^The receiver is not running: /);
  expect(out).toContain('Nothing is delivered to the sink odd.');
}, 60_000);
