import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openStoreReader } from '../../src/store/store.ts';
import { openFilled, secrets } from '../store/backups/backup-context.ts';
import { expectEnd, nowUs, runCommand, version, type Words } from './fake-io.ts';

/** File name for 2026-05-02T12:00:00Z, the time at which every command here runs. */
const byTime = 'earshot-20260502T120000Z.db';

async function openContext(notifications = 5) {
  const context = await openFilled(notifications);
  const env = { EARSHOT_DATA_DIR: context.dataDir };
  const run = (argv: Words, more: Parameters<typeof runCommand>[1] = {}) =>
    runCommand(argv, { ...more, env: { ...env, ...more.env } });
  return { ...context, run };
}

async function lastBackups(dataDir: string) {
  const reader = openStoreReader(dataDir);
  return reader.backups.lastBackups().finally(() => reader.close());
}

const it = test.extend('context', () => openContext());

describe('earshot backup', () => {
  it('writes a file named after the time into a folder, and prints its path', async () => {
    const { out, run } = await openContext();
    const ended = await run(['backup', '--to', out]);
    expect(ended).toMatchObject({ code: 0, out: `${join(out, byTime)}\n` });
    expect(ended.err).toMatch(
      /^5 notifications, [\d.]+ [KM]iB, verified against the log\. The backup contains secrets/,
    );
    expect(readdirSync(out)).toEqual([byTime]);
  });

  it('uses the configured folder by default', async ({ context: { out, run } }) => {
    const ended = await run('backup', { env: { EARSHOT_BACKUP_DIR: out } });
    expect(ended).toMatchObject({ code: 0, out: `${join(out, byTime)}\n` });
  });

  it.each(['', 'new/deep', 'new/', 'new.d/'])(
    'creates the folder %o with the first backup, for its owner only',
    async (path) => {
      const { folder, run } = await openContext();
      const to = `${folder}/fresh/${path}`;
      const file = join(to, byTime);
      expect(await run(['backup', '--to', to])).toMatchObject({ code: 0, out: `${file}\n` });
      expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
      expect(readdirSync(to)).toEqual([byTime]);
    },
  );

  it('creates the folder of EARSHOT_BACKUP_DIR, whatever its name looks like', async () => {
    const { folder, run } = await openContext();
    const to = join(folder, 'backups.d');
    const ended = await run('backup', { env: { EARSHOT_BACKUP_DIR: to } });
    expect(ended).toMatchObject({ code: 0, out: `${join(to, byTime)}\n` });
  });

  it('creates no folder without a database, or when a file has the same name', async () => {
    const { folder, run } = await openContext();
    const to = join(folder, 'fresh');
    const env = { EARSHOT_DATA_DIR: join(folder, 'none') };
    expect((await run(['backup', '--to', to], { env })).code).toBe(2);
    expect(existsSync(to)).toBe(false);
    writeFileSync(to, 'mine');
    for (const path of [to, `${to}/`, join(to, 'deep')]) {
      const ended = await run(['backup', '--to', path, '--force']);
      expect(ended, path).toMatchObject({ code: 2, out: '' });
      expect(ended.err, path).toMatch(/Failed to create the folder \S*fresh\S* \(E\w+\)/);
    }
    expect(readFileSync(to, 'utf8')).toBe('mine');
  });

  it('prints the result with --json, and records it', async () => {
    const { out, dataDir, run } = await openContext();
    const file = join(out, 'mine.db');
    const ended = await run(['backup', '--to', file, '--json']);
    expect(ended).toMatchObject({ code: 0, err: '' });
    const bytes = statSync(file).size;
    expect(JSON.parse(ended.out)).toEqual({
      file,
      bytes,
      notifications: 5,
      lastPosition: 5,
      files: Object.keys(secrets),
      startedAt: '2026-05-02T12:00:00.000000Z',
      endedAt: '2026-05-02T12:00:00.000000Z',
    });
    expect(await lastBackups(dataDir)).toEqual({
      made: { file, startedAtUs: nowUs, endedAtUs: nowUs, bytes, lastPosition: 5, error: null },
      failed: null,
    });
  });

  it('excludes secrets on request, and says so', async ({ context: { out, run } }) => {
    const file = join(out, 'mine.db');
    const ended = await run(['backup', '--to', file, '--without-secrets']);
    expect(ended.err).toContain('The backup contains no secrets.');
    expect(readFileSync(file).includes('a:long-secret')).toBe(false);
    await run(['backup', '--to', file, '--force']);
    expect(readFileSync(file).includes('a:long-secret')).toBe(true);
  });

  it('overwrites a file only with --force, and records neither backup', async () => {
    const { out, dataDir, run } = await openContext();
    const file = join(out, 'mine.db');
    writeFileSync(file, 'mine');
    const ended = await run(['backup', '--to', file]);
    expect(ended).toMatchObject({ code: 2, out: '' });
    expect(ended.err).toBe(
      `earshot: ${file} already exists. Specify another file, or add --force.\n`,
    );
    expect(await lastBackups(dataDir)).toEqual({ made: null, failed: null });
  });

  it('requires a destination and a data directory with a database', async () => {
    const { out, run } = await openContext();
    await expectEnd(run('backup'), 2, '--to FILE');
    await expectEnd(run(['backup', '--to', join(out, 'none', 'x.db')]), 2, 'does not exist');
    const env = { EARSHOT_DATA_DIR: out };
    await expectEnd(run(['backup', '--to', join(out, 'x.db')], { env }), 2, 'There is no database');
  });

  it('refuses secrets that other users can read, and records the reason', async () => {
    const { out, dataDir, run } = await openContext();
    chmodSync(join(dataDir, 'endpoint-credentials.json'), 0o644);
    const ended = await run(['backup', '--to', out]);
    expect(ended).toMatchObject({ code: 2, err: expect.stringContaining('chmod 600') });
    expect(readdirSync(out)).toEqual([]);
    const { failed } = await lastBackups(dataDir);
    expect(failed).toMatchObject({
      file: join(out, byTime),
      error: expect.stringContaining('chmod 600'),
    });
  });
});

describe('earshot backup list', () => {
  it('lists backups, newest first, and files that are not backups', async ({
    context: { out, run },
  }) => {
    const [first, second] = [join(out, 'a.db'), join(out, 'b.db')];
    await run(['backup', '--to', first], { nowUs: () => nowUs });
    await run(['backup', '--to', second], { nowUs: () => nowUs + 60e6 });
    writeFileSync(join(out, 'c.db'), 'text');
    writeFileSync(join(out, 'd.txt'), 'text');
    mkdirSync(join(out, 'e.db'));
    const ended = await expectEnd(run(['backup', 'list', out, '--json']), 0);
    expect(JSON.parse(ended.out)).toEqual([
      {
        file: second,
        madeAt: '2026-05-02T12:01:00.000000Z',
        notifications: 5,
        lastPosition: 5,
        bytes: statSync(second).size,
        version,
        fault: null,
      },
      expect.objectContaining({ file: first, madeAt: '2026-05-02T12:00:00.000000Z' }),
      {
        ...{ file: join(out, 'c.db'), madeAt: null, notifications: null, lastPosition: null },
        ...{ bytes: null, version: null, fault: expect.stringContaining('is not a backup') },
      },
    ]);
    const shown = await run('backup list', { env: { EARSHOT_BACKUP_DIR: out } });
    expect(shown.out).toMatch(/^made \(UTC\) +notifications +size +file\n/);
    expect(shown.out.split('\n')).toHaveLength(5);
    // A path is never shortened: without its end it is useless.
    const narrow = await run(['backup', 'list', out], { isTTY: true, columns: 60 });
    for (const file of [first, second]) expect(narrow.out).toContain(`  ${file}\n`);
  });

  it('reports that there are no backups, or no folder', async ({ context: { out, run } }) => {
    expect(await run(['backup', 'list', out])).toMatchObject({
      code: 0,
      out: '',
      err: `No backups in ${out}.\n`,
    });
    expect((await run(['backup', 'list', join(out, 'none')])).code).toBe(2);
    expect((await run('backup list')).err).toMatch(
      /EARSHOT_BACKUP_DIR is not set\. Specify the folder: `earshot backup list /,
    );
  });
});
