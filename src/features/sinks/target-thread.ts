/** The thread of a target that has one of its own. */
import type { z } from 'zod';
import { serveThread } from '../../core/host/serve-thread.ts';
import type { SinkDocument } from './document.ts';
import { type TargetCall, type ThreadTarget, targetOperations, threadKinds } from './registry.ts';
import type { ThreadKind } from './target.ts';

export default serveThread<ThreadTarget, TargetCall>(
  async ({ name, timeoutMs, urls, kind: kindName, settings }) => {
    const kind: ThreadKind<z.ZodRawShape, object> = threadKinds[kindName];
    let timeUs = 0;
    // Before the thread starts: loading may take long. A failure is reported by each delivery.
    await kind.load().catch(() => undefined);
    const target = kind.open(settings, { name, timeoutMs, urls, nowUs: () => timeUs });
    return {
      operations: targetOperations,
      context: ({ signal }) => ({
        deliver: (json, nowUs) => {
          timeUs = nowUs;
          return target.deliver(JSON.parse(json) as SinkDocument, signal);
        },
        check: (sink) => kind.check(settings, { sink, signal }),
      }),
      close: () => target.close(),
    };
  },
);
