import { createHash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { sealBytes, sealOf } from '../../src/store/backups/backup-format.ts';
import { openStore } from '../../src/store/store.ts';
import { contentsIn, fill, openFilled, secrets } from '../store/backups/backup-context.ts';
import { expectEnd, runCommand, version, type Words } from './fake-io.ts';

/** A backup of five notifications, and the closed data directory with three more. */
async function openContext() {
  const context = await openFilled(5);
  const { file, dataDir, folder, store } = context;
  const env = { EARSHOT_DATA_DIR: dataDir };
  const made = await runCommand(['backup', '--to', file], { env });
  expect(made, made.err).toMatchObject({ code: 0 });
  await fill(store, { from: 5, to: 8 });
  await store.close();
  const run = (argv: Words, more: Parameters<typeof runCommand>[1] = {}) =>
    runCommand(argv, { env, ...more });
  return { ...context, run, fresh: join(folder, 'fresh') };
}

const aside = 'before-restore-20260502T120000Z';

describe('earshot restore', () => {
  it('creates a new data directory without a question, and prints the next step', async () => {
    const { file, fresh, run } = await openContext();
    const ended = await run(['restore', file, '--data-dir', fresh]);
    expect(ended).toMatchObject({ code: 0, out: '' });
    expect(ended.err).toContain(`${fresh}: 5 notifications as of 2026-05-02 12:00 (UTC).`);
    expect(ended.err).toContain('Next: start the receiver, then run `earshot doctor`.');
    expect(ended.err).toContain('earshot reconcile --since 2026-05-02T12:00:00Z');
    expect(await contentsIn(fresh)).toHaveLength(5);
  });

  it('shows the existing data directory and its new place, and changes nothing without a yes', async () => {
    const { file, dataDir, run } = await openContext();
    const refused = await expectEnd(run(['restore', file]), 2);
    expect(refused.err).toMatch(/contains:\n {2}acme +folder.*\n {2}earshot\.db +[\d.]+ [KM]iB/);
    expect(refused.err).toContain(`These files will be moved to ${join(dataDir, aside)}.`);
    const denied = await run(['restore', file], { answers: ['n'] });
    expect(denied).toMatchObject({ code: 1, err: expect.stringContaining('Nothing was changed.') });
    expect(await contentsIn(dataDir)).toHaveLength(8);
    const agreed = await expectEnd(run(['restore', file], { answers: ['y'] }), 0);
    expect(agreed.err).toContain('Restore 5 notifications as of 2026-05-02 12:00 (UTC)? [y/N]');
    expect(await contentsIn(dataDir)).toHaveLength(5);
    expect(await contentsIn(join(dataDir, aside))).toHaveLength(8);
  });

  it('requires that the receiver is stopped, before it asks anything', async () => {
    const { file, dataDir, run } = await openContext();
    const store = await openStore({ dataDir, nowUs: () => 0 });
    const ended = await run(['restore', file], { answers: [] });
    await store.close();
    expect(ended).toMatchObject({ code: 1, out: '' });
    expect(ended.err).toMatch(/^earshot: \S+ is in use by a receiver or another command/);
  });

  it('prints the result with --json', async () => {
    const { file, dataDir, fresh, run } = await openContext();
    const backup = {
      file,
      madeAt: '2026-05-02T12:00:00.000000Z',
      version,
      notifications: 5,
      lastPosition: 5,
      bytes: readFileSync(file).length,
      files: Object.keys(secrets).toSorted(),
    };
    const first = await run(['restore', file, '--data-dir', fresh, '--json']);
    expect(JSON.parse(first.out)).toEqual({ ...backup, dataDir: fresh, movedTo: null });
    const second = await run(['restore', file, '--yes', '--json']);
    const movedTo = join(dataDir, aside);
    expect(JSON.parse(second.out)).toEqual({ ...backup, dataDir, movedTo });
    const check = await run(['restore', file, '--check', '--json']);
    expect(JSON.parse(check.out)).toEqual(backup);
  });

  it('shows progress on a terminal, and removes the line at the end', async () => {
    const { file, fresh, run } = await openContext();
    const shown = await run(['restore', file, '--data-dir', fresh], { isTTY: true });
    expect(shown.err).toMatch(/\rCopying: \d+ %.*\rVerifying: 100 %\r +\r\/.*: 5 notifications/s);
    const silent = await run(['restore', file, '--to', `${fresh}2`]);
    expect(silent.err).not.toContain('\r');
  });

  it('warns of a backup with secrets that every user can read', async () => {
    const { file, fresh, run } = await openContext();
    const warning = `Run: chmod 600 ${file}`;
    expect((await run(['restore', '--check', file])).err).not.toContain(warning);
    chmodSync(file, 0o644);
    expect((await run(['restore', '--check', file])).err).toContain(warning);
    const ended = await run(['restore', file, '--data-dir', fresh]);
    expect(ended).toMatchObject({ code: 0, err: expect.stringContaining(warning) });
  });

  it('prints the next step for a backup without secrets', async () => {
    const { file, fresh, dataDir, run } = await openContext();
    await run(['backup', '--to', file, '--force', '--without-secrets']);
    const ended = await run(['restore', file, '--data-dir', fresh]);
    expect(ended.err).toContain('earshot credentials create');
    expect(readdirSync(fresh).filter((name) => !name.endsWith('.lock'))).toEqual(['earshot.db']);
    expect(existsSync(join(dataDir, 'endpoint-credentials.json'))).toBe(true);
  });

  it('refuses a damaged backup, and changes nothing', async () => {
    const { file, dataDir, run } = await openContext();
    const bytes = readFileSync(file);
    bytes.fill(0, 70_000, 70_001);
    bytes.fill(1, 70_001, 70_004);
    writeFileSync(file, bytes);
    const ended = await run(['restore', file, '--yes']);
    expect(ended).toMatchObject({ code: 1, err: expect.stringContaining('is damaged') });
    expect(await contentsIn(dataDir)).toHaveLength(8);
    expect(readdirSync(dataDir).filter((name) => /restor/.test(name))).toEqual([]);
  });
});

describe('earshot restore --check', () => {
  it('exits 0 for an intact backup, and changes nothing', async () => {
    const { file, dataDir, out, run } = await openContext();
    const before = [readdirSync(dataDir), readdirSync(out)];
    const ended = await run(['restore', '--check', file], { env: {} });
    expect(ended).toMatchObject({ code: 0, err: expect.stringContaining('The backup is intact.') });
    expect([readdirSync(dataDir), readdirSync(out)]).toEqual(before);
  });

  it('exits 3 for a truncated or changed backup, and 2 for another file', async () => {
    const { file, dataDir, run } = await openContext();
    const sound = readFileSync(file);
    truncateSync(file, sound.length - 1);
    expect(await run(['restore', '--check', file])).toMatchObject({ code: 3, out: '' });
    const changed = Buffer.from(sound);
    changed.write('zz', 90_000);
    writeFileSync(file, changed);
    expect(await run(['restore', '--check', '--json', file])).toMatchObject({ code: 3, out: '' });
    expect((await run(['restore', '--check', join(dataDir, 'earshot.db')])).code).toBe(2);
    expect((await run(['restore', '--check', `${file}.none`])).code).toBe(2);
  });

  it.each([
    ['nothing.db', 'there is no such file'],
    ['', 'it is a directory'],
  ])('explains for %o why it is no backup', async (name, reason) => {
    const { folder, run } = await openContext();
    const path = join(folder, name);
    for (const flags of [[], ['--check']]) {
      expect(await run(['restore', path, ...flags])).toMatchObject({
        code: 2,
        err: `earshot: ${path} cannot be read: ${reason}. Run \`earshot backup list\` to see the backups.\n`,
      });
    }
  });
});

describe('a malicious backup', () => {
  const change = (sql: string) => (database: Database) => void database.exec(sql);
  const addFile = (path: string) => (database: Database) =>
    void database.prepare("INSERT INTO backup_file VALUES (?, x'00')").run(path);
  const loose =
    'DROP TABLE backup_file; CREATE TABLE backup_file (path, bytes); INSERT INTO backup_file VALUES';

  const harms: [string, (database: Database) => void][] = [
    ['a path that leads out of the folder', addFile('../outside.json')],
    ['one that does so further on', addFile('acme/../../outside.json')],
    ['an absolute path', addFile('/tmp/outside.json')],
    ['a path with a backslash', addFile('acme\\..\\outside.json')],
    ['a path with a NUL', addFile('acme/a.json\0/../../x')],
    ['a settings file', addFile('earshot.config.ts')],
    ['the log itself', addFile('earshot.db')],
    ['a file without content', change(`${loose} ('acme/a.json', NULL)`)],
    ['a file with a number as its path', change(`${loose} (5, x'00')`)],
    ['a file twice', change(`${loose} ('acme/a.json', x'00'), ('acme/a.json', x'01')`)],
    [
      'a position at which its log does not end',
      change('UPDATE backup_about SET last_position = 4'),
    ],
    ['a time that is none', change('UPDATE backup_about SET made_at_us = 1 << 62')],
    [
      'a trigger',
      change('CREATE TRIGGER t AFTER INSERT ON notification BEGIN DELETE FROM notification; END'),
    ],
    ['a view', change('CREATE VIEW v AS SELECT 1')],
    [
      'a trigger whose type is in capitals',
      (database) => {
        database.unsafeMode().pragma('writable_schema = ON');
        const code = 'CREATE TRIGGER t AFTER INSERT ON notification BEGIN DELETE FROM history; END';
        database
          .prepare("INSERT INTO sqlite_schema VALUES ('TRIGGER', 't', 'notification', 0, ?)")
          .run(code);
      },
    ],
    ['a table', change('CREATE TABLE more (x)')],
    ['an index', change('CREATE INDEX more ON history (reason)')],
    ['no index', change('DROP INDEX history_subscription')],
    [
      'another index',
      change(
        'DROP INDEX history_subscription; CREATE INDEX history_subscription ON history (action)',
      ),
    ],
    ['a generated column', change('ALTER TABLE history ADD COLUMN more TEXT AS (hex(reason))')],
    ['a column', change('ALTER TABLE history ADD COLUMN more TEXT')],
  ];

  it('is refused by restore, restore --check and backup list with the same message', async () => {
    const { file, folder, fresh, out, run } = await openContext();
    const sound = readFileSync(file);
    const before = readdirSync(folder);
    for (const [what, harm] of harms) {
      writeFileSync(file, sound);
      forge(file, harm);
      const checked = await run(['restore', '--check', file]);
      const restored = await run(['restore', file, '--to', fresh]);
      expect(checked, what).toMatchObject({ out: '', err: restored.err });
      expect([restored.code, checked.code], what).toEqual([1, 3]);
      expect(restored.err, what).toMatch(
        /^earshot: .*(which is never part of a backup|is damaged)/,
      );
      expect(readdirSync(folder), what).toEqual(before);
      const listed = await run(['backup', 'list', out, '--json']);
      expect(`earshot: ${JSON.parse(listed.out)[0].fault}\n`, what).toBe(restored.err);
    }
  });
});

/** Changes a backup, and computes a new seal, as an attacker can. */
function forge(file: string, change: (database: Database) => void): void {
  truncateSync(file, statSync(file).size - sealBytes);
  const database = new Sqlite(file);
  change(database);
  database.close();
  const digest = createHash('sha256').update(readFileSync(file)).digest('hex');
  appendFileSync(file, sealOf(digest));
}
