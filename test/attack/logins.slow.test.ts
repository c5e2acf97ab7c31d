/** Failed logins from thousands of addresses at a running receiver. */
import { expect, it } from 'vitest';
import { runAttack } from './attack-context.ts';

it.runIf(process.platform === 'linux')(
  'failed logins are limited per address in every notation, and valid ones are never limited',
  { timeout: 120_000 },
  async () => {
    const { exitCode, report } = await runAttack('logins', '--addresses', '2000');
    expect(report.harms).toEqual([]);
    expect(exitCode).toBe(0);
    expect(report.phases).toHaveLength(7);
    expect(report.loginLines).toBeLessThan(100);
  },
);
