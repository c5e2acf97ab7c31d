/** The sinks of `earshot.config.ts`, with the secrets and certificates that it names files for. */
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AppError } from '../domain/app-error.ts';
import type { SinkDefinition, SinkTarget } from '../domain/sinks.ts';
import { sortedEvents } from '../domain/subscription.ts';
import { checkFilter } from '../filter/check.ts';
import type { FilterFinding } from '../filter/finding.ts';
import { nearestName } from '../filter/hints/nearest-name.ts';
import { showFinding } from '../filter/show-finding.ts';
import { frozen } from './load.ts';
import type { SinkInput } from './sink-schema.ts';
import { faultsOf, readConfigFile, subscriptionsFileName } from './subscriptions-file.ts';
import { holdsCertificates } from './tls.ts';

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

/** A place in `earshot.config.ts` that names a file. */
interface FilePlace {
  /** Such as `sinks.archive.secretFile`. */
  where: string;
  /** What a path is seen from. */
  folder: string;
  /** What is wrong is added; it holds nothing of the file. */
  problems: string[];
}

/** The scheme's own bounds for a secret (Standard Webhooks 1.0, "Signature scheme"). */
const secretBytesMin = 24;
const secretBytesMax = 64;

/** What the file holds, without the line feed at its end; null where none is named or it cannot be used. */
function readSecretFile(
  file: string | undefined,
  place: FilePlace,
  form: 'any' | 'webhook' = 'any',
): string | null {
  const secret = read(file, place, (path) => {
    // A group may: that is how systemd hands over what only root can read.
    if ((statSync(path).mode & 0o007) === 0) return null;
    return `every user of this machine may read ${path}. Run: chmod o= ${path}`;
  })?.replace(/\r?\n$/, '');
  if (secret === undefined) return null;
  if (secret === '') place.problems.push(`${place.where}: the file is empty.`);
  else if (form === 'webhook' && !isWebhookSecret(secret)) {
    place.problems.push(
      `${place.where}: the file must hold whsec_ and ${secretBytesMin} to ${secretBytesMax} random bytes in base64. Make one: echo "whsec_$(openssl rand -base64 32)"`,
    );
  } else return secret;
  return null;
}

/** The certificates in the file, as PEM; null where none is named or it cannot be used. */
function readCaFile(file: string | undefined, place: FilePlace): string | null {
  const pem = read(file, place, () => null);
  if (pem === null || holdsCertificates(pem)) return pem;
  place.problems.push(`${place.where}: the file does not hold PEM certificates.`);
  return null;
}

function read(
  file: string | undefined,
  { where, folder, problems }: FilePlace,
  faultOf: (path: string) => string | null,
): string | null {
  if (file === undefined) return null;
  const path = resolve(folder, file);
  try {
    const isFolder = statSync(path).isDirectory();
    const fault = isFolder ? `${path} is a folder, not a file.` : faultOf(path);
    if (fault === null) return readFileSync(path, 'utf8');
    problems.push(`${where}: ${fault}`);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    problems.push(`${where}: ${path} cannot be read (${code}).`);
  }
  return null;
}

function isWebhookSecret(secret: string): boolean {
  const base64 = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1];
  if (base64 === undefined || base64.length % 4 !== 0) return false;
  const { byteLength } = Buffer.from(base64, 'base64');
  return byteLength >= secretBytesMin && byteLength <= secretBytesMax;
}
