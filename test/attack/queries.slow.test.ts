/** Hostile bodies of queries at a running receiver with a small heap. */
import { expect, it } from 'vitest';
import { runAttack } from './attack-context.ts';

it('hostile bodies of queries delay no pushes', { timeout: 120_000 }, async () => {
  const { exitCode, report } = await runAttack('queries', '--seconds', '10');
  expect(report.harms).toEqual([]);
  expect(exitCode).toBe(0);
  expect(report.sent['400']).toBeGreaterThan(20);
  expect(report.pushes.answered).toBeGreaterThan(20);
});
