/** Chooses which fault of the inference service is played for a request. */
import { createHash } from 'node:crypto';
import { createRandom } from '../random.ts';
import { type InferenceFault, inferenceFaults } from './inference-faults.ts';
import type { InferenceKnobs } from './inference-settings.ts';

/**
 * Chooses the fault of a request, or null: first what is set for the next requests, which counts down, else
 * what the shares draw. The draw depends on the seed, the request and how often it was asked, not on what
 * else was asked meanwhile.
 */
export function chooseFault(
  knobs: InferenceKnobs,
  { seed, digest, times }: { seed: number; digest: string; times: number },
): InferenceFault | null {
  const { next, faults } = knobs.current();
  const ordered = inferenceFaults.find((fault) => next[fault] > 0);
  if (ordered !== undefined) {
    knobs.change({ next: { [ordered]: next[ordered] - 1 } });
    return ordered;
  }
  const drawn = createHash('sha256').update(`${digest} ${times}`).digest().readInt32BE();
  const random = createRandom(seed ^ drawn);
  return inferenceFaults.find((fault) => random.chance(faults[fault])) ?? null;
}
