/** All sinks, each on its own: one that fails, is slow or hangs holds up no other and not the intake. */
import { isDeepStrictEqual } from 'node:util';
import type { SinkDefinition } from '../domain/sinks.ts';
import { type RunningSink, runSink } from './run-sink.ts';
import type { SinkWorld } from './sink-world.ts';

export interface RunningSinks {
  /**
   * Starts, stops or replaces the sinks that differ from these definitions; the others are not touched. A sink's open
   * deliveries end before its successor starts, as with `stop`: nothing is lost or delivered out of order. Throws
   * `invalid` for a filter that cannot be used.
   */
  change(definitions: readonly SinkDefinition[]): Promise<void>;
  /**
   * Starts no new delivery. Open ones have two seconds, are then given up, and are repeated by the next program. A
   * program that runs is then asked to end, and killed two seconds later. Resolves when no delivery is open.
   */
  stop(): Promise<void>;
}

/** One program at a time may do this for a store. Throws `invalid` for a filter that cannot be used. */
export function startSinks(world: SinkWorld, definitions: readonly SinkDefinition[]): RunningSinks {
  const running = new Map<string, { definition: SinkDefinition; sink: RunningSink }>();
  let changing: Promise<void> = Promise.resolve();
  let isStopped = false;
  const startMissing = (wanted: readonly SinkDefinition[]) => {
    for (const definition of wanted) {
      if (running.has(definition.name)) continue;
      running.set(definition.name, { definition, sink: runSink(definition, world) });
    }
  };
  const stopAllBut = async (wanted: readonly SinkDefinition[]) => {
    const gone = [...running].filter(
      ([, { definition }]) => !wanted.some((one) => isDeepStrictEqual(one, definition)),
    );
    await Promise.all(gone.map(([, { sink }]) => sink.stop()));
    for (const [name] of gone) running.delete(name);
  };
  startMissing(definitions);
  return {
    change: (wanted) => {
      const changed = changing.then(async () => {
        if (isStopped) return;
        await stopAllBut(wanted);
        if (!isStopped) startMissing(wanted);
      });
      changing = changed.catch(() => undefined);
      return changed;
    },
    stop: async () => {
      isStopped = true;
      await changing;
      await stopAllBut([]);
    },
  };
}
