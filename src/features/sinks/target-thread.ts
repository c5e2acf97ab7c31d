/** The thread of a target that has one of its own. */
import type { z } from 'zod';
import { type Call, serveThread } from '../../core/host/serve-thread.ts';
import type { SinkDocument } from './document.ts';
import { type TargetOperations, type ThreadTarget, threadKinds } from './registry.ts';
import type { ThreadKind } from './target.ts';

export default serveThread<ThreadTarget, Call>(
  async ({ name, timeoutMs, urls, kind: kindName, settings }) => {
    const kind: ThreadKind<z.ZodRawShape, object> = threadKinds[kindName];
    let timeUs = 0;
    // Before the thread starts: loading may take long. A failure is reported by each delivery.
    await kind.load().catch(() => undefined);
    const target = kind.open(settings, { name, timeoutMs, urls, nowUs: () => timeUs });
    const operations: TargetOperations = {
      deliver: ({ signal }, json, nowUs) => {
        timeUs = nowUs;
        return target.deliver(JSON.parse(json) as SinkDocument, signal);
      },
      check: ({ signal }, sink) => kind.check(settings, { sink, signal }),
    };
    return { operations, context: (call) => call, close: () => target.close() };
  },
);
