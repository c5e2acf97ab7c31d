/** Closes opened parts in reverse order; waits for locks. */

import type { Io } from '../cli/io.ts';
import { AppError, isAppError } from '../terms/app-error.ts';
import type { AcquireLock } from './lock.ts';

export interface Closers {
  /** Registers a part to close. Throws `cancelled` once closing has begun; the next `closeAll` closes the part. */
  add(close: () => Promise<void> | void, name?: string): void;
  /** Closes all parts, last opened first. Continues after a failure, and rejects with the first one. */
  closeAll(): Promise<void>;
  /** Returns the names of the open parts, last opened first. */
  open(): string[];
}

export function createClosers(): Closers {
  let closing: Promise<void> | null = null;
  const stack: { name: string; close: () => Promise<void> | void }[] = [];
  const closeStack = async () => {
    const failures: unknown[] = [];
    for (let part = stack.at(-1); part !== undefined; part = stack.at(-1)) {
      try {
        await part.close();
      } catch (error) {
        failures.push(error);
      }
      stack.splice(stack.indexOf(part), 1);
    }
    if (failures.length > 0) throw failures[0];
  };
  return {
    add: (close, name = 'unnamed part') => {
      stack.push({ name, close });
      if (closing !== null) throw new AppError('cancelled', 'The program is shutting down.');
    },
    // Calls run one after the other, so no part is closed twice.
    closeAll: () => {
      closing = closing === null ? closeStack() : closing.then(closeStack, closeStack);
      return closing;
    },
    open: () => stack.map(({ name }) => name).reverse(),
  };
}

/** Wait for a lock before a message is printed. */
const patienceMs = 1_000;

const waitMs = 60_000;

/** Acquires a lock. Prints `waiting` if another program holds it, and rejects with `conflict` after a minute. */
export async function waitForLock(
  acquireLock: AcquireLock,
  name: Parameters<AcquireLock>[0],
  { io, waiting, ...how }: { io: Pick<Io, 'stderr'>; waiting: string; signal?: AbortSignal },
): Promise<() => void> {
  try {
    return await acquireLock(name, { waitMs: patienceMs, ...how });
  } catch (error) {
    if (!isAppError(error, 'conflict')) throw error;
    io.stderr.write(`${waiting}\n`);
    return acquireLock(name, { waitMs, ...how });
  }
}
