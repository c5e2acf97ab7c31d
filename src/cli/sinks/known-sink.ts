/** What is said to a name of a sink that is none. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { loadEachSink } from '../../config/sinks-config.ts';
import { subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { AppError } from '../../domain/app-error.ts';
import type { SinkReader } from '../../domain/sinks.ts';
import { nearestName } from '../../filter/hints/nearest-name.ts';
import type { Io } from '../io.ts';

type Folder = Pick<Io, 'workingDir'>;

/** That the folder has no file with sinks; null where it has one. */
export function noFileNote({ workingDir }: Folder): string | null {
  if (existsSync(join(workingDir, subscriptionsFileName))) return null;
  return `There is no ${subscriptionsFileName} in ${workingDir}.`;
}

/** An error with the code `usage` that says which names there are. */
export function unknownSink(name: string, known: readonly string[], folder: Folder): AppError {
  const noFile = noFileNote(folder);
  if (known.length === 0) {
    const why = noFile ?? `There is no sink ${name}, and no other.`;
    const next =
      noFile === null
        ? 'docs/sinks.md shows how one is written.'
        : 'Go to the folder that the receiver is started from; docs/sinks.md shows how a sink is written.';
    return new AppError('usage', why, { advice: next });
  }
  const nearest = nearestName(name, known);
  const hint = nearest === null ? '' : ` Did you mean ${nearest}?`;
  const names = [...new Set(known)].toSorted().join(', ');
  const where = noFile === null ? '' : ` ${noFile}`;
  return new AppError('usage', `There is no sink ${name}.${hint} Known are: ${names}.${where}`);
}

/**
 * Sees to it that the store knows the sink, or earshot.config.ts has it: dead letters outlive the sink that they
 * are of. Rejects with `usage` for another one, `configuration` where the file is asked and cannot be read.
 */
export async function requireSink(
  name: string,
  folder: Folder,
  { counts }: Pick<SinkReader, 'counts'>,
): Promise<void> {
  const inStore = (await counts()).map(({ sink }) => sink);
  if (inStore.includes(name)) return;
  const { definitions, faulty } = await loadEachSink(folder.workingDir);
  const inFile = [...definitions, ...faulty].map((one) => one.name);
  if (!inFile.includes(name)) throw unknownSink(name, [...inFile, ...inStore], folder);
}
