/** Files of the data directory that all receivers of a shared log have: the database has the newest version. */
import { hash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pause } from '../../core/cli/io.ts';
import {
  type CredentialPairs,
  credentialsFileName,
  readCredentialsFile,
  writeCredentialsFile,
} from '../../core/config/endpoint-credentials.ts';
import type { Feature } from '../../core/feature.ts';
import { readOwnerOnly, writeOwnerOnly } from '../../core/host/files.ts';
import { AppError } from '../../core/terms/app-error.ts';
import type { FileSync } from '../../store/store.ts';
import type { Connections } from './connection.ts';
import type { SharedLog } from './postgres-log.ts';

/** Table and function of files. */
export const fileSql = `
    CREATE TABLE earshot.file (
      name text COLLATE "C" PRIMARY KEY,
      version bigint NOT NULL,
      content bytea
    );

    -- Replaces or removes a file; returns its version, which grows with each change.
    CREATE FUNCTION earshot.write_file(file_name text, new_content bytea) RETURNS bigint
    LANGUAGE plpgsql VOLATILE AS $$
    DECLARE
      new_version bigint;
    BEGIN
      PERFORM earshot.begin_durable(false);
      INSERT INTO earshot.file AS known VALUES (file_name, 1, new_content)
      ON CONFLICT (name) DO UPDATE SET version = known.version + 1, content = excluded.content
      RETURNING version INTO new_version;
      RETURN new_version;
    END $$;
`;

/** Small files in the database. Calls reject with `unavailable`. */
export function createFiles({ query, value }: Connections) {
  return {
    /** Returns the versions of all files, by name. */
    versions: async () => {
      const rows = await query<{ name: string; version: number }>(
        'SELECT name, version FROM earshot.file',
      );
      return new Map(rows.map(({ name, version }) => [name, version]));
    },
    /** Returns a file; null when there is none. */
    read: async (name: string) => {
      const sql = 'SELECT content FROM earshot.file WHERE name = $1';
      const content = await value<Uint8Array>(sql, [name]);
      return content ? new TextDecoder().decode(content) : null;
    },
    /** Replaces a file, or removes it (null). Returns its new version. */
    write: async (name: string, content: string | null) => {
      const bytes = content === null ? null : Buffer.from(content);
      return (await value<number>('SELECT earshot.write_file($1, $2)', [name, bytes])) ?? 0;
    },
  };
}

/** A deleted file that is kept is restored. */
type SharedFile = NonNullable<Feature['sharedFiles']>[number];

/** Returns the files that are copied; others in the database are ignored. */
const sharedFilesOf = (features: readonly Feature[]): SharedFile[] => [
  { name: credentialsFileName, keeps: true },
  ...features.flatMap(({ sharedFiles = [] }) => sharedFiles),
];

/** State of a file when it was last copied; null without a file. */
interface Copied {
  version: number;
  text: string | null;
}

/**
 * Creates the copying of the credentials and of everything that a certificate needs. If a file has changed on both
 * sides, the database wins. Calls run one after the other.
 */
export function createFileSync(
  dataDir: string,
  files: SharedLog['files'],
  features: readonly Feature[],
): FileSync {
  const shared = sharedFilesOf(features);
  const known = new Map<string, Copied>();
  const copy = async () => {
    const versions = await files.versions();
    for (const { name, keeps } of shared) {
      const path = join(dataDir, name);
      const own = readOwnerOnly(path);
      const version = versions.get(name);
      const last = known.get(name);
      if (version !== undefined && version !== last?.version) {
        const text = await files.read(name);
        if (text === null) rmSync(path, { force: true });
        else if (text !== own) await writeOwnerOnly(path, text);
        known.set(name, { version, text });
      } else if (own === null && last?.text != null && keeps) {
        // Deleted by mistake on this machine.
        await writeOwnerOnly(path, last.text);
      } else if (own !== (last?.text ?? null)) {
        known.set(name, { version: await files.write(name, own), text: own });
      }
    }
  };
  let copying: Promise<void> = Promise.resolve();
  return () => {
    copying = copying.then(copy, copy);
    return copying;
  };
}

/**
 * A node reports every five seconds. Without a report for this time, it counts as stopped. `earshot.report` has the same
 * limit.
 */
export const nodeSilentMs = 20_000;

/** Digest by which nodes report the credentials that they accept. */
export function credentialsDigest(pairs: CredentialPairs): string {
  return hash('sha256', JSON.stringify(pairs), 'hex').slice(0, 16);
}

/** Maximum wait for all nodes. A node reports every five seconds. */
const acceptedMs = 60_000;

const pollMs = 500;

/**
 * Writes the credentials, and waits until every running node accepts them. Rejects with `unavailable` when one does not.
 */
export async function shareCredentials(
  dataDir: string,
  { files, nodes }: Pick<SharedLog, 'files' | 'nodes'>,
  pairs: CredentialPairs,
  signal: AbortSignal,
): Promise<void> {
  await writeCredentialsFile(dataDir, pairs);
  await files.write(credentialsFileName, readOwnerOnly(join(dataDir, credentialsFileName)));
  const digest = credentialsDigest(readCredentialsFile(dataDir) ?? []);
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const running = (await nodes()).filter(({ ageMs }) => ageMs < nodeSilentMs);
    const others = running.filter(({ facts }) => facts.credentials !== digest);
    if (others.length === 0) return;
    if (waitedMs >= acceptedMs || signal.aborted) {
      const names = others.map(({ name }) => name).join(', ');
      throw new AppError(
        'unavailable',
        `These receivers do not accept the new credentials yet: ${names}.`,
        {
          advice:
            'The old credentials stay valid. Check these receivers, then run `earshot credentials rotate` again.',
        },
      );
    }
    await pause(pollMs, signal);
  }
}
