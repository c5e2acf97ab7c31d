/** A store with notifications and secrets, with helpers to back it up and restore it. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BackupOptions, makeBackup } from '../../../src/store/backups/make-backup.ts';
import { type RestoreOptions, restoreBackup } from '../../../src/store/backups/restore-backup.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openSqliteStore } from '../sqlite-store.ts';

export const secrets = {
  'endpoint-credentials.json': '{"pairs":[{"username":"catalogue","password":"a:long-secret"}]}',
  'acme/certificate.json': '{"key":"none"}',
};

export const about = { madeAtUs: 1_795_000_000_000_000, version: '9.8.7-test' };

/** Random letters that hardly compress. */
const padding = (characters: number) => randomBytes(characters * 0.75).toString('base64');

/** A data directory with `count` notifications, and an open store over it. */
export async function openFilled(notifications: number, bodyBytes = 512) {
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  const { store } = await openSqliteStore({ dataDir });
  await fill(store, { from: 0, to: notifications, bodyBytes });
  writeSecrets(dataDir);
  const out = join(folder, 'backups');
  mkdirSync(out, { mode: 0o700 });
  const file = join(out, 'backup.db');
  const backUp = (options: Partial<BackupOptions> = {}) =>
    makeBackup({
      ...{ place: { dataDir }, file, createsFolder: false, replace: false },
      ...{ about, files: kept() },
      ...options,
    });
  return { folder, dataDir, store, out, file, backUp };
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

export function writeSecrets(dataDir: string): void {
  mkdirSync(join(dataDir, 'acme'), { recursive: true, mode: 0o700 });
  for (const [path, text] of Object.entries(secrets)) {
    writeFileSync(join(dataDir, path), text, { mode: 0o600 });
  }
}

export function kept() {
  return Object.entries(secrets).map(([path, text]) => ({ path, bytes: Buffer.from(text) }));
}

export const isKept = (path: string) => path in secrets;

export function restore(file: string, dataDir: string, options: Partial<RestoreOptions> = {}) {
  return restoreBackup({
    file,
    dataDir,
    mayContain: isKept,
    aside: join(dataDir, 'old'),
    ...options,
  });
}

/** Notifications of a store, with their bodies. */
export async function contentsOf(store: Store) {
  const rows = await collect(store.find({ order: 'oldest' }));
  return Promise.all(
    rows.map(async (row) => ({ ...row, body: Buffer.from(await store.body(row.position)) })),
  );
}

/** Notifications of a directory that no store has open. */
export async function contentsIn(dataDir: string) {
  const store = await openStore({ dataDir, nowUs: () => 0, mustExist: true });
  try {
    return await contentsOf(store);
  } finally {
    await store.close();
  }
}

/** Names of the files in a directory, including subdirectories. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted();
}
