/** The sinks of `earshot.config.ts`, with the secrets and certificates that it names files for. */
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AppError } from '../domain/app-error.ts';
import type { SinkDefinition, SinkTarget } from '../domain/sinks.ts';
import { sortedEvents } from '../domain/subscription.ts';
import { checkFilter } from '../filter/check.ts';
import { type FilterFinding, showFinding } from '../filter/finding.ts';
import { nearestName } from '../filter/nearest-name.ts';
import type { SinkInput } from './sink-schema.ts';
import { faultsOf, readConfigFile, subscriptionsFileName } from './subscriptions-file.ts';
import { holdsCertificates } from './tls.ts';

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
    const definition = definitionOf(name, sinks[name] as SinkInput, { folder, problems });
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

/** The folder that files are seen from, and the problems found so far; they hold nothing of a file. */
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
  const { command = [], webhook, nats } = sink;
  const at = `sinks.${name}`;
  if (webhook !== undefined) {
    const secret = readSecret(`${at}.secretFile`, sink.secretFile, reading, 'webhook');
    return { kind: 'webhook', url: webhook, secret, ca: readCa(`${at}.ca`, sink.ca, reading) };
  }
  // The schema has seen to it that there is one of the three.
  if (nats === undefined) return { kind: 'command', command };
  const { servers, subject, user } = nats;
  const token = readSecret(`${at}.nats.tokenFile`, nats.tokenFile, reading);
  const password = readSecret(`${at}.nats.passwordFile`, nats.passwordFile, reading);
  const ca = readCa(`${at}.nats.ca`, nats.ca, reading);
  const target = { kind: 'nats', servers, subject, ca } as const;
  if (token !== null) return { ...target, credentials: { kind: 'token', token } };
  if (user === undefined || password === null) return { ...target, credentials: { kind: 'none' } };
  return { ...target, credentials: { kind: 'user', user, password } };
}

/** The scheme's own bounds for a secret (Standard Webhooks 1.0, "Signature scheme"). */
const secretBytes = { min: 24, max: 64 };

/** The file's text without the line feed at its end; null where none is named or it cannot be used. */
function readSecret(
  where: string,
  file: string | undefined,
  reading: Reading,
  form: 'any' | 'webhook' = 'any',
): string | null {
  const secret = readText(where, file, reading, 'secret')?.replace(/\r?\n$/, '') ?? null;
  if (secret === '') reading.problems.push(`${where}: the file is empty.`);
  else if (secret !== null && form === 'webhook' && !isWebhookSecret(secret)) {
    reading.problems.push(
      `${where}: the file must hold whsec_ and ${secretBytes.min} to ${secretBytes.max} random bytes in base64. Make one: echo "whsec_$(openssl rand -base64 32)"`,
    );
  }
  return secret;
}

/** The certificates in the file, as PEM; null where none is named or it cannot be used. */
function readCa(where: string, file: string | undefined, reading: Reading): string | null {
  const pem = readText(where, file, reading, 'public');
  if (pem !== null && !holdsCertificates(pem))
    reading.problems.push(`${where}: the file does not hold PEM certificates.`);
  return pem;
}

function readText(
  where: string,
  file: string | undefined,
  { folder, problems }: Reading,
  kind: 'secret' | 'public',
): string | null {
  if (file === undefined) return null;
  const path = resolve(folder, file);
  try {
    const stats = statSync(path);
    // A group may read it: that is how systemd hands over what only root can read.
    const isOpen = kind === 'secret' && (stats.mode & 0o007) !== 0;
    if (stats.isDirectory()) problems.push(`${where}: ${path} is a folder, not a file.`);
    else if (!isOpen) return readFileSync(path, 'utf8');
    else {
      problems.push(`${where}: every user of this machine may read ${path}. Run: chmod o= ${path}`);
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    problems.push(`${where}: ${path} cannot be read (${code}).`);
  }
  return null;
}

function isWebhookSecret(secret: string): boolean {
  const base64 = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1] ?? '';
  const { byteLength } = Buffer.from(base64, 'base64');
  return base64.length % 4 === 0 && byteLength >= secretBytes.min && byteLength <= secretBytes.max;
}
