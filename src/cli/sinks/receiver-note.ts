/** Says so when no receiver hands over: what is shown as waiting would wait for ever. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isAppError } from '../../domain/app-error.ts';
import { createTakeLock } from '../../store/engine/locks.ts';

/** Null where one hands over, or where this user may not look. Never rejects. */
export async function receiverNote(dataDir: string): Promise<string | null> {
  return (await isHandingOver(dataDir)) === false
    ? 'No receiver delivers to sinks: nothing moves until `earshot start`.'
    : null;
}

/** The receiver that hands over holds a lock, which ends with it; null where that cannot be told. */
async function isHandingOver(dataDir: string): Promise<boolean | null> {
  // The file is the receiver's: made by another user, it would keep the receiver out.
  if (!existsSync(join(dataDir, 'sinks.lock'))) return false;
  try {
    const release = await createTakeLock(dataDir)('sinks', { waitMs: 0 });
    release();
    return false;
  } catch (error) {
    return isAppError(error, 'conflict') ? true : null;
  }
}
