/** Reads a backup to its end, and holds it against its seal. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { AppError } from '../../domain/app-error.ts';
import { wasEnded } from './backup-job.ts';
import type { BackupProgress } from './backup-messages.ts';
import type { BackupWatch } from './copy-on-thread.ts';
import { diskError } from './disk-error.ts';

/** What a backup was when it was made. */
export interface Sealed {
  /** Of all before the seal. */
  sealedBytes: number;
  /** SHA-256 of these, in hex. */
  digest: string;
}

/** Rejects with `invalid` where a file does not begin with these bytes, and `cancelled` when the signal is aborted. */
export async function verifySealed(
  file: string,
  sealed: Sealed,
  watch: BackupWatch,
): Promise<void> {
  try {
    for await (const _chunk of readSealed(file, sealed, watch, 'verifying'));
  } catch (error) {
    throw diskError(error, file);
  }
}

/** Copies them into a new file, owner-only and on disk when it resolves. Rejects in the same way. */
export async function copySealed(
  file: string,
  to: string,
  sealed: Sealed,
  watch: BackupWatch,
): Promise<void> {
  try {
    const target = createWriteStream(to, { mode: 0o600, flags: 'wx', flush: true });
    await pipeline(readSealed(file, sealed, watch, 'copying'), target);
  } catch (error) {
    throw diskError(error, to);
  }
}

async function* readSealed(
  file: string,
  { sealedBytes: total, digest }: Sealed,
  { onProgress, signal }: BackupWatch,
  phase: BackupProgress['phase'],
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  let done = 0;
  const chunks: AsyncIterable<Buffer> = createReadStream(file, {
    end: total - 1,
    highWaterMark: 2 ** 20,
  });
  for await (const chunk of chunks) {
    if (signal?.aborted) throw wasEnded();
    hash.update(chunk);
    done += chunk.length;
    onProgress?.({ phase, done, total });
    yield chunk;
  }
  if (hash.digest('hex') === digest) return;
  throw new AppError(
    'invalid',
    `${file} is damaged: it is not what it was when it was made. Copy it here once more, or use another backup.`,
  );
}
