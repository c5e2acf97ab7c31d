/** One program compares at a time: two would ask the catalogue twice, at twice the rate that is promised. */
import { isAppError } from '../../domain/app-error.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import type { Io } from '../io.ts';

const patienceMs = 1_000;
const waitMs = 60_000;

/** Says so before it waits for another program. Rejects with `conflict` after a minute. */
export async function takeReconcileLock(
  dataDir: string,
  { stderr, signal }: Pick<Io, 'stderr' | 'signal'>,
): Promise<() => void> {
  const takeLock = createTakeLock(dataDir);
  try {
    return await takeLock('reconcile', { waitMs: patienceMs, signal });
  } catch (error) {
    if (!isAppError(error, 'conflict')) throw error;
    stderr.write('Waiting for the receiver, or another command, that is comparing now …\n');
    return takeLock('reconcile', { waitMs, signal });
  }
}
