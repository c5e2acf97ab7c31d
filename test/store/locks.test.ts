import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AcquireLock } from '../../src/core/host/job.ts';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { expectRefused } from '../helpers/refusals.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { runBoundByPermissions } from './bound-by-permissions.ts';

const now = { waitMs: 0 };

/** Two programs' access to the same locks, all of them free. */
function twoWays(): [AcquireLock, AcquireLock] {
  const dataDir = temporaryDirectory();
  return [createAcquireLock(dataDir), createAcquireLock(dataDir)];
}

describe('locks between programs', () => {
  it('are held by one program at a time, and a refusal reports what it does', async () => {
    const [take, takeElsewhere] = twoWays();
    onTestFinished(await take('account', now));
    onTestFinished(await takeElsewhere('subscriptions', now));
    for (const way of [take, takeElsewhere]) {
      const refused = way('account', now);
      await expect(refused).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('"account"'),
        advice: expect.stringContaining('Wait'),
      });
    }
    await expect(take('subscriptions', now)).rejects.toThrow('"subscriptions"');
  });

  it("can be released twice without freeing another program's lock", async () => {
    const [take, takeElsewhere] = twoWays();
    const release = await take('account', now);
    release();
    release();
    onTestFinished(await takeElsewhere('account', now));
    release();
    await expectRefused(take('account', now), 'conflict');
  });
});

function startChild(mode: 'hold' | 'rounds', dataDir: string): ChildProcess {
  const file = join(import.meta.dirname, 'lock-child.ts');
  const child = spawn(process.execPath, [file, mode, dataDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** A process that holds the account lock. */
async function startHolder(dataDir: string): Promise<ChildProcess> {
  const child = startChild('hold', dataDir);
  const [text] = child.stdout === null ? [] : await once(child.stdout, 'data');
  expect(String(text)).toBe('acquired\n');
  return child;
}

describe('a lock held by another process', () => {
  it('is refused while that process lives, and is free after a kill', async () => {
    const dataDir = temporaryDirectory();
    const acquireLock = createAcquireLock(dataDir);
    const holder = await startHolder(dataDir);
    await expectRefused(acquireLock('account', { waitMs: 0 }), 'conflict');
    // Already waiting when the holder is killed.
    const waiting = acquireLock('account', { waitMs: 15_000 });
    holder.kill('SIGKILL');
    const release = await waiting;
    await expectRefused(acquireLock('account', { waitMs: 0 }), 'conflict');
    release();
  });

  it('is never held by two processes, however many compete', async () => {
    const dataDir = temporaryDirectory();
    const children = [1, 2, 3].map(() => startChild('rounds', dataDir));
    const codes = await Promise.all(children.map(async (one) => (await once(one, 'exit'))[0]));
    expect(codes).toEqual([0, 0, 0]);
  });
});

describe('a data directory that cannot contain a lock', () => {
  const child = (dataDir: string) => {
    const { stdout, stderr } = runBoundByPermissions('lock-child.ts', 'once', dataDir);
    expect(stderr).toBe('');
    return JSON.parse(stdout);
  };

  it('is refused when its place is a file, or it is not writable', async () => {
    const dataDir = temporaryDirectory();
    writeFileSync(join(dataDir, 'file'), '');
    const inFile = createAcquireLock(join(dataDir, 'file', 'data'))('account', now);
    await expectRefused(inFile, 'configuration');
    chmodSync(dataDir, 0o500);
    expect(child(dataDir)).toMatchObject({ code: 'configuration' });
    chmodSync(dataDir, 0o700);
  });

  it('is refused when the lock file is readable but not writable, so that it could not lock', async () => {
    const dataDir = temporaryDirectory();
    (await createAcquireLock(dataDir)('account', now))();
    const { mode, size } = statSync(join(dataDir, 'account.lock'));
    expect({ mode: mode & 0o777, size }).toEqual({ mode: 0o600, size: 0 });
    chmodSync(join(dataDir, 'account.lock'), 0o400);
    expect(child(dataDir)).toMatchObject({ code: 'configuration' });
    chmodSync(join(dataDir, 'account.lock'), 0o600);
    expect(child(dataDir)).toBe('acquired');
  });
});
