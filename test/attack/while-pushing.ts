/** An attack on a receiver with a small heap, while notifications are pushed: each must be answered in time. */
import { alignTable, figure, megabytes } from '../../bench/figures.ts';
import type { BenchContext } from '../../bench/harness.ts';
import { measured, startSteadyPushes } from './steady-pushes.ts';
import { startTarget, type Target, type TargetOptions, takeEvidence, watchUse } from './target.ts';

export const heapMegabytes = 512;
export const pushesPerSecond = 20;

/** Starts the receiver, attacks it, and returns what the attack returned, the pushes, the memory, and all harms. */
export async function whilePushing<T>(
  { cleanup, folder: parentFolder }: BenchContext,
  { environment, ...more }: Pick<TargetOptions, 'environment' | 'config' | 'fill'>,
  attack: (target: Target) => Promise<T>,
) {
  const startMs = performance.now();
  const target = await startTarget({
    ...{ cleanup, parentFolder, isPlain: true, ...more },
    environment: { ...environment, NODE_OPTIONS: `--max-old-space-size=${heapMegabytes}` },
  });
  const watched = watchUse(target.processId);
  const pushing = startSteadyPushes(target, { kind: 'kept', perSecond: pushesPerSecond });
  const result = await attack(target);
  const { pushes, acknowledged, harms: delays } = await measured(pushing);
  const memory = watched.stop();
  const seconds = (performance.now() - startMs) / 1_000;
  const evidence = await takeEvidence(target, acknowledged, { seconds });
  return { result, pushes, memory, evidence, harms: [...delays, ...evidence.harms] };
}

type Outcome = Pick<Awaited<ReturnType<typeof whilePushing>>, 'pushes' | 'memory'>;

/** Returns a table of the pushes, with one more column. */
export function renderPushes({ pushes, memory }: Outcome, title: string, cell: string): string {
  return alignTable([
    ['pushes', 'p50 ms', 'p99 ms', 'max ms', 'max MB', title],
    [
      ...[figure(pushes.answered), figure(pushes.p50Ms, 1), figure(pushes.p99Ms, 1)],
      ...[figure(pushes.maxMs, 1), megabytes(memory.peakBytes), cell],
    ],
  ]);
}

/** Returns the first harms, one in a line. */
export function renderHarms(harms: readonly string[]): string {
  return harms.length === 0
    ? 'No harm.'
    : `${harms.length} harms:\n${harms.slice(0, 30).join('\n')}`;
}
