/** Registry of the kinds of sinks, and the threads of those whose client library needs one. */

import type { z } from 'zod';
import { moduleFile, remote } from '../../core/host/rpc.ts';
import type { Call } from '../../core/host/serve-thread.ts';
import { Thread, threadFault } from '../../core/host/thread.ts';
import { networkFault } from '../../core/http/bounded-fetch.ts';
import { isAppError } from '../../core/terms/app-error.ts';
import type { Evaluation, Finding } from '../../core/terms/evaluation.ts';
import {
  type AnySinkKind,
  type CheckContext,
  type OpenContext,
  type SinkKind,
  type Target,
  type TargetAnswer,
  type ThreadKind,
  unavailable,
  unusable,
} from './target.ts';
import { command } from './targets/command.ts';
import { mqtt } from './targets/mqtt.ts';
import { nats } from './targets/nats.ts';
import { postgres } from './targets/postgres.ts';
import { stac } from './targets/stac.ts';
import { webhook } from './targets/webhook.ts';
import type { SinkRules } from './terms.ts';

/** Kinds whose client library runs in a thread of each sink. */
export const threadKinds = { nats, mqtt, postgres };

/** Kinds by the field of `earshot.config.ts` that defines the target. */
export const sinkKinds = {
  command,
  webhook,
  stac,
  nats: inThread('nats', nats),
  mqtt: inThread('mqtt', mqtt),
  postgres: inThread('postgres', postgres),
};

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

/** Opens a target without connecting to it. */
export function openTarget(
  definition: Pick<SinkDefinition, 'target' | 'name' | 'timeoutMs' | 'message'>,
  context: Omit<OpenContext, 'name' | 'timeoutMs' | 'format'>,
): Target {
  const { target, name, timeoutMs, message } = definition;
  return kindOf(target).open(target, { ...context, name, timeoutMs, format: message.format });
}

/** Runs the doctor's checks in parallel, with one finding per sink. Delivers nothing; never rejects. */
export function checkSinks(
  definitions: readonly SinkDefinition[],
  context: Omit<CheckContext, 'sink'>,
): Promise<Finding[]> {
  return Promise.all(
    definitions.map(async ({ target, ...sink }) => ({
      check: `sink ${sink.name}`,
      ...(await kindOf(target).check(target, { ...context, sink })),
    })),
  );
}

/** Limits of a thread. Batches in progress are smaller. */
const heapMb = 128;
const containedBufferBytes = 128 * 2 ** 20;

/** Data of the thread. */
export interface ThreadTarget extends Pick<OpenContext, 'name' | 'timeoutMs' | 'format'> {
  kind: keyof typeof threadKinds;
  settings: object;
}

/** Operations of the thread. */
export type TargetOperations = {
  /** The document is JSON; the text is null if it is the same. */
  deliver(call: Call, json: string, text: string | null): Promise<TargetAnswer>;
  check(call: Call, sink: SinkRules): Promise<Evaluation>;
};

/** Returns the fault of the target that made its thread fail. */
function faultOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return networkFault(signal.reason);
  if (!isAppError(error, 'unavailable')) throw error;
  const fault = threadFault(error);
  return fault === undefined ? 'its client library has ended' : `its answers ${fault}`;
}

/** Starts a thread with the first call. */
function startThread(data: ThreadTarget): Thread {
  const limits = { heapMb, containedBufferBytes };
  const owner = `the sink ${data.name}`;
  return new Thread(moduleFile('./target-thread', import.meta.url), { owner, data, ...limits });
}

/** Returns the kind with its targets in threads, each with the first item. A check ends its thread. */
function inThread<Fields extends z.ZodRawShape, Settings extends object>(
  kind: ThreadTarget['kind'],
  own: ThreadKind<Fields, Settings>,
): SinkKind<Fields, Settings> {
  return {
    ...own,
    open: (settings, { name, timeoutMs, format }) => {
      const thread = startThread({ kind, settings, name, timeoutMs, format });
      return {
        deliver: async ({ document, text }, signal) => {
          const [json, other] =
            format === 'document' ? [text, null] : [JSON.stringify(document), text];
          try {
            return await remote<TargetOperations>(thread, signal).deliver(json, other);
          } catch (error) {
            return unavailable(faultOf(error, signal));
          }
        },
        close: () => thread.close(),
      };
    },
    check: async (settings, { sink, signal }) => {
      const { name, timeoutMs } = sink;
      const thread = startThread({ kind, settings, name, timeoutMs, format: sink.message.format });
      try {
        return await remote<TargetOperations>(thread, signal).check(sink);
      } catch (error) {
        return unusable('The target', faultOf(error, signal));
      } finally {
        await thread.close();
      }
    },
  };
}
