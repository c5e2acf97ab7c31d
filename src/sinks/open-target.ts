/** Makes what a sink's definition names. */
import { errorText } from '../domain/app-error.ts';
import type { SinkDefinition } from '../domain/sinks.ts';
import { createCommandTarget } from './command-target.ts';
import type { SinkWorld } from './sink-world.ts';
import type { Target } from './target.ts';
import { createWebhookTarget } from './webhook-target.ts';

/** Connects to nothing yet. */
export function openTarget(
  { name, target, timeoutMs }: Pick<SinkDefinition, 'name' | 'target' | 'timeoutMs'>,
  world: Pick<SinkWorld, 'run' | 'fetch' | 'nowUs' | 'connectNats' | 'logger'>,
): Target {
  switch (target.kind) {
    case 'command':
      return createCommandTarget(target, { ...world, name, timeoutMs });
    case 'webhook':
      return createWebhookTarget(target, world);
    case 'nats':
      return openLater(async () => {
        const { createNatsTarget } = await import('./nats-target.ts');
        return createNatsTarget(target, { name, timeoutMs, connectNats: world.connectNats });
      });
  }
}

/** Loads the library with the first item, so that only its users load it. A failed load is repeated with the next item. */
function openLater(open: () => Promise<Target>): Target {
  let opening: Promise<Target> | null = null;
  return {
    handOver: async (item, signal) => {
      opening ??= open();
      let target: Target;
      try {
        target = await opening;
      } catch (error) {
        opening = null;
        const why = errorText(error);
        return { kind: 'misconfigured', reason: `its client library cannot be loaded: ${why}` };
      }
      return target.handOver(item, signal);
    },
    close: async () => {
      const target = await opening?.catch(() => null);
      await target?.close();
    },
  };
}
