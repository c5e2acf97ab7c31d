/** All sinks, each on its own: one that fails, is slow or hangs holds up no other and not the intake. */
import type { SinkDefinition } from '../domain/sinks.ts';
import { runSink } from './run-sink.ts';
import type { SinkWorld } from './sink-world.ts';

export interface RunningSinks {
  /**
   * Takes up nothing new; what is on its way has two seconds, is given up then, and handed over again by the
   * next program. A program that runs is asked to end then, and ended two seconds later. Resolves when nothing is
   * on its way any more.
   */
  stop(): Promise<void>;
}

/** One program at a time may do this for a store. Throws `invalid` for a filter that is none. */
export function startSinks(world: SinkWorld, definitions: readonly SinkDefinition[]): RunningSinks {
  const running = definitions.map((definition) => runSink(definition, world));
  return {
    stop: async () => {
      await Promise.all(running.map((sink) => sink.stop()));
    },
  };
}
