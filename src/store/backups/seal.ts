/** The last line of a backup: the SHA-256 of all before it, by which any change of it shows, on any machine. */
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import type { BackupJob } from './backup-job.ts';

/** It follows the last page, where SQLite does not look: a backup can be opened as a database. */
const words = 'earshot backup, SHA-256 of all before: ';

/** Of the whole line, in bytes. */
export const sealBytes = sealOf('0'.repeat(64)).length;

const chunkBytes = 2 ** 20;

export function sealOf(digest: string): string {
  return `${words}${digest}\n`;
}

/** The digest that a backup ends with; null for a file that ends otherwise. */
export function readSeal(file: string): string | null {
  const descriptor = openSync(file, 'r');
  try {
    const from = Math.max(0, fstatSync(descriptor).size - sealBytes);
    const line = Buffer.alloc(sealBytes);
    readSync(descriptor, line, 0, sealBytes, from);
    const digest = line.toString('latin1').slice(words.length, -1);
    return /^[0-9a-f]{64}$/.test(digest) && line.toString('latin1') === sealOf(digest)
      ? digest
      : null;
  } finally {
    closeSync(descriptor);
  }
}

/** Adds the line to a database that is closed; on disk when it resolves. */
export async function seal(file: string, job: BackupJob): Promise<void> {
  const descriptor = openSync(file, 'r+');
  try {
    const total = fstatSync(descriptor).size;
    const hash = createHash('sha256');
    const chunk = Buffer.alloc(chunkBytes);
    let done = 0;
    while (done < total) {
      const length = readSync(descriptor, chunk, 0, chunkBytes, done);
      hash.update(chunk.subarray(0, length));
      done += length;
      job.progress = { phase: 'sealing', done, total };
      await job.turn();
    }
    writeSync(descriptor, sealOf(hash.digest('hex')), total);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
