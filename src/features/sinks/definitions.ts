/** Sinks of `earshot.config.ts`, with the secrets and certificates of their files. */

import { join } from 'node:path';
import { filterErrors, filterFindings, type PlacedFinding } from '../../core/cli/row-forms.ts';
import {
  type ConfigPlace,
  faultsOf,
  readConfigFile,
  subscriptionsFileName,
} from '../../core/config/subscriptions-file.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import { sortedEvents } from '../../core/terms/subscription.ts';
import { nearestName } from '../../core/terms/text.ts';

import type { SinkDefinition } from './registry.ts';
import { readTarget, type SinkInput } from './sink-settings.ts';
import type { DeliveryState } from './terms.ts';

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
  for (const name of Object.keys(sinks).toSorted((a, b) => a.localeCompare(b))) {
    const problems: string[] = [];
    const sink = sinks[name] as SinkInput;
    const definition: SinkDefinition = {
      name,
      ...readTarget(sink, { where: `sinks.${name}`, folder, problems }),
      subscriptions: [...new Set(sink.subscriptions)],
      events: sortedEvents(sink.events ?? []),
      filter: sink.filter,
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

/** Returns the state of the delivery as the loaded sinks imply it. */
export function deliveryStateOf({ definitions, faulty }: LoadedSinks): DeliveryState {
  const names = [...definitions, ...faulty].map(({ name }) => name);
  const faults = new Map(faulty.map(({ name, problems }) => [name, problems.join(' ')]));
  const kinds = new Map(definitions.map(({ name, target }) => [name, target.kind]));
  return { names, kinds, faults, fault: null };
}

/** Reads the state of the delivery from the file in the folder. An invalid file is `rejected`. */
export async function readDeliveryState(place: ConfigPlace): Promise<DeliveryState> {
  try {
    return deliveryStateOf(await loadEachSink(place));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const rejected = [errorText(error), ...error.details].join(' ');
    return { names: null, fault: null, rejected };
  }
}

/** Rejects with `configuration` and all problems of the sinks of the file. */
export async function requireSinks(place: ConfigPlace): Promise<void> {
  const { faulty } = await loadEachSink(place);
  if (faulty.length > 0) throw faultySinks(place.workingDir, faulty);
}

/** Returns a `configuration` error that lists the problems of sinks. */
export function faultySinks(folder: string, faulty: LoadedSinks['faulty']): AppError {
  const details = faulty.flatMap(({ problems }) => problems);
  return new AppError('configuration', faultsOf(join(folder, subscriptionsFileName)), { details });
}

/** Returns findings about the filters of sinks; loaded sinks only have warnings. */
export function sinkFilterFindings(
  definitions: readonly Pick<SinkDefinition, 'name' | 'filter'>[],
): readonly PlacedFinding[] {
  const filtered = definitions.filter(({ filter }) => filter !== '');
  return filterFindings(filtered.map(({ name, filter }) => [`sinks.${name}.filter`, filter]));
}

/** A name in the `subscriptions` of a sink that is not known. */
export interface UnknownSubscription {
  /** Example: `sinks.archive.subscriptions: unknown subscription alsp.` */
  message: string;
  /** The name that is probably meant, or the known names. */
  hint: string;
}

/** Returns the unknown subscriptions of sinks. `known` lists those in the file and all that were ever registered. */
export function unknownSubscriptions(
  definitions: readonly Pick<SinkDefinition, 'name' | 'subscriptions'>[],
  known: readonly string[],
): UnknownSubscription[] {
  const names = [...new Set(known)].toSorted();
  const all =
    names.length === 0
      ? 'No subscription is known yet.'
      : `Known subscriptions: ${names.join(', ')}.`;
  return definitions.flatMap(({ name, subscriptions }) =>
    subscriptions
      .filter((unknown) => !names.includes(unknown))
      .map((unknown) => {
        const nearest = nearestName(unknown, names);
        return {
          message: `sinks.${name}.subscriptions: unknown subscription ${unknown}.`,
          hint: nearest === null ? all : `Did you mean ${nearest}? ${all}`,
        };
      }),
  );
}
