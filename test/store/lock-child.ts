/**
 * Takes the account's lock in a directory. `hold`: says so and holds it until it is killed. `rounds`:
 * takes it again and again, and fails when it meets another holder. `once`: prints how it went.
 */
import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../src/domain/app-error.ts';
import { createAcquireLock } from '../../src/store/engine/locks.ts';

const [, , mode = '', dataDir = ''] = process.argv;
const acquireLock = createAcquireLock(dataDir);

async function hold(): Promise<void> {
  const release = await acquireLock('account', { waitMs: 0 });
  process.stdout.write('taken\n');
  await new Promise((resolve) => process.stdin.once('end', resolve).resume());
  release();
}

async function rounds(): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    const release = await acquireLock('account', { waitMs: 15_000 });
    // Making a directory that is there fails, and then so does this process.
    mkdirSync(join(dataDir, 'held'));
    await delay(3);
    rmdirSync(join(dataDir, 'held'));
    release();
    await delay(3);
  }
}

async function once(): Promise<void> {
  const refusal = await acquireLock('account', { waitMs: 0 }).catch((error: unknown) => error);
  const result =
    refusal instanceof AppError ? { code: refusal.code, message: refusal.message } : 'taken';
  process.stdout.write(JSON.stringify(result));
}

if (mode === 'hold') await hold();
else if (mode === 'rounds') await rounds();
else await once();
