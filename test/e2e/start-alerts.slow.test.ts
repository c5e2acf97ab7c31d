/** Alerts of `earshot start`, and its end while background jobs hang. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kill } from 'node:process';
import { expect, it } from 'vitest';
import { startHook } from '../features/sinks/hook-server.ts';
import { openRegistered, publish, type StartContext } from './start-context.ts';

/** Alert command that records its input and its process id. If it hangs, it ends after a minute without the test. */
const program = (isHanging: boolean) => `
const alert = { pid: process.pid, ...JSON.parse(readFileSync(0, 'utf8')) };
appendFileSync(process.argv[2], JSON.stringify(alert) + '\\n');
${isHanging ? 'setTimeout(() => undefined, 60_000);' : ''}
`;

interface RecordedAlert {
  pid: number;
  id: string;
  kind: string;
  subject: string;
  change: string;
}

/** Writes a program for EARSHOT_ALERT_COMMAND; `alerts` returns the alerts about sinks that it received. */
function alertProgram(folder: string, isHanging = false) {
  const [script, file] = [join(folder, 'alert.mjs'), join(folder, 'alerts')];
  writeFileSync(script, program(isHanging));
  const alerts = (): RecordedAlert[] =>
    (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [])
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
      // Other alerts are possible here, for example about a full disk.
      .filter(({ kind }) => kind.startsWith('sink'));
  return { command: [process.execPath, script, file].join(' '), alerts };
}

function writeSinks({ folder }: StartContext, sinks: object): void {
  writeFileSync(
    join(folder, 'earshot.config.ts'),
    `export default ${JSON.stringify({ sinks })};\n`,
  );
}

it('runs the alert command once when a sink refuses, and once when the alert is resolved', async () => {
  const context = await openRegistered();
  const { command: EARSHOT_ALERT_COMMAND, alerts } = alertProgram(context.folder);
  const hook = await startHook({ answer: (_, response) => response.writeHead(400).end() });
  writeSinks(context, { hook: { webhook: hook.url, attempts: 1, from: 'start' } });
  const running = await context.start({ EARSHOT_ALERT_COMMAND });
  await publish(context, 1);
  const raised = { subject: 'hook', change: 'raised' };
  await expect.poll(alerts).toMatchObject([raised]);
  await context.command('sinks', 'drop', 'hook', '--all', '--yes');
  const resolved = { subject: 'hook', change: 'resolved' };
  await expect.poll(alerts).toMatchObject([raised, resolved]);
  expect((await context.command('alerts')).out).not.toContain('hook');
  expect((await context.command('alerts', '--all')).out).toMatch(/warning: sink-refused: hook/);
  await context.stop(running);
  expect(alerts()).toMatchObject([raised, resolved]);
});

it('ends in time while a catalogue query, a sink and the alert command hang', async () => {
  const context = await openRegistered();
  const { command: EARSHOT_ALERT_COMMAND, alerts } = alertProgram(context.folder, true);
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
  await expect.poll(alerts).toHaveLength(1);
  await expect.poll(() => hanging.received.length).toBe(1);
  await expect.poll(() => asked().length).toBeGreaterThan(askedBefore);
  const beganMs = performance.now();
  await context.stop(running);
  // Sinks have ten seconds for deliveries in flight; other jobs may add little.
  expect(performance.now() - beganMs).toBeLessThan(15_000);
  const [{ pid } = { pid: 0 }] = alerts();
  expect(pid).toBeGreaterThan(0);
  expect(() => kill(pid, 0)).toThrow('ESRCH');
  expect(running.err()).toContain('"msg":"stopped"');
  expect(hanging.received).toHaveLength(1);
});
