/** The thread of a target that has one of its own. */
import type { z } from 'zod';
import { type Call, serveThread } from '../../core/host/serve-thread.ts';
import type { NotificationDocument } from '../messages/document.ts';
import { type TargetOperations, type ThreadTarget, threadKinds } from './registry.ts';
import type { ThreadKind } from './target.ts';

export default serveThread<ThreadTarget, Call>(async ({ kind: kindName, settings, ...context }) => {
  const kind: ThreadKind<z.ZodRawShape, object> = threadKinds[kindName];
  // Before the thread starts: loading may take long. A failure is reported by each delivery.
  await kind.load().catch(() => undefined);
  const target = kind.open(settings, context);
  const operations: TargetOperations = {
    deliver: ({ signal }, json, text) => {
      const document = JSON.parse(json) as NotificationDocument;
      return target.deliver({ document, text: text ?? json }, signal);
    },
    check: ({ signal }, sink) => kind.check(settings, { sink, signal }),
  };
  return { operations, context: (call) => call, close: () => target.close() };
});
