/** Failed logins from thousands of addresses against the program itself. */
import { expect, it } from 'vitest';
import { runAttack } from './attack-context.ts';

it.runIf(process.platform === 'linux')(
  'are limited by address however it is spelled, and right ones never are',
  { timeout: 120_000 },
  async () => {
    const { exitCode, report } = await runAttack('logins', '--addresses', '2000');
    expect(report.harms).toEqual([]);
    expect(exitCode).toBe(0);
    expect(report.phases).toHaveLength(7);
    expect(report.loginLines).toBeLessThan(100);
  },
);
