/** The sinks of `earshot.config.ts`, with the secrets and certificates that it names files for. */
import { join } from 'node:path';
import { AppError } from '../domain/app-error.ts';
import { sortedEvents } from '../domain/subscription.ts';
import { nearestName } from '../domain/text.ts';
import { checkFilter } from '../filter/check.ts';
import { type FilterFinding, showFinding } from '../filter/finding.ts';
import type { SinkDefinition } from '../sinks/registry.ts';
import { readTarget, type SinkInput } from './sink-settings.ts';
import { faultsOf, readConfigFile, subscriptionsFileName } from './subscriptions-file.ts';

/** Sinks of the folder's file, by name. */
export interface LoadedSinks {
  definitions: readonly SinkDefinition[];
  /** Those that cannot be started, with all their problems; no secret is in it. */
  faulty: readonly { name: string; problems: readonly string[] }[];
}

/**
 * The sinks of the folder's file, the sound and the faulty ones; none without a file, or where it has none. The
 * files that it names are seen from the folder. Rejects with `configuration` where the file as a whole
 * cannot be read.
 */
export async function loadEachSink(folder: string): Promise<LoadedSinks> {
  const sinks = (await readConfigFile(join(folder, subscriptionsFileName)))?.sinks ?? {};
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

/** The error with the code `configuration` that lists the problems of sinks. */
export function faultySinks(folder: string, faulty: LoadedSinks['faulty']): AppError {
  const details = faulty.flatMap(({ problems }) => problems);
  return new AppError('configuration', faultsOf(join(folder, subscriptionsFileName)), { details });
}

/** A finding about a filter that earshot evaluates itself. */
export interface PlacedFinding {
  /** The place in the file, such as `sinks.archive.filter`. */
  where: string;
  filter: string;
  finding: FilterFinding;
}

export function filterFindings(places: readonly [where: string, filter: string][]) {
  return places.flatMap(([where, filter]): PlacedFinding[] =>
    checkFilter(filter, 'Products')
      // What would be slow at the catalogue is not so here.
      .findings.filter(({ code }) => code !== 'name-without-collection')
      .map((finding) => ({ where, filter, finding })),
  );
}

/** Those that make a filter unusable, a line each. */
export function filterErrors(findings: readonly PlacedFinding[]): string[] {
  return findings
    .filter(({ finding }) => finding.severity === 'error')
    .map(({ where, filter, finding }) => `${where}: ${showFinding(filter, finding)}`);
}

/** Findings about the filters of sinks; sinks that were loaded have warnings only. */
export function sinkFilterFindings(
  definitions: readonly Pick<SinkDefinition, 'name' | 'filter'>[],
): readonly PlacedFinding[] {
  const filtered = definitions.filter(({ filter }) => filter !== '');
  return filterFindings(filtered.map(({ name, filter }) => [`sinks.${name}.filter`, filter]));
}

/** A name in a sink's `subscriptions` that no subscription has or had. */
export interface UnknownSubscription {
  /** Such as `sinks.archive.subscriptions: there is no subscription alsp.` */
  message: string;
  /** The name that may be meant, or those that there are. */
  hint: string;
}

/** `known` are those of the file, and those that were ever registered. */
export function unknownSubscriptions(
  definitions: readonly Pick<SinkDefinition, 'name' | 'subscriptions'>[],
  known: readonly string[],
): UnknownSubscription[] {
  const names = [...new Set(known)].toSorted();
  const all = names.length === 0 ? 'There is none yet.' : `Known are: ${names.join(', ')}.`;
  return definitions.flatMap(({ name, subscriptions }) =>
    subscriptions
      .filter((wanted) => !names.includes(wanted))
      .map((wanted) => {
        const nearest = nearestName(wanted, names);
        return {
          message: `sinks.${name}.subscriptions: there is no subscription ${wanted}.`,
          hint: nearest === null ? all : `Did you mean ${nearest}? ${all}`,
        };
      }),
  );
}
