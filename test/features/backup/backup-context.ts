/** A store with notifications and secrets, with helpers to back it up and restore it. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readBackup } from '../../../src/features/backup/backup-folder.ts';
import { type BackupOptions, makeBackup } from '../../../src/features/backup/make-backup.ts';
import { restoreBackup } from '../../../src/features/backup/restore-command.ts';
import type { Store } from '../../../src/store/store.ts';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { openStore, tables } from '../../helpers/store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';

export const secrets = {
  'endpoint-credentials.json': '{"pairs":[{"username":"catalogue","password":"a:long-secret"}]}',
  'acme/certificate.json': '{"key":"none"}',
};

/** Random letters that hardly compress. */
const padding = (characters: number) => randomBytes(characters * 0.75).toString('base64');

/** A data directory with `count` notifications, and an open store over it. Each backup is a second later. */
export async function openFilled(notifications: number, bodyBytes = 512) {
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'data');
  mkdirSync(join(dataDir, 'acme'), { recursive: true, mode: 0o700 });
  const { store } = await openSqliteStore({ dataDir });
  await fill(store, { from: 0, to: notifications, bodyBytes });
  for (const [path, text] of Object.entries(secrets)) {
    writeFileSync(join(dataDir, path), text, { mode: 0o600 });
  }
  const out = join(folder, 'backups');
  mkdirSync(out, { mode: 0o700 });
  let nowUs = 1_795_000_000_000_000;
  const backUp = (options: Partial<BackupOptions> = {}) => {
    nowUs += 1_000_000;
    return makeBackup({
      ...{ dataDir, tables, folder: out, version: '9.8.7-test' },
      ...{ nowUs: () => nowUs, record: async () => undefined },
      ...options,
    });
  };
  return { folder, dataDir, store, out, backUp };
}

export async function fill(
  store: Store,
  { from, to, bodyBytes = 512 }: { from: number; to: number; bodyBytes?: number },
): Promise<void> {
  const numbers = Array.from({ length: to - from }, (_, i) => from + i);
  await Promise.all(
    numbers.map((number) =>
      store.accept(delivery(notification(number, { padding: padding(bodyBytes) }))),
    ),
  );
}

export const restore = (path: string, dataDir: string, signal = new AbortController().signal) =>
  restoreBackup(readBackup(path), { dataDir, tables, signal });

/** Notifications of a directory that no store has open, with their bodies. */
export async function contentsIn(dataDir: string) {
  const store = await openStore({ dataDir, mustExist: true });
  try {
    const rows = await collect(store.find({ order: 'oldest' }));
    return await Promise.all(
      rows.map(async (row) => ({ ...row, body: Buffer.from(await store.body(row.position)) })),
    );
  } finally {
    await store.close();
  }
}

/** Names of the files in a directory and its subdirectories, without locks. */
export function filesIn(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => !name.endsWith('.lock')).toSorted();
}
