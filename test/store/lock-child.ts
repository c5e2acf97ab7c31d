/**
 * Acquires the account lock of a directory. `hold`: reports it and holds the lock until killed.
 * `rounds`: acquires it repeatedly, and fails when it meets another holder. `once`: prints the
 * result.
 */
import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../src/core/terms/app-error.ts';
import { createAcquireLock } from '../../src/store/engine/locks.ts';

const [, , mode = '', dataDir = ''] = process.argv;
const acquireLock = createAcquireLock(dataDir);

async function hold(): Promise<void> {
  const release = await acquireLock('account', { waitMs: 0 });
  process.stdout.write('acquired\n');
  await new Promise((resolve) => process.stdin.once('end', resolve).resume());
  release();
}

async function rounds(): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    const release = await acquireLock('account', { waitMs: 15_000 });
    // Creating an existing directory fails, and then so does this process.
    mkdirSync(join(dataDir, 'locked'));
    await delay(3);
    rmdirSync(join(dataDir, 'locked'));
    release();
    await delay(3);
  }
}

async function once(): Promise<void> {
  const refusal = await acquireLock('account', { waitMs: 0 }).catch((error: unknown) => error);
  const result =
    refusal instanceof AppError ? { code: refusal.code, message: refusal.message } : 'acquired';
  process.stdout.write(JSON.stringify(result));
}

if (mode === 'hold') await hold();
else if (mode === 'rounds') await rounds();
else await once();
