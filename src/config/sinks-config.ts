/** The sinks of `earshot.config.ts`, with the secrets and certificates that it names files for. */
import { join } from 'node:path';
import { AppError } from '../domain/app-error.ts';
import type { SinkDefinition, SinkTarget } from '../domain/sinks.ts';
import { sortedEvents } from '../domain/subscription.ts';
import { checkFilter } from '../filter/check.ts';
import { type FilterFinding, showFinding } from '../filter/finding.ts';
import { frozen } from './frozen.ts';
import { readCaFile, readSecretFile } from './sink-files.ts';
import type { SinkInput } from './sink-schema.ts';
import { faultsOf, readConfigFile, subscriptionsFileName } from './subscriptions-file.ts';

/** Sinks of the folder's file, by name. */
export interface LoadedSinks {
  definitions: readonly SinkDefinition[];
  /** Those that cannot be started, with all that is wrong with each; no secret is in it. */
  faulty: readonly { name: string; problems: readonly string[] }[];
}

/**
 * The sinks of the folder's file, the sound and the faulty ones; none without a file, or where it has none. The
 * files that it names are looked for from the folder. Rejects with `configuration` where the file as a whole
 * cannot be read.
 */
export async function loadEachSink(folder: string): Promise<LoadedSinks> {
  const sinks = (await readConfigFile(join(folder, subscriptionsFileName)))?.sinks ?? {};
  const read = Object.entries(sinks)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, sink]) => {
      const problems: string[] = [];
      const definition = definitionOf(name, sink, { folder, problems });
      return { definition, problems: [...problems, ...filterErrors(definition)] };
    });
  return frozen({
    definitions: read.flatMap((one) => (one.problems.length === 0 ? [one.definition] : [])),
    faulty: read.flatMap(({ definition: { name }, problems }) =>
      problems.length === 0 ? [] : [{ name, problems }],
    ),
  });
}

/** The error with the code `configuration` that tells what is wrong with sinks. */
export function faultySinks(folder: string, faulty: LoadedSinks['faulty']): AppError {
  const details = faulty.flatMap(({ problems }) => problems);
  const path = join(folder, subscriptionsFileName);
  return new AppError('configuration', faultsOf(path), { details });
}

function filterErrors(definition: SinkDefinition): string[] {
  return sinkFilterFindings([definition])
    .filter(({ finding }) => finding.severity === 'error')
    .map(({ where, filter, finding }) => `${where}: ${showFinding(filter, finding)}`);
}

/** A finding about a filter of a sink, with its place in the file. */
export interface SinkFilterFinding {
  /** Such as `sinks.archive.filter`. */
  where: string;
  filter: string;
  finding: FilterFinding;
}

/** What is to be told about the filters of sinks; of those that were loaded only what might not be meant. */
export function sinkFilterFindings(
  definitions: readonly Pick<SinkDefinition, 'name' | 'filter'>[],
): readonly SinkFilterFinding[] {
  return definitions
    .filter(({ filter }) => filter !== '')
    .flatMap(({ name, filter }) =>
      checkFilter(filter, 'Products')
        // What would be slow at the catalogue is not so here.
        .findings.filter(({ code }) => code !== 'name-without-collection')
        .map((finding) => ({ where: `sinks.${name}.filter`, filter, finding })),
    );
}

/** Where the files of a sink are looked for, and where what is wrong with them is told. */
interface Reading {
  folder: string;
  problems: string[];
}

const concurrencyDefaults = { command: 2, webhook: 8, nats: 32 } as const;

function definitionOf(name: string, sink: SinkInput, reading: Reading): SinkDefinition {
  const target = targetOf(name, sink, reading);
  return {
    name,
    target,
    subscriptions: [...new Set(sink.subscriptions)],
    events: sortedEvents(sink.events ?? []),
    filter: sink.filter,
    startAt: sink.from,
    concurrency: sink.concurrency ?? concurrencyDefaults[target.kind],
    timeoutMs: sink.timeoutSeconds * 1000,
    attemptsMax: sink.attempts,
  };
}

function targetOf(name: string, sink: SinkInput, reading: Reading): SinkTarget {
  const { command = [], webhook, nats, secretFile, ca } = sink;
  const at = (field: string) => ({ ...reading, where: `sinks.${name}.${field}` });
  if (webhook !== undefined) {
    const secret = readSecretFile(secretFile, at('secretFile'), 'webhook');
    return { kind: 'webhook', url: webhook, secret, ca: readCaFile(ca, at('ca')) };
  }
  // The schema has seen to it that there is one of the three.
  if (nats === undefined) return { kind: 'command', command };
  const { servers, subject, user } = nats;
  const token = readSecretFile(nats.tokenFile, at('nats.tokenFile'));
  const password = readSecretFile(nats.passwordFile, at('nats.passwordFile'));
  const credentials = credentialsOf({ user, password, token });
  return { kind: 'nats', servers, subject, credentials, ca: readCaFile(nats.ca, at('nats.ca')) };
}

function credentialsOf({
  user,
  password,
  token,
}: {
  user: string | undefined;
  password: string | null;
  token: string | null;
}): Extract<SinkTarget, { kind: 'nats' }>['credentials'] {
  if (token !== null) return { kind: 'token', token };
  if (user === undefined || password === null) return { kind: 'none' };
  return { kind: 'user', user, password };
}
