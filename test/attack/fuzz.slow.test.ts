/** Two and a half thousand hostile requests to the program itself, on every listener. */
import { expect, it } from 'vitest';
import { runAttack } from './attack-context.ts';

it('harms nothing by fuzzed requests, and every valid push among them is stored once', {
  timeout: 240_000,
}, async () => {
  const counts = ['--requests', '2000', '--private', '500'];
  const { exitCode, report, stderr } = await runAttack('fuzz', ...counts, '--seed', '1');
  expect(stderr).toBe('');
  expect(report.listeners.flatMap(({ harms }: { harms: unknown[] }) => harms)).toEqual([]);
  expect(exitCode).toBe(0);
  const sum = (of: (listener: ReturnType<typeof JSON.parse>) => number) =>
    report.listeners.map(of).reduce((a: number, b: number) => a + b, 0);
  expect(report.listeners).toHaveLength(4);
  expect(sum(({ requests }) => requests)).toBe(2_500);
  expect(sum(({ evidence }) => evidence.stored)).toBeGreaterThan(200);
  expect(sum(({ evidence }) => evidence.stored - evidence.answered)).toBe(0);
});

it('is told to be wrong when a case is asked for without its seed', async () => {
  const { exitCode, stderr } = await runAttack('fuzz', '--only', '7');
  expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/--only wants --seed/)]);
});
