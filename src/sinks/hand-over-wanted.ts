/** Looks whether a sink still wants what was queued for it before this program began, under other rules perhaps. */
import type { SinkDefinition, SinkItem } from '../domain/sinks.ts';
import type { SinkWorld } from './sink-world.ts';
import { compileWants } from './wanted.ts';

/** Rejects with `unavailable` when the store cannot be read. */
export type StillWants = (item: SinkItem) => Promise<boolean>;

/**
 * What this program has queued was judged by the same rules, and is not looked at again; nor is what a replay
 * has queued, which somebody has asked for. One that cannot be judged passes: handing it over fails, and says why.
 * Throws `invalid` for a filter that is none.
 */
export function createStillWants(
  definition: SinkDefinition,
  { sinks, log }: Pick<SinkWorld, 'sinks' | 'log'>,
): StillWants {
  const wants = compileWants(definition, log);
  let lastBefore: number | null = null;

  /** Dead letters may be tried again, and count. Ids only grow. */
  const newestId = async () => {
    let newest = 0;
    for (const state of ['waiting', 'dead'] as const) {
      for await (const { id } of sinks.items({ sink: definition.name, state, limit: 1 })) {
        newest = Math.max(newest, id);
      }
    }
    return newest;
  };
  return async ({ id, position, replayId }) => {
    if (replayId !== null) return true;
    lastBefore ??= await newestId();
    if (id > lastBefore) return true;
    const bounds = { afterPosition: position - 1, beforePosition: position + 1, limit: 1 };
    for await (const row of log.find(bounds)) {
      try {
        return await wants(row);
      } catch {
        return true;
      }
    }
    return true;
  };
}
