/** Five hundred slow connections of strangers against the program itself, and a thousand with the right credentials. */
import { expect, it } from 'vitest';
import { runAttack } from './attack-context.ts';

// Only Linux answers on every address of 127.0.0.0/8 without being told.
it.runIf(process.platform === 'linux')(
  'harm nothing: pushes are answered beside them, and nothing is left over',
  { timeout: 240_000 },
  async () => {
    const words = ['--connections', '500', '--seconds', '3'];
    const { exitCode, report, stderr } = await runAttack('slow', ...words);
    expect(stderr).toBe('');
    expect(report.harms).toEqual([]);
    expect(exitCode).toBe(0);
    expect(report.phases).toHaveLength(4);
    for (const { crowd, pushes, heldMax } of report.phases) {
      expect(crowd.opened).toBeGreaterThanOrEqual(500);
      expect(heldMax).toBeGreaterThan(300);
      expect(pushes.beside.answered).toBeGreaterThan(5);
    }
  },
);
