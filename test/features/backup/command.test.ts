import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { expectEnd, nowUs, runCommand, version, type Words } from '../../helpers/fake-io.ts';
import { openStoreReader } from '../../helpers/store.ts';
import { contentsIn, fill, openFilled } from './backup-context.ts';

/** Folder for 2026-05-02T12:00:00Z, the time at which every command here runs. */
const byTime = 'earshot-20260502T120000Z';
const madeAt = '2026-05-02T12:00:00.000000Z';

async function openContext() {
  const context = await openFilled(5);
  const env = { EARSHOT_DATA_DIR: context.dataDir };
  const run = (argv: Words, more: Parameters<typeof runCommand>[1] = {}) =>
    runCommand(argv, { ...more, env: { ...env, ...more.env } });
  return { ...context, run, path: join(context.out, byTime), fresh: join(context.folder, 'fresh') };
}

/** A backup of five notifications, and the closed data directory with three more. */
async function openBackedUp() {
  const context = await openContext();
  await expectEnd(context.run(['backup', context.out]), 0);
  await fill(context.store, { from: 5, to: 8 });
  await context.store.close();
  return context;
}

async function lastBackups(dataDir: string) {
  const reader = openStoreReader(dataDir);
  return reader.backups.lastBackups().finally(() => reader.close());
}

describe('earshot backup', () => {
  it('creates a folder named after the time, prints its path, and records it', async () => {
    const { folder, dataDir, run } = await openContext();
    const to = join(folder, 'new', 'deep');
    const path = join(to, byTime);
    const ended = await run('backup', { env: { EARSHOT_BACKUP_DIR: to } });
    expect(ended).toMatchObject({ code: 0, out: `${path}\n` });
    expect(ended.err).toMatch(/^5 notifications, [\d.]+ [KM]iB, checked\. .* contains secrets/);
    expect(readdirSync(to)).toEqual([byTime]);
    expect(statSync(to).mode & 0o777).toBe(0o700);
    const { made, failed } = await lastBackups(dataDir);
    expect(made).toMatchObject({ file: path, startedAtUs: nowUs, lastPosition: 5, error: null });
    expect(failed).toBeNull();
  });

  it('requires a folder and a database, and refuses an existing backup', async () => {
    const { folder, out, path, run } = await openContext();
    await expectEnd(run('backup'), 2, 'EARSHOT_BACKUP_DIR is not set. Specify the folder');
    const env = { EARSHOT_DATA_DIR: join(folder, 'none') };
    await expectEnd(run(['backup', join(out, 'new')], { env }), 2, 'There is no database');
    expect(readdirSync(out)).toEqual([]);
    const made = JSON.parse((await expectEnd(run(['backup', out, '--json']), 0)).out);
    expect(made).toMatchObject({ path, madeAt, version, notifications: 5, lastPosition: 5 });
    await expectEnd(run(['backup', out]), 1, 'already exists');
    await expectEnd(run(['backup', join(path, 'manifest.json')]), 1, 'cannot be read or written');
  });
});

describe('earshot restore', () => {
  it('prints what it has restored, and names the files that must be moved first', async () => {
    const { path, fresh, run } = await openBackedUp();
    const refused = await expectEnd(
      run(['restore', path]),
      1,
      'move these files to another folder',
    );
    expect(refused.err).toContain('already contains acme, earshot.db, endpoint-credentials.json.');
    const env = { EARSHOT_DATA_DIR: fresh };
    const { out } = await expectEnd(run(['restore', path, '--json'], { env }), 0);
    expect(JSON.parse(out)).toMatchObject({ path, madeAt, version, dataDir: fresh });
    expect(await contentsIn(fresh)).toHaveLength(5);
  });

  it('with --check exits 0 for an intact backup, 3 for a damaged one, and restores nothing', async () => {
    const { path, dataDir, out, run } = await openBackedUp();
    const before = [readdirSync(dataDir), readdirSync(out), readdirSync(path)];
    await expectEnd(run(['restore', '--check', path]), 0, 'The backup is intact.');
    const { out: json } = await expectEnd(run(['restore', '--check', path, '--json']), 0);
    expect(JSON.parse(json)).toMatchObject({ path, notifications: 5 });
    writeFileSync(join(path, 'endpoint-credentials.json'), '{}');
    await expectEnd(run(['restore', '--check', path]), 3, 'endpoint-credentials.json has changed');
    await expectEnd(run(['restore', '--check', `${path}.none`]), 3, 'not a backup');
    expect([readdirSync(dataDir), readdirSync(out), readdirSync(path)]).toEqual(before);
  });
});
