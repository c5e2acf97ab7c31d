/** The kinds of sinks: one file and one line each. */
import type { Finding } from '../domain/finding.ts';
import type { SinkRules } from '../domain/sinks.ts';
import { command } from './command.ts';
import { nats } from './nats.ts';
import type { AnySinkKind, CheckContext, OpenContext, Target } from './target.ts';
import { webhook } from './webhook.ts';

/** Each kind under the name of the field of `earshot.config.ts` that names its target. */
export const sinkKinds = { command, webhook, nats };

type Kinds = typeof sinkKinds;
export type SinkKindName = keyof Kinds;

/** The target of a sink: its kind, and the settings of that kind. */
export type SinkTarget = {
  [Name in SinkKindName]: { kind: Name } & ReturnType<Kinds[Name]['settings']>;
}[SinkKindName];

/** A sink of `earshot.config.ts`. */
export interface SinkDefinition extends SinkRules {
  target: SinkTarget;
}

/** The kind of a target, which is all that may be passed to it. */
const kindOf = ({ kind }: SinkTarget): AnySinkKind => sinkKinds[kind];

/** Connects to nothing yet. */
export function openTarget(
  { target, name, timeoutMs }: Pick<SinkDefinition, 'target' | 'name' | 'timeoutMs'>,
  context: Omit<OpenContext, 'name' | 'timeoutMs'>,
): Target {
  return kindOf(target).open(target, { ...context, name, timeoutMs });
}

/** The doctor's checks, one finding for each sink, all at the same time. Delivers nothing; never rejects. */
export async function checkSinks(
  definitions: readonly SinkDefinition[],
  context: Omit<CheckContext, 'sink'>,
): Promise<Finding[]> {
  if (definitions.length === 0) {
    const message = 'earshot.config.ts names none: nothing is handed over.';
    return [{ check: 'sinks', state: 'skipped', message }];
  }
  return Promise.all(
    definitions.map(async ({ target, ...sink }) => {
      const found = await kindOf(target).check(target, { ...context, sink });
      return { check: `sink ${sink.name}`, ...found };
    }),
  );
}
