/** Alerts by `earshot start`, and its end while everything that it does by itself hangs. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kill } from 'node:process';
import { expect, it } from 'vitest';
import { startHook } from '../sinks/hook-server.ts';
import { openRegistered, publish, type StartContext } from './start-context.ts';

/** Writes down what it is told, with its own number. One that hangs ends after a minute, whatever becomes of the test. */
const program = (isHanging: boolean) => `
import { appendFileSync, readFileSync } from 'node:fs';
const told = { pid: process.pid, ...JSON.parse(readFileSync(0, 'utf8')) };
appendFileSync(process.argv[2], JSON.stringify(told) + '\\n');
${isHanging ? 'setTimeout(() => undefined, 60_000);' : ''}
`;

interface Told {
  pid: number;
  id: string;
  kind: string;
  subject: string;
  change: string;
}

/** A program for EARSHOT_ALERT_COMMAND, and what it was told about sinks: the disk may be full here, too. */
function alertProgram(folder: string, isHanging = false) {
  const [script, file] = [join(folder, 'tell.mjs'), join(folder, 'told')];
  writeFileSync(script, program(isHanging));
  const told = (): Told[] =>
    (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [])
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
      .filter(({ kind }) => kind.startsWith('sink'));
  return { command: [process.execPath, script, file].join(' '), told };
}

function writeSinks({ folder }: StartContext, sinks: object): void {
  writeFileSync(
    join(folder, 'earshot.config.ts'),
    `export default ${JSON.stringify({ sinks })};\n`,
  );
}

it('tells the alert command that a sink refuses, and that this is over, once each', async () => {
  const context = await openRegistered();
  const { command: EARSHOT_ALERT_COMMAND, told } = alertProgram(context.folder);
  const hook = await startHook({ answer: (_, response) => response.writeHead(400).end() });
  writeSinks(context, { hook: { webhook: hook.url, attempts: 1, from: 'start' } });
  const running = await context.start({ EARSHOT_ALERT_COMMAND });
  await publish(context, 1);
  const raised = { subject: 'hook', change: 'raised' };
  await expect.poll(told).toMatchObject([raised]);
  await context.command('sinks', 'drop', 'hook', '--all', '--yes');
  const resolved = { subject: 'hook', change: 'resolved' };
  await expect.poll(told).toMatchObject([raised, resolved]);
  expect((await context.command('alerts')).out).not.toContain('hook');
  expect((await context.command('alerts', '--all')).out).toMatch(/warning: sink\S* of hook/);
  await context.stop(running);
  expect(told()).toMatchObject([raised, resolved]);
});

it('ends in time while a list, a sink and the alert command hang', async () => {
  const context = await openRegistered();
  const { command: EARSHOT_ALERT_COMMAND, told } = alertProgram(context.folder, true);
  const hanging = await startHook({ answer: () => 'hang' });
  const refusing = await startHook({ answer: (_, response) => response.writeHead(400).end() });
  writeSinks(context, {
    hanging: { webhook: hanging.url, from: 'start' },
    refusing: { webhook: refusing.url, attempts: 1, from: 'start' },
  });
  context.passMs(10 * context.minuteMs);
  context.sandbox.service.change({ queryDelayMs: 60_000 });
  const asked = () => context.sandbox.requests().filter(({ path }) => path.endsWith('/Products'));
  const askedBefore = asked().length;
  const running = await context.start({ EARSHOT_ALERT_COMMAND });
  await publish(context, 1);
  await expect.poll(told).toHaveLength(1);
  await expect.poll(() => hanging.received.length).toBe(1);
  await expect.poll(() => asked().length).toBeGreaterThan(askedBefore);
  const beganMs = performance.now();
  await context.stop(running);
  // Sinks have ten seconds for what is on its way; nothing else may add much to it.
  expect(performance.now() - beganMs).toBeLessThan(15_000);
  const [{ pid } = { pid: 0 }] = told();
  expect(pid).toBeGreaterThan(0);
  expect(() => kill(pid, 0)).toThrow('ESRCH');
  expect(running.err()).toContain('"msg":"stopped"');
  expect(hanging.received).toHaveLength(1);
});
