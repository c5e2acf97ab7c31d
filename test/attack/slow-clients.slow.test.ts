/** 500 slow connections of unknown clients to a running receiver, and 1,000 with valid credentials. */
import { expect, it } from 'vitest';
import { runAttack } from './attack-context.ts';

// Only Linux answers on every address of 127.0.0.0/8 by default.
it.runIf(process.platform === 'linux')(
  'slow connections delay no pushes and are all closed',
  { timeout: 240_000 },
  async () => {
    const words = ['--connections', '500', '--seconds', '3'];
    const { exitCode, report, stderr } = await runAttack('slow', ...words);
    expect(stderr).toBe('');
    expect(report.harms).toEqual([]);
    expect(exitCode).toBe(0);
    expect(report.phases).toHaveLength(4);
    for (const { crowd, pushes, openMax } of report.phases) {
      expect(crowd.opened).toBeGreaterThanOrEqual(500);
      expect(openMax).toBeGreaterThan(300);
      expect(pushes.during.answered).toBeGreaterThan(5);
    }
  },
);
