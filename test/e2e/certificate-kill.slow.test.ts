/** SIGKILL at each request of a first issue: the next start continues with the existing files. */
import { describe, expect, it } from 'vitest';
import { hasPebble } from '../helpers/pebble.ts';
import { killEverywhere, stepsOfAnIssue } from './certificate-kill.ts';

describe.skipIf(!hasPebble)('a first issue (needs pebble)', () => {
  it('has the usual result after a kill at each of its requests', async () => {
    const steps = await killEverywhere();
    expect(new Set(steps)).toEqual(new Set(stepsOfAnIssue));
  }, 480_000);
});
