import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createTakeLock } from '../../src/store/engine/locks.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { runBoundByPermissions } from './bound-by-permissions.ts';

function startChild(mode: 'hold' | 'rounds', dataDir: string): ChildProcess {
  const file = join(import.meta.dirname, 'lock-child.ts');
  const child = spawn(process.execPath, [file, mode, dataDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** A process that holds the account's lock. */
async function startHolder(dataDir: string): Promise<ChildProcess> {
  const child = startChild('hold', dataDir);
  const [text] = child.stdout === null ? [] : await once(child.stdout, 'data');
  expect(String(text)).toBe('taken\n');
  return child;
}

describe('a lock that another process holds', () => {
  it('is refused while that process lives, and free when it was killed', async () => {
    const dataDir = temporaryDirectory();
    const takeLock = createTakeLock(dataDir);
    const holder = await startHolder(dataDir);
    await expect(takeLock('account', { waitMs: 0 })).rejects.toMatchObject({ code: 'conflict' });
    // Waits already when the holder dies.
    const waiting = takeLock('account', { waitMs: 15_000 });
    holder.kill('SIGKILL');
    const release = await waiting;
    await expect(takeLock('account', { waitMs: 0 })).rejects.toMatchObject({ code: 'conflict' });
    release();
  });

  it('is free when that process ended without giving it back', async () => {
    const dataDir = temporaryDirectory();
    const holder = await startHolder(dataDir);
    holder.kill('SIGTERM');
    await once(holder, 'exit');
    const release = await createTakeLock(dataDir)('account', { waitMs: 0 });
    release();
  });

  it('is never held by two, however many want it', async () => {
    const dataDir = temporaryDirectory();
    const children = [1, 2, 3].map(() => startChild('rounds', dataDir));
    const codes = await Promise.all(children.map(async (one) => (await once(one, 'exit'))[0]));
    expect(codes).toEqual([0, 0, 0]);
  });
});

describe('the file of a lock', () => {
  it('is all that is there, empty and for its owner alone', async () => {
    const dataDir = join(temporaryDirectory(), 'made');
    const release = await createTakeLock(dataDir)('subscriptions', { waitMs: 0 });
    expect(readdirSync(dataDir)).toEqual(['subscriptions.lock']);
    release();
    expect(readdirSync(dataDir)).toEqual(['subscriptions.lock']);
    const { mode, size } = statSync(join(dataDir, 'subscriptions.lock'));
    expect({ mode: mode & 0o777, size }).toEqual({ mode: 0o600, size: 0 });
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  });

  it('stays locked when others in this process have tried and given up', async () => {
    const dataDir = temporaryDirectory();
    const takeLock = createTakeLock(dataDir);
    const release = await takeLock('account', { waitMs: 0 });
    for (let i = 0; i < 3; i += 1) {
      await expect(takeLock('account', { waitMs: 0 })).rejects.toMatchObject({ code: 'conflict' });
    }
    // Another process, since the system's locks do not hold within one.
    const { stdout } = runBoundByPermissions('lock-child.ts', 'once', dataDir);
    expect(JSON.parse(stdout)).toMatchObject({ code: 'conflict' });
    release();
  });
});

describe('a data directory that cannot hold a lock', () => {
  const taking = (dataDir: string) => createTakeLock(dataDir)('account', { waitMs: 5_000 });
  const child = (dataDir: string) => {
    const { stdout, stderr } = runBoundByPermissions('lock-child.ts', 'once', dataDir);
    expect(stderr).toBe('');
    return JSON.parse(stdout);
  };

  it('is refused when it cannot be made', async () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    await expect(taking(join(file, 'data'))).rejects.toMatchObject({ code: 'configuration' });
    await expect(taking(join(file, 'data'))).rejects.toThrow('EARSHOT_DATA_DIR');
  });

  it('is refused when something else is in the place of the file', async () => {
    const dataDir = temporaryDirectory();
    mkdirSync(join(dataDir, 'account.lock'));
    await expect(taking(dataDir)).rejects.toMatchObject({ code: 'configuration' });
    await expect(taking(dataDir)).rejects.toThrow('write permission');
  });

  it('is refused when the directory may not be written', () => {
    const dataDir = temporaryDirectory();
    chmodSync(dataDir, 0o500);
    const refusal = child(dataDir);
    expect(refusal).toMatchObject({ code: 'configuration' });
    expect(refusal.message).toContain(
      '(SQLITE_CANTOPEN). Give the user that runs earshot write permission',
    );
  });

  it('is refused when the file may be read but not written, which locks nothing', async () => {
    const dataDir = temporaryDirectory();
    (await taking(dataDir))();
    chmodSync(join(dataDir, 'account.lock'), 0o400);
    const refusal = child(dataDir);
    expect(refusal).toMatchObject({ code: 'configuration' });
    expect(refusal.message).toContain('(SQLITE_READONLY)');
    chmodSync(join(dataDir, 'account.lock'), 0o600);
    expect(child(dataDir)).toBe('taken');
  });
});
