/** Threads of the store. */

import { type Remote, remote } from '../../core/host/rpc.ts';
import { Thread } from '../../core/host/thread.ts';
import type { CommitFacts } from '../../core/terms/ports.ts';
import type { TableFiles } from '../tables.ts';
import type { DataPlace } from './disk-limit.ts';

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
  /** Called after each commit of deliveries; must not throw. */
  onCommit?: ((commit: CommitFacts) => void) | undefined;
}

export class StoreThread extends Thread {
  constructor(
    file: URL,
    { dataDir, diskReserveBytes, tables = [], onCommit, ...options }: StoreThreadOptions,
  ) {
    const data: ThreadPlace = { dataDir, diskReserveBytes, tables };
    super(file, {
      ...options,
      owner: 'the store',
      data,
      heapMb,
      ...(onCommit && { onEvent: onCommit }),
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
