/** Files of the data directory that all receivers of a shared log have: the database has the newest version. */
import { hash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Io, pause } from '../../core/cli/io.ts';
import {
  type CredentialPairs,
  credentialsFileName,
  readCredentialsFile,
  writeCredentialsFile,
} from '../../core/config/endpoint-credentials.ts';
import { readOwnerOnly, writeOwnerOnly } from '../../core/host/files.ts';
import { type Job, startJob } from '../../core/host/job.ts';
import type { AcquireLock } from '../../core/host/lock.ts';
import { AppError } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { acmeKeptFiles, challengePath } from '../certificate/acme-state.ts';
import { nodeSilentMs, type SharedFiles, type SharedLog } from './terms.ts';

/** Files that are copied; others in the database are ignored. */
const sharedNames = [credentialsFileName, ...acmeKeptFiles, challengePath];

/** Copies changed files between the data directory and the database, in both directions. */
export type FileSync = () => Promise<void>;

/** State of a file when it was last copied; null without a file. */
interface Copied {
  version: number;
  text: string | null;
}

/**
 * Creates the copying of the credentials and of everything that a certificate needs. If a file has changed on both
 * sides, the database wins. Calls run one after the other.
 */
export function createFileSync(dataDir: string, files: SharedFiles): FileSync {
  const known = new Map<string, Copied>();
  const copy = async () => {
    const versions = await files.versions();
    for (const name of sharedNames) {
      const path = join(dataDir, name);
      const own = readOwnerOnly(path);
      const version = versions.get(name);
      const last = known.get(name);
      if (version !== undefined && version !== last?.version) {
        const text = await files.read(name);
        if (text === null) rmSync(path, { force: true });
        else if (text !== own) await writeOwnerOnly(path, text);
        known.set(name, { version, text });
      } else if (own === null && last?.text != null && name !== challengePath) {
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

const intervalMs = 1_000;

/** Copies changed files while the receiver runs. */
export function startFileSync(
  sync: FileSync,
  { random, log }: Pick<Io, 'random'> & { log: Logger },
): Job {
  const failed = 'failed to copy files of the shared log; retrying';
  return startJob({ every: { firstMs: 0, intervalMs }, run: sync, failed }, { pause, random, log });
}

/** Longer than two rounds of the other receivers. */
const othersMs = 2_500;

/**
 * Parts of a certificate renewal. With a shared log, one receiver orders, and all answer its challenges; `sync` is null
 * without one.
 */
export function sharedRenewal(
  acquireLock: AcquireLock,
  sync: FileSync | null,
  signal: AbortSignal,
): { acquireLock: AcquireLock; published: () => Promise<void> } {
  if (sync === null) return { acquireLock, published: async () => undefined };
  return {
    acquireLock: async (name, options) => {
      const release = await acquireLock(name, options);
      try {
        // Another receiver may have just ordered.
        await sync();
      } catch (error) {
        release();
        throw error;
      }
      // The lease expires if the process ends first.
      return () => void sync().then(release, release);
    },
    published: async () => {
      await sync();
      await pause(othersMs, signal);
    },
  };
}

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
