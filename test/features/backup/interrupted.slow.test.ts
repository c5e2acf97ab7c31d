/** Backups and restores that end at each change of a file, as if the process was killed: repeating completes. */
import '../../helpers/threads-in-process.ts';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { backupsIn, checkBackup, readBackup } from '../../../src/features/backup/backup-folder.ts';
import { openStore, tables } from '../../helpers/store.ts';
import { contentsIn, filesIn, openFilled, restore } from './backup-context.ts';

/** Number of changes that still succeed. */
const left = vi.hoisted(() => ({ changes: Number.POSITIVE_INFINITY }));

const crashing = vi.hoisted(() => {
  const names =
    'rmSync mkdirSync renameSync openSync writeFileSync createWriteStream open mkdtemp writeFile rename rm';
  return <Module extends object>(real: Module): Module => {
    const changed = Object.entries(real).map(([name, value]) => {
      const isChange = names.split(' ').includes(name) && typeof value === 'function';
      if (!isChange) return [name, value];
      const run = (...args: unknown[]) => {
        const isRead = name.startsWith('open') && !`${args[1]}`.includes('w');
        if (!isRead) {
          left.changes -= 1;
          if (left.changes < 0) throw Object.assign(new Error('killed'), { code: 'EIO' });
        }
        return value(...args);
      };
      return [name, name.endsWith('Sync') ? run : async (...args: unknown[]) => run(...args)];
    });
    return Object.fromEntries(changed);
  };
});
vi.mock('node:fs', async (load) => crashing(await load<typeof import('node:fs')>()));
vi.mock('node:fs/promises', async (load) =>
  crashing(await load<typeof import('node:fs/promises')>()),
);

/** Returns true if the work ended before the process was killed. */
async function isDoneBefore(changes: number, work: () => Promise<unknown>): Promise<boolean> {
  left.changes = changes;
  try {
    await work();
    return true;
  } catch (error) {
    expect(left.changes, String(error)).toBeLessThan(0);
    return false;
  } finally {
    left.changes = Number.POSITIVE_INFINITY;
  }
}

it('a backup that ends at any point is complete or recognised, and the next one removes it', async () => {
  const { out, backUp } = await openFilled(5);
  let rounds = 0;
  for (let isDone = false; !isDone; rounds += 1) {
    isDone = await isDoneBefore(rounds, () => backUp());
    for (const path of backupsIn(out)) {
      if (path.endsWith('.part')) expect(isDone).toBe(false);
      else await checkBackup(readBackup(path), { tables });
    }
    const made = await backUp();
    expect(filesIn(out).filter((name) => name.includes('.part'))).toEqual([]);
    await checkBackup(readBackup(made.path), { tables });
  }
  expect(rounds).toBeGreaterThan(10);
});

it('a restore that ends at any point is complete, or completed by another', async () => {
  const { folder, backUp } = await openFilled(5);
  const { path } = await backUp();
  const dataDir = join(folder, 'fresh');
  const states = new Set<string>();
  let rounds = 0;
  for (let isDone = false; !isDone; rounds += 1) {
    rmSync(dataDir, { recursive: true, force: true });
    isDone = await isDoneBefore(rounds, () => restore(path, dataDir));
    const hasLog = existsSync(join(dataDir, 'earshot.db'));
    if (!hasLog && existsSync(join(dataDir, 'restoring'))) {
      states.add('refused');
      await expect(openStore({ dataDir })).rejects.toMatchObject({
        code: 'configuration',
        message: expect.stringContaining('run `earshot restore` again'),
      });
    }
    if (!hasLog) {
      // A repetition that fails before it moves files changes nothing.
      const cancelled = restore(path, dataDir, AbortSignal.abort());
      await expect(cancelled).rejects.toMatchObject({ code: 'cancelled' });
      await restore(path, dataDir);
    }
    states.add(hasLog ? 'restored' : 'repeated');
    expect(await contentsIn(dataDir)).toHaveLength(5);
    expect(filesIn(dataDir)).toEqual(
      expect.arrayContaining(['endpoint-credentials.json', 'acme/certificate.json']),
    );
    if (!hasLog) expect(filesIn(dataDir)).not.toContain('restoring');
  }
  expect(states).toEqual(new Set(['repeated', 'refused', 'restored']));
  expect(rounds).toBeGreaterThan(5);
});
