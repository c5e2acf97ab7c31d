/**
 * Targets that run in a thread of their own, because a server can make their client libraries throw, block or use any
 * memory. A thread that fails is an unavailable target; the next delivery starts another one, after a delay.
 */

import { moduleFile, remote } from '../../core/host/rpc.ts';
import { Thread, type ThreadFault } from '../../core/host/thread.ts';
import { networkFault } from '../../core/http/bounded-fetch.ts';
import { isAppError } from '../../core/terms/app-error.ts';
import type { Evaluation } from '../../core/terms/evaluation.ts';
import type { MessageUrls } from './formats.ts';
import {
  type CheckContext,
  type Target,
  type TargetAnswer,
  unavailable,
  unusable,
} from './target.ts';

/** Limits of a thread. Batches in progress are smaller. */
const heapMb = 128;
const containedBufferBytes = 128 * 2 ** 20;

/** Data of the thread. */
export interface ThreadTarget {
  name: string;
  timeoutMs: number;
  urls: MessageUrls;
  target: { kind: string };
}

/** Context of an operation of the thread. */
export interface TargetCall {
  deliver: (json: string, nowUs: number) => Promise<TargetAnswer>;
  check: (context: Pick<CheckContext, 'sink'>) => Promise<Evaluation>;
}

/** Operations of the thread. */
export const targetOperations = {
  /** The document is JSON. */
  deliver: ({ deliver }: TargetCall, json: string, nowUs: number) => deliver(json, nowUs),
  check: ({ check }: TargetCall, ...[context]: Parameters<TargetCall['check']>) => check(context),
};

const faults: Record<ThreadFault, string> = {
  failed: 'its answers made the client library fail',
  memory: 'its answers used too much memory',
  silent: 'its answers blocked the client library',
};

/** Returns the fault of the target that made its thread fail. */
function faultOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return networkFault(signal.reason);
  if (!isAppError(error, 'unavailable')) throw error;
  return faults[error.facts.thread as ThreadFault] ?? 'its client library has ended';
}

function startThread({ name, timeoutMs, urls, target }: ThreadTarget): Thread {
  const data: ThreadTarget = { name, timeoutMs, urls, target };
  const limits = { heapMb, containedBufferBytes };
  const owner = `the sink ${name}`;
  return new Thread(moduleFile('./target-thread', import.meta.url), { owner, data, ...limits });
}

/** Starts the thread with the first item. */
export function openInThread(target: ThreadTarget, { nowUs }: { nowUs: () => number }): Target {
  const thread = startThread(target);
  return {
    deliver: async (item, signal) => {
      // Outside of the `try`: an item that cannot be serialized is not the target's fault.
      const json = JSON.stringify(item);
      try {
        return await remote<typeof targetOperations>(thread, signal).deliver(json, nowUs());
      } catch (error) {
        return unavailable(faultOf(error, signal));
      }
    },
    close: () => thread.close(),
  };
}

/** Checks the target in a thread, which it ends. */
export async function checkInThread(
  target: Omit<ThreadTarget, 'urls'>,
  { sink, signal }: CheckContext,
): Promise<Evaluation> {
  const thread = startThread({ ...target, urls: { catalogue: '', receiver: undefined } });
  try {
    return await remote<typeof targetOperations>(thread, signal).check({ sink });
  } catch (error) {
    return unusable('The target', faultOf(error, signal));
  } finally {
    await thread.close();
  }
}
