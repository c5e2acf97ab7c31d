/** Sinks of `earshot.config.ts`, with the secrets and certificates of their files. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Io } from '../../core/cli/io.ts';
import {
  filterErrors,
  filterFindings,
  type PlacedFinding,
  unknownName,
} from '../../core/cli/row-forms.ts';
import {
  type ConfigPlace,
  faultsOf,
  readConfigFile,
  subscriptionsFileName,
} from '../../core/config/subscriptions-file.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { sortedEvents } from '../../core/terms/subscription.ts';
import type { SinkDefinition } from './registry.ts';
import { readTarget, type SinkInput } from './settings.ts';
import type { DeliveryState, SinkReader } from './terms.ts';

/** Sinks of the file, by name. */
export interface LoadedSinks {
  definitions: readonly SinkDefinition[];
  /** Sinks that cannot be started, with all their problems, without secrets. */
  faulty: readonly { name: string; problems: readonly string[] }[];
}

/**
 * Loads the valid and the faulty sinks of the file in the folder; none without a file. Paths in it are relative to
 * the folder. Rejects with `configuration` when the file as a whole cannot be read.
 */
export async function loadEachSink(place: ConfigPlace): Promise<LoadedSinks> {
  const { workingDir: folder } = place;
  const sinks = (await readConfigFile(place))?.sinks ?? {};
  const definitions: SinkDefinition[] = [];
  const faulty: { name: string; problems: readonly string[] }[] = [];
  for (const name of Object.keys(sinks).toSorted()) {
    const problems: string[] = [];
    const sink = sinks[name] as SinkInput;
    const definition: SinkDefinition = {
      name,
      ...readTarget(sink, { where: `sinks.${name}`, folder, problems }),
      subscriptions: [...new Set(sink.subscriptions)],
      events: sortedEvents(sink.events ?? []),
      filter: sink.filter,
      maxAgeUs: sink.maxAge ?? null,
      startAt: sink.from,
      timeoutMs: sink.timeoutSeconds * 1000,
      attemptsMax: sink.attempts,
    };
    problems.push(...filterErrors(sinkFilterFindings([definition])));
    if (problems.length === 0) definitions.push(definition);
    else faulty.push({ name, problems });
  }
  return { definitions, faulty };
}

/** State when the file is not known. */
export const unknownDelivery: DeliveryState = { names: null, fault: null };

/** Returns the state of the delivery as the loaded sinks imply it. */
export function deliveryStateOf({ definitions, faulty }: LoadedSinks): DeliveryState {
  const names = [...definitions, ...faulty].map(({ name }) => name);
  const faults = new Map(faulty.map(({ name, problems }) => [name, problems.join(' ')]));
  const kinds = new Map(definitions.map(({ name, target }) => [name, target.kind]));
  return { names, kinds, faults, fault: null };
}

/** Reads the state of the delivery from the file in the folder; unknown for an invalid file. */
export async function readDeliveryState(place: ConfigPlace): Promise<DeliveryState> {
  try {
    return deliveryStateOf(await loadEachSink(place));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return unknownDelivery;
  }
}

/** Returns findings about the filters of sinks; loaded sinks only have warnings. */
export function sinkFilterFindings(
  definitions: readonly Pick<SinkDefinition, 'name' | 'filter'>[],
): readonly PlacedFinding[] {
  const filtered = definitions.filter(({ filter }) => filter !== '');
  return filterFindings(filtered.map(({ name, filter }) => [`sinks.${name}.filter`, filter]));
}

type Folder = Pick<Io, 'workingDir' | 'env' | 'settings'>;

/** Note that the folder has no configuration file; null if it has one. */
export function noFileNote({ workingDir }: Folder): string | null {
  if (existsSync(join(workingDir, subscriptionsFileName))) return null;
  return `There is no ${subscriptionsFileName} in ${workingDir}.`;
}

/** Error with code `usage` and the known names. */
function unknownSink(name: string, known: readonly string[], folder: Folder): AppError {
  const noFile = noFileNote(folder);
  const error =
    known.length > 0
      ? unknownName('sink', name, known)
      : new AppError('usage', 'No sinks are configured.', {
          advice: 'See docs/sinks.md to add a sink.',
        });
  return noFile === null ? error : error.with({ advice: `${noFile} ${error.advice}` });
}

/** Loads a sink of the file. Rejects with `configuration` for an invalid file or sink, `usage` for an unknown sink. */
export async function definedSink(name: string, folder: Folder): Promise<SinkDefinition> {
  const loaded = await loadEachSink(folder);
  const definition = loaded.definitions.find((one) => one.name === name);
  if (definition !== undefined) return definition;
  const details = loaded.faulty.find((one) => one.name === name)?.problems;
  if (details !== undefined) {
    const file = join(folder.workingDir, subscriptionsFileName);
    throw new AppError('configuration', faultsOf(file), { details });
  }
  throw unknownSink(name, deliveryStateOf(loaded).names ?? [], folder);
}

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
  const inFile = deliveryStateOf(await loadEachSink(folder)).names ?? [];
  if (!inFile.includes(name)) throw unknownSink(name, [...inFile, ...inStore], folder);
}
