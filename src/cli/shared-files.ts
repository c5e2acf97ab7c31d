/** Files of the data directory that all receivers of a shared log have: the database has the newest version. */
import { hash } from 'node:crypto';
import { join } from 'node:path';
import {
  type CredentialPairs,
  credentialsFileName,
  readCredentialsFile,
  writeCredentialsFile,
} from '../config/endpoint-credentials.ts';
import { AppError } from '../domain/app-error.ts';
import { type Job, startJob } from '../domain/job.ts';
import type { Logger } from '../domain/ports.ts';
import type { SharedFiles, SharedLog } from '../domain/shared-log.ts';
import { readOwnerOnly, writeOwnerOnly } from '../host/files.ts';
import { type Io, pause } from './io.ts';

/** Names of the files in the data directory. */
const sharedNames: readonly string[] = [credentialsFileName];

/** Copies shared files that have changed. A file that only this node has is shared. */
export function createFileSync(dataDir: string, files: SharedFiles): () => Promise<void> {
  const known = new Map<string, number>();
  return async () => {
    const versions = await files.versions();
    for (const name of sharedNames) {
      const version = versions.get(name);
      if (version !== undefined && version === known.get(name)) continue;
      const path = join(dataDir, name);
      const own = readOwnerOnly(path);
      const shared = version === undefined ? null : await files.read(name);
      if (shared === null) {
        if (own !== null) known.set(name, await files.write(name, Buffer.from(own)));
        continue;
      }
      const text = Buffer.from(shared).toString('utf8');
      if (text !== own) await writeOwnerOnly(path, text);
      known.set(name, version ?? 0);
    }
  };
}

/** Longer than several rounds of all nodes. */
const intervalMs = 1_000;

/** Copies changed files while the receiver runs. */
export function startFileSync(
  dataDir: string,
  files: SharedFiles,
  { random, log }: Pick<Io, 'random'> & { log: Logger },
): Job {
  const run = createFileSync(dataDir, files);
  const failed = 'failed to copy files of the shared log; retrying';
  return startJob({ every: { firstMs: 0, intervalMs }, run, failed }, { pause, random, log });
}

/** Digest by which nodes report the credentials that they accept. */
export function credentialsDigest(pairs: CredentialPairs): string {
  return hash('sha256', JSON.stringify(pairs), 'hex').slice(0, 16);
}

/** Nodes without a report for this long do not run; they copy the files when they start. */
const reportedMs = 20_000;

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
  await files.write(
    credentialsFileName,
    Buffer.from(readOwnerOnly(join(dataDir, credentialsFileName)) ?? ''),
  );
  const digest = credentialsDigest(readCredentialsFile(dataDir) ?? []);
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const running = (await nodes()).filter(({ ageMs }) => ageMs < reportedMs);
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
