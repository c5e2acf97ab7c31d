/** Threads of the store: the side of the main thread, and that of the thread. */

import { constants, setPriority } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import { type Remote, remote } from '../../core/host/rpc.ts';
import {
  type ServeCalls,
  type Service,
  serveThread as serve,
} from '../../core/host/serve-thread.ts';
import { Thread } from '../../core/host/thread.ts';
import type { TableFiles } from '../tables.ts';
import type { DataPlace } from './disk-limit.ts';
import { storeError } from './sqlite-error.ts';

/** No thread comes near this limit; a lower limit makes V8 collect garbage earlier. */
const heapMb = 256;

/** Data of a thread of the store. */
export interface ThreadPlace extends DataPlace {
  tables: TableFiles;
}

interface StoreThreadOptions extends DataPlace {
  /** Tables of features; by default none. */
  tables?: TableFiles;
  callTimeoutSeconds: number;
  idleSeconds?: number;
  onChanged?: () => void;
}

export class StoreThread extends Thread {
  constructor(
    file: URL,
    { dataDir, diskReserveBytes, tables = [], ...options }: StoreThreadOptions,
  ) {
    const data: ThreadPlace = { dataDir, diskReserveBytes, tables };
    super(file, {
      ...options,
      owner: 'the store',
      data,
      heapMb,
    });
  }
}

/** Runs work on its own thread, without a timeout, and ends the thread. The signal cancels its calls. */
export async function withThread<Ops, Result>(
  file: URL,
  place: DataPlace & { idleSeconds?: number; tables?: TableFiles },
  work: (thread: Remote<Ops>) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const options = { ...place, callTimeoutSeconds: Number.POSITIVE_INFINITY };
  const thread = new StoreThread(file, options);
  try {
    await thread.start();
    return await work(remote<Ops>(thread, signal));
  } finally {
    await thread.close();
  }
}

/** Runs this thread. `begin` opens what the operations need, and may throw. */
export function serveThread<Context>(
  begin: (place: ThreadPlace, changed: () => void) => Service<Context> | Promise<Service<Context>>,
): ServeCalls {
  return serve<ThreadPlace, Context>(async (place, changed) => {
    try {
      const service = await begin(place, changed);
      const { failure = (error) => error } = service;
      return { ...service, failure: (error, context) => storeError(failure(error, context)) };
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
