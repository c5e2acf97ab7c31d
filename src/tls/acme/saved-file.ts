/** The files of the ACME folder: JSON by a schema, or a text, for their owner alone. */
import { rm } from 'node:fs/promises';
import type { z } from 'zod';
import { AppError } from '../../domain/app-error.ts';
import { errorCodeOf } from '../../domain/error-code.ts';
import { jsonOf } from '../../domain/json-of.ts';
import { readOwnerOnly, writeOwnerOnly } from '../../domain/owner-only-file.ts';

/**
 * What a file holds; null without one. Rejects with `configuration` for one that others may read or
 * that holds something else, as those who wrote it and those who change it are different programs.
 */
export async function readSaved<Value>(
  path: string,
  schema: z.ZodType<Value>,
): Promise<Value | null> {
  const text = readOwnerOnly(path);
  if (text === null) return null;
  const result = schema.safeParse(jsonOf(text));
  if (result.success) return result.data;
  throw new AppError('configuration', `${path} is not as earshot wrote it.`, {
    advice: 'Move it away: what is missing is made anew.',
  });
}

/** On disk when it resolves. Rejects with `unavailable`, such as for a full disk. */
export async function writeSaved(path: string, value: unknown): Promise<void> {
  const text = typeof value === 'string' ? value : `${JSON.stringify(value, null, 2)}\n`;
  await writeOwnerOnly(path, text).catch((cause: unknown) => {
    throw cannotBe('written', path, cause);
  });
}

/** A file, or a folder and what is in it; one that is not there is no error. Rejects with `unavailable`. */
export async function removeFile(path: string): Promise<void> {
  // Another program may be putting a file into a folder just now: then it is tried again.
  const options = { recursive: true, force: true, maxRetries: 3 };
  await rm(path, options).catch((cause: unknown) => {
    throw cannotBe('removed', path, cause);
  });
}

function cannotBe(done: 'written' | 'removed', path: string, cause: unknown): AppError {
  const code = errorCodeOf(cause);
  const isFull = code === 'ENOSPC' || code === 'EDQUOT';
  const why = isFull ? ': the disk is full' : '';
  const advice = isFull
    ? 'Free some space; it is tried again by itself.'
    : 'Give the user of the receiver write permission to the data directory and what is in it.';
  return new AppError('unavailable', `${path} cannot be ${done} (${code})${why}.`, {
    advice,
    cause,
  });
}
