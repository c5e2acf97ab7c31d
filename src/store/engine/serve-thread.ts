/** The thread's side of the calls of a store thread. */
import { constants, setPriority } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import type { ThreadMessage } from '../../core/host/rpc.ts';
import {
  type ServeCalls,
  type Service,
  serveThread as serve,
} from '../../core/host/serve-thread.ts';
import { storeError } from './sqlite-error.ts';
import type { ThreadPlace } from './thread.ts';

/** Runs this thread. `begin` opens what the operations need, and may throw. */
export function serveThread<Context>(
  begin: (
    place: ThreadPlace,
    post: (message: ThreadMessage) => void,
  ) => Service<Context> | Promise<Service<Context>>,
): ServeCalls {
  return serve(async (place: ThreadPlace, post) => {
    try {
      const service = await begin(place, post);
      const { failure = (error: unknown) => error } = service;
      return { ...service, failure: (error) => storeError(failure(error)) };
    } catch (error) {
      throw storeError(error);
    }
  });
}

/** Lowers the priority of this thread on Linux. Other systems have one priority per process. */
export function lowerPriority(): void {
  if (isMainThread) return;
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Not permitted: all threads keep the same priority.
  }
}
