/** SIGKILL at each request of a first issue: the next start takes up what there is. */
import { describe, expect, it } from 'vitest';
import { hasPebble } from '../helpers/pebble.ts';
import { killEverywhere, stepsOfAnIssue } from './certificate-kill.ts';

describe.skipIf(!hasPebble)('a first issue (needs pebble)', () => {
  it('that is killed at each of its requests ends as one that was not', async () => {
    const steps = await killEverywhere();
    expect(new Set(steps)).toEqual(new Set(stepsOfAnIssue));
  }, 480_000);
});
