/** Opened parts, which are closed in reverse, and locks that are waited for. */
import { AppError, isAppError } from '../domain/app-error.ts';
import type { createAcquireLock } from '../store/engine/locks.ts';
import type { Io } from './io.ts';

export interface Closers {
  /** Registers how a part is closed. Throws `cancelled` once closing has begun; the next `closeAll` closes the part. */
  add(close: () => Promise<void> | void, name?: string): void;
  /** Closes everything, last opened first; continues after a failure and reports the first one. */
  closeAll(): Promise<void>;
  /** Names of the parts that are not closed yet, last opened first. */
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
    add: (close, name = 'a part without a name') => {
      stack.push({ name, close });
      if (closing !== null) throw new AppError('cancelled', 'The program is shutting down.');
    },
    // One call after the other: no part is closed twice.
    closeAll: () => {
      closing = closing === null ? closeStack() : closing.then(closeStack, closeStack);
      return closing;
    },
    open: () => stack.map(({ name }) => name).reverse(),
  };
}

type AcquireLock = ReturnType<typeof createAcquireLock>;

/** Nothing is printed about a lock that another program holds for a shorter time. */
const patienceMs = 1_000;

const waitMs = 60_000;

/** Prints `waiting` before it waits for another program. Rejects with `conflict` after a minute. */
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
