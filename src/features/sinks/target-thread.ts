/** The thread of a target that has one of its own. */
import { serveThread } from '../../core/host/serve-thread.ts';
import type { SinkDocument } from './document.ts';
import {
  type SinkKindName,
  type TargetCall,
  type ThreadTarget,
  targetOperations,
  threadKind,
} from './registry.ts';

export default serveThread<ThreadTarget, TargetCall>(
  async ({ name, timeoutMs, urls, target: settings }) => {
    const kind = threadKind(settings.kind as SinkKindName);
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
        check: (context) => kind.check(settings, { ...context, signal }),
      }),
      close: () => target.close(),
    };
  },
);
