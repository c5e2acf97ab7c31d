/** Hostile answers of the services that a receiver with a small heap uses. */
import { expect, it } from 'vitest';
import { runAttack } from './attack-context.ts';

it('hostile answers of sinks and catalogue delay no pushes', { timeout: 180_000 }, async () => {
  const { exitCode, report } = await runAttack('services', '--seconds', '60');
  expect(report.harms).toEqual([]);
  expect(exitCode).toBe(0);
  for (const name of [
    'gss',
    'no-body',
    'blocking-error',
    'two-gigabytes',
    'mqtt',
    'nats',
    'catalogue',
  ])
    expect(report.connections[name], name).toBeGreaterThan(0);
  expect(report.pushes.answered).toBeGreaterThan(500);
});
