/** Sinks by name: those of earshot.config.ts and of the store, and the messages about unknown ones. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  faultySinks,
  type LoadedSinks,
  loadEachSink,
  type UnknownSubscription,
  unknownSubscriptions,
} from '../config/sinks.ts';
import { loadSubscriptionsFile, subscriptionsFileName } from '../config/subscriptions-file.ts';
import { AppError } from '../domain/app-error.ts';
import type { CompletenessReader } from '../domain/completeness.ts';
import type { SinkReader } from '../domain/sinks.ts';
import { nearestName } from '../domain/text.ts';
import type { SinkDefinition } from '../sinks/registry.ts';
import { createAcquireLock } from '../store/engine/locks.ts';
import type { Io } from './io.ts';

type Folder = Pick<Io, 'workingDir'>;

/** That the folder has no file with sinks; null where it has one. */
export function noFileNote({ workingDir }: Folder): string | null {
  if (existsSync(join(workingDir, subscriptionsFileName))) return null;
  return `There is no ${subscriptionsFileName} in ${workingDir}.`;
}

/** An error with the code `usage` that says which names there are. */
function unknownSink(name: string, known: readonly string[], folder: Folder): AppError {
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

/** Rejects with `configuration` for a faulty file or sink, `usage` for a sink that is not in the file. */
export async function definedSink(name: string, folder: Folder): Promise<SinkDefinition> {
  const { definitions, faulty } = await loadEachSink(folder.workingDir);
  const definition = definitions.find((one) => one.name === name);
  if (definition !== undefined) return definition;
  const faults = faulty.filter((one) => one.name === name);
  if (faults.length > 0) throw faultySinks(folder.workingDir, faults);
  throw unknownSink(name, namesOf({ definitions, faulty }), folder);
}

const namesOf = ({ definitions, faulty }: LoadedSinks) =>
  [...definitions, ...faulty].map(({ name }) => name);

/** Names of the sinks in the file; null where it cannot be read. */
export async function sinksInFile({ workingDir }: Folder) {
  try {
    const loaded = await loadEachSink(workingDir);
    return { names: namesOf(loaded), faulty: loaded.faulty.map(({ name }) => name) };
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
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
  const inFile = namesOf(await loadEachSink(folder.workingDir));
  if (!inFile.includes(name)) throw unknownSink(name, [...inFile, ...inStore], folder);
}

/** Those that nobody knows. Rejects with `configuration` for a faulty file, `unavailable` where the store cannot be read. */
export async function unknownWanted(
  definitions: readonly SinkDefinition[],
  { completeness }: { completeness: Pick<CompletenessReader, 'definitions'> },
  { workingDir }: Pick<Io, 'workingDir'>,
): Promise<UnknownSubscription[]> {
  if (definitions.every(({ subscriptions }) => subscriptions.length === 0)) return [];
  const inFile = (await loadSubscriptionsFile(workingDir)) ?? [];
  const registered = await completeness.definitions();
  return unknownSubscriptions(definitions, [
    ...inFile.map(({ name }) => name),
    ...registered.map(({ subscription }) => subscription),
  ]);
}

/**
 * Null where a receiver delivers, or where this user may not check: the receiver that delivers holds a lock, which
 * ends with it. Never rejects.
 */
export async function receiverNote(dataDir: string): Promise<string | null> {
  // The file is the receiver's: made by another user, it would keep the receiver out.
  if (existsSync(join(dataDir, 'sinks.lock'))) {
    try {
      const release = await createAcquireLock(dataDir)('sinks', { waitMs: 0 });
      release();
    } catch {
      return null;
    }
  }
  return 'No receiver delivers to sinks: nothing moves until `earshot start`.';
}
