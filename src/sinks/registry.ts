/** The kinds of sinks: one file each, loaded when the first sink of its kind is used. */
import { errorText } from '../domain/app-error.ts';
import type { Finding } from '../domain/finding.ts';
import type { SinkDefinition, SinkKind, SinkTarget } from '../domain/sinks.ts';
import type { CheckContext, KindOfSink, OpenContext, Target } from './target.ts';

const kinds: { [Kind in SinkKind]: () => Promise<KindOfSink<Kind>> } = {
  command: async () => (await import('./command.ts')).command,
  webhook: async () => (await import('./webhook.ts')).webhook,
  nats: async () => (await import('./nats.ts')).nats,
};

/** Only a target of the kind may be passed to it. */
interface AnyKind {
  open(target: SinkTarget, context: OpenContext): Target;
  check(target: SinkTarget, context: CheckContext): ReturnType<KindOfSink<SinkKind>['check']>;
}
const load = (kind: SinkKind): Promise<AnyKind> => kinds[kind]();

/** Connects to nothing yet. A kind whose code cannot be loaded is loaded again with the next item. */
export function openTarget(
  { target, name, timeoutMs }: SinkDefinition,
  context: Omit<OpenContext, 'name' | 'timeoutMs'>,
): Target {
  let opening: Promise<Target> | null = null;
  const open = async () => (await load(target.kind)).open(target, { ...context, name, timeoutMs });
  return {
    deliver: async (item, signal) => {
      opening ??= open();
      let opened: Target;
      try {
        opened = await opening;
      } catch (error) {
        opening = null;
        const why = errorText(error);
        return { kind: 'misconfigured', reason: `its client library cannot be loaded: ${why}` };
      }
      return opened.deliver(item, signal);
    },
    close: async () => {
      const opened = await opening?.catch(() => null);
      await opened?.close();
    },
  };
}

/** The doctor's checks, one finding for each sink, all at the same time. Delivers nothing; never rejects. */
export async function checkSinks(
  definitions: readonly SinkDefinition[],
  context: Omit<CheckContext, 'definition'>,
): Promise<Finding[]> {
  if (definitions.length === 0) {
    const message = 'earshot.config.ts names none: nothing is handed over.';
    return [{ check: 'sinks', state: 'skipped', message }];
  }
  return Promise.all(
    definitions.map(async (definition) => {
      const { name, target } = definition;
      const kind = await load(target.kind);
      return { check: `sink ${name}`, ...(await kind.check(target, { ...context, definition })) };
    }),
  );
}
