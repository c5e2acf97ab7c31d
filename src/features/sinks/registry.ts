/** Registry of the kinds of sinks. */
import { type Finding, finding } from '../../core/terms/evaluation.ts';
import type { AnySinkKind, CheckContext, OpenContext, Target, ThreadTargetKind } from './target.ts';
import { command } from './targets/command.ts';
import { mqtt } from './targets/mqtt.ts';
import { nats } from './targets/nats.ts';
import { postgres } from './targets/postgres.ts';
import { webhook } from './targets/webhook.ts';
import type { SinkRules } from './terms.ts';
import { checkInThread, openInThread } from './thread-target.ts';

/** Kinds by the field of `earshot.config.ts` that defines the target. */
export const sinkKinds = { command, webhook, nats, mqtt, postgres };

type Kinds = typeof sinkKinds;
export type SinkKindName = keyof Kinds;

/** Target of a sink: its kind, and the settings of that kind. */
export type SinkTarget = {
  [Name in SinkKindName]: { kind: Name } & ReturnType<Kinds[Name]['settings']>;
}[SinkKindName];

/** A sink of `earshot.config.ts`. */
export interface SinkDefinition extends SinkRules {
  target: SinkTarget;
}

/** Returns the kind of a target. The target must only be passed to its own kind. */
const kindOf = ({ kind }: SinkTarget): AnySinkKind => sinkKinds[kind];

/** Returns a kind whose targets run in a thread. */
export function threadKind(name: SinkKindName): ThreadTargetKind<object> {
  const kind: AnySinkKind = sinkKinds[name];
  if (kind.hasThread !== true) throw new Error(`The kind ${name} has no thread.`);
  return kind;
}

/** Opens a target without connecting to it. */
export function openTarget(
  { target, name, timeoutMs }: Pick<SinkDefinition, 'target' | 'name' | 'timeoutMs'>,
  context: Omit<OpenContext, 'name' | 'timeoutMs'>,
): Target {
  const kind = kindOf(target);
  const { urls, nowUs } = context;
  return kind.hasThread
    ? openInThread({ target, name, timeoutMs, urls }, { nowUs })
    : kind.open(target, { ...context, name, timeoutMs });
}

/** Runs the doctor's checks in parallel, with one finding per sink. Delivers nothing; never rejects. */
export async function checkSinks(
  definitions: readonly SinkDefinition[],
  context: Omit<CheckContext, 'sink'>,
): Promise<Finding[]> {
  if (definitions.length === 0) {
    return [finding('sinks', 'ok', 'No sinks are configured in earshot.config.ts.')];
  }
  return Promise.all(
    definitions.map(async ({ target, ...sink }) => {
      const kind = kindOf(target);
      const found = kind.hasThread
        ? await checkInThread({ target, ...sink }, { ...context, sink })
        : await kind.check(target, { ...context, sink });
      return { check: `sink ${sink.name}`, ...found };
    }),
  );
}
