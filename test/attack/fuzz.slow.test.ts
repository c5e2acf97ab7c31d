/** Hostile requests to all listeners of a running receiver. */
import { expect, it } from 'vitest';
import { times } from '../helpers/thorough.ts';
import { runAttack } from './attack-context.ts';

it('the receiver survives fuzzed requests and stores every valid push among them once', {
  timeout: 240_000,
}, async () => {
  const [pushes, others] = [times(500, 2_000), times(125, 500)];
  const counts = ['--requests', `${pushes}`, '--private', `${others}`];
  const { exitCode, report, stderr } = await runAttack('fuzz', ...counts, '--seed', '1');
  expect(stderr).toBe('');
  expect(report.listeners.flatMap(({ harms }: { harms: unknown[] }) => harms)).toEqual([]);
  expect(exitCode).toBe(0);
  const sum = (of: (listener: ReturnType<typeof JSON.parse>) => number) =>
    report.listeners.map(of).reduce((a: number, b: number) => a + b, 0);
  expect(report.listeners).toHaveLength(4);
  expect(sum(({ requests }) => requests)).toBe(pushes + others);
  expect(sum(({ evidence }) => evidence.stored)).toBeGreaterThan(pushes / 10);
  expect(sum(({ evidence }) => evidence.stored - evidence.answered)).toBe(0);
});

it('a single case without its seed is refused as wrong usage', async () => {
  const { exitCode, stderr } = await runAttack('fuzz', '--only', '7');
  expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/--only requires --seed/)]);
});
