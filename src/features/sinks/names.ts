/** Finds sinks by name in earshot.config.ts and in the store. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Io } from '../../core/cli/io.ts';
import { unknownName } from '../../core/cli/row-forms.ts';
import { hasSettings } from '../../core/config/config.ts';
import {
  type ConfigPlace,
  loadSubscriptionsFile,
  subscriptionsFileName,
} from '../../core/config/subscriptions-file.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import type { CompletenessReader } from '../coverage/completeness.ts';
import {
  faultySinks,
  type LoadedSinks,
  loadEachSink,
  type UnknownSubscription,
  unknownSubscriptions,
} from './definitions.ts';
import type { SinkDefinition } from './registry.ts';
import type { SinkReader } from './terms.ts';

type Folder = Pick<Io, 'workingDir' | 'env' | 'settings'>;

/** Note that the folder has no configuration file; null if it has one. */
export function noFileNote({ workingDir }: Folder): string | null {
  if (existsSync(join(workingDir, subscriptionsFileName))) return null;
  return `There is no ${subscriptionsFileName} in ${workingDir}.`;
}

/** Error with code `usage` and the known names. */
function unknownSink(name: string, known: readonly string[], folder: Folder): AppError {
  const noFile = noFileNote(folder);
  if (known.length === 0) {
    const elsewhere =
      noFile === null || hasSettings(folder)
        ? ''
        : 'Run the command in the folder of the receiver. ';
    const why = ['No sinks are configured.', ...(noFile === null ? [] : [noFile])].join(' ');
    return new AppError('usage', why, { advice: `${elsewhere}See docs/sinks.md to add a sink.` });
  }
  const error = unknownName('sink', name, known);
  return noFile === null ? error : error.with({ advice: `${error.advice} ${noFile}` });
}

/** Loads a sink of the file. Rejects with `configuration` for an invalid file or sink, `usage` for an unknown sink. */
export async function definedSink(name: string, folder: Folder): Promise<SinkDefinition> {
  const { definitions, faulty } = await loadEachSink(folder);
  const definition = definitions.find((one) => one.name === name);
  if (definition !== undefined) return definition;
  const faults = faulty.filter((one) => one.name === name);
  if (faults.length > 0) throw faultySinks(folder.workingDir, faults);
  throw unknownSink(name, namesOf({ definitions, faulty }), folder);
}

const namesOf = ({ definitions, faulty }: LoadedSinks) =>
  [...definitions, ...faulty].map(({ name }) => name);

/**
 * Checks that the sink is in the store or in earshot.config.ts: the dead letters of a removed sink remain in the
 * store. Rejects with `usage` for an unknown sink, `configuration` if the file is needed and cannot be read.
 */
export async function requireSink(
  name: string,
  folder: Folder,
  { counts }: Pick<SinkReader, 'counts'>,
): Promise<void> {
  const inStore = (await counts()).map(({ sink }) => sink);
  if (inStore.includes(name)) return;
  const inFile = namesOf(await loadEachSink(folder));
  if (!inFile.includes(name)) throw unknownSink(name, [...inFile, ...inStore], folder);
}

/**
 * Returns the subscriptions of sinks that are neither configured nor registered. Rejects with `configuration` for an
 * invalid file, `unavailable` if the store cannot be read.
 */
export async function unknownSinkSubscriptions(
  definitions: readonly SinkDefinition[],
  { completeness }: { completeness: Pick<CompletenessReader, 'definitions'> },
  place: ConfigPlace,
): Promise<UnknownSubscription[]> {
  if (definitions.every(({ subscriptions }) => subscriptions.length === 0)) return [];
  const inFile = (await loadSubscriptionsFile(place)) ?? [];
  const registered = await completeness.definitions();
  return unknownSubscriptions(definitions, [
    ...inFile.map(({ name }) => name),
    ...registered.map(({ subscription }) => subscription),
  ]);
}

/**
 * Returns a note if no receiver delivers to sinks. A delivering receiver has a lock for as long as it runs. Null also if
 * this user cannot check the lock, and with a shared log, whose receivers `earshot admin log` lists. Never rejects.
 */
export async function receiverNote({
  dataDir,
  isShared,
}: {
  dataDir: string;
  isShared: boolean;
}): Promise<string | null> {
  if (isShared) return null;
  // Never creates the lock file: created by another user, it would block the receiver.
  if (existsSync(join(dataDir, 'sinks.lock'))) {
    try {
      const release = await createAcquireLock(dataDir)('sinks', { waitMs: 0 });
      release();
    } catch {
      return null;
    }
  }
  return 'No receiver is delivering to sinks. Start the receiver: `earshot start`.';
}
