/** The configuration by section. A command loads the sections that it uses, and is refused for no others. */
import type { Account } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import { hostInUrl, isLoopbackHost } from '../http/network-address.ts';
import { credentialsFileName, readEndpointCredentials } from './endpoint-credentials.ts';
import { checkSections, type Environment, type Loaded, loadSections, type Reader } from './load.ts';
import { readOwnAcme, readServedTls, readTls } from './tls.ts';

/** Each reads its variables, and checks those that belong together. */
const sections = {
  publicUrl: ({ value }: Reader) => value('EARSHOT_PUBLIC_URL'),
  listen: ({ value }: Reader) => value('EARSHOT_LISTEN'),
  console: readConsole,
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is believed. */
  trustedProxies: ({ value }: Reader) => value('EARSHOT_TRUSTED_PROXIES') ?? [],
  logLevel: ({ value }: Reader) => value('EARSHOT_LOG_LEVEL'),
  dataDir: ({ value }: Reader) => value('EARSHOT_DATA_DIR'),
  /** What is kept free on its disk; the default depends on the disk. */
  diskReserveBytes: ({ value }: Reader) => value('EARSHOT_DISK_RESERVE'),
  /** Whether the product index is kept. */
  index: ({ value }: Reader) => value('EARSHOT_INDEX'),
  /** Null where everything is kept. */
  keep: ({ value }: Reader) => value('EARSHOT_KEEP') ?? null,
  /** Whether the receiver compacts the log. */
  compact: ({ value }: Reader) => value('EARSHOT_COMPACT'),
  backup: ({ value }: Reader) => ({
    /** Null where the receiver makes none. */
    folder: value('EARSHOT_BACKUP_DIR') ?? null,
    everyHours: value('EARSHOT_BACKUP_EVERY'),
    /** How many stay there. */
    keep: value('EARSHOT_BACKUP_KEEP'),
  }),
  /** For the receiver, which needs them. */
  credentials: readCredentials,
  /** For the account's commands: there may be none, and they differ from the account's. */
  endpoint: readEndpoint,
  health: readHealth,
  tls: (reader: Reader) => readTls(reader),
  servedTls: readServedTls,
  acme: (reader: Reader) => readOwnAcme(reader, 'needed'),
  /** The same before the user agrees to the authority's terms. */
  acmeTrial: (reader: Reader) => readOwnAcme(reader, 'asked'),
  acmeAgreed: ({ value }: Reader) => value('EARSHOT_ACME_AGREE') === 'yes',
  /** PEM file of authorities that are trusted when our own endpoint is probed. */
  probeCa: ({ value }: Reader) => value('EARSHOT_PROBE_CA'),
  catalogueUrl: ({ value }: Reader) => value('EARSHOT_CATALOGUE_URL'),
  tokenUrl: ({ value }: Reader) => value('EARSHOT_TOKEN_URL'),
  /** How the account is entered; null when nothing says so. */
  account: readAccount,
  limits: ({ value }: Reader) => ({
    runningMax: value('EARSHOT_SUBSCRIPTIONS_RUNNING_MAX'),
    totalMax: value('EARSHOT_SUBSCRIPTIONS_MAX'),
  }),
  /** Whether the receiver compares the log with the catalogue. */
  reconcile: ({ value }: Reader) => value('EARSHOT_RECONCILE'),
  requestsPerMinute: ({ value }: Reader) => value('EARSHOT_RECONCILE_REQUESTS_PER_MINUTE'),
  alertUrl: ({ value }: Reader) => value('EARSHOT_ALERT_URL') ?? null,
  /** A program and its arguments. */
  alertCommand: ({ value }: Reader) => value('EARSHOT_ALERT_COMMAND') ?? null,
  summary: readSummary,
};

export type Config = Loaded<typeof sections>;

/** Throws one `configuration` error that lists all problems of these sections, and names that are unknown. */
export function loadConfig<const Section extends keyof Config>(
  environment: Environment,
  names: readonly Section[],
): Loaded<Pick<typeof sections, Section>> {
  return loadSections(environment, chosen(names));
}

/** The sections that can be read, and all problems. */
export function checkConfig<const Section extends keyof Config>(
  environment: Environment,
  names: readonly Section[],
): ReturnType<typeof checkSections<Pick<typeof sections, Section>>> {
  return checkSections(environment, chosen(names));
}

function chosen<Section extends keyof Config>(names: readonly Section[]) {
  const entries = names.map((name) => [name, sections[name]]);
  return Object.fromEntries(entries) as Pick<typeof sections, Section>;
}

/** For commands that look into the data directory. */
export const dataSections = ['dataDir', 'diskReserveBytes'] as const;
export type DataConfig = Pick<Config, (typeof dataSections)[number]>;

/** For the receiver itself. */
export const serveSections = [
  'publicUrl',
  'listen',
  ...dataSections,
  'credentials',
  'tls',
  'trustedProxies',
  'console',
  'index',
  'logLevel',
] as const;
export type ServeConfig = Pick<Config, (typeof serveSections)[number]>;

/** For commands that work on the catalogue account. */
export const accountSections = [
  'dataDir',
  'publicUrl',
  'catalogueUrl',
  'account',
  'limits',
  'probeCa',
  'endpoint',
] as const;
export type AccountConfig = Pick<Config, (typeof accountSections)[number]>;

/** For a comparison with the catalogue. */
export const reconcileSections = [
  ...dataSections,
  'catalogueUrl',
  'account',
  'requestsPerMinute',
] as const;
export type ReconcileConfig = Pick<Config, (typeof reconcileSections)[number]>;

/** For the watchdog. */
export const watchSections = ['reconcile', 'alertUrl', 'alertCommand'] as const;
export type WatchConfig = Pick<Config, (typeof watchSections)[number]>;

/** For the receiver with all of its background jobs. */
export const startSections = [
  ...serveSections,
  ...accountSections,
  'summary',
  ...reconcileSections,
  ...watchSections,
  'keep',
  'compact',
  'backup',
] as const;
export type StartConfig = Pick<Config, (typeof startSections)[number]>;

/** With what a call of the catalogue needs. */
export type CompleteAccountConfig = AccountConfig & { account: Account; publicUrl: string };

/** The configuration of the account's commands. Throws `configuration`, also where a part is not set. */
export function loadAccountConfig(environment: Environment): CompleteAccountConfig {
  const complete = completeAccountConfig(loadConfig(environment, accountSections));
  if (!('missing' in complete)) return complete;
  throw new AppError('configuration', 'What the catalogue needs to know is not all set.', {
    details: complete.missing,
  });
}

/** The same configuration when nothing is missing; else what is, in sentences. */
export function completeAccountConfig(
  config: AccountConfig,
): CompleteAccountConfig | { missing: string[] } {
  const { account, publicUrl } = config;
  if (account !== null && publicUrl !== undefined)
    return Object.freeze({ ...config, account, publicUrl });
  const missing: string[] = [];
  if (account === null) {
    missing.push(
      'Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD: your account at the catalogue.',
    );
  }
  if (publicUrl === undefined) {
    missing.push(
      'Set EARSHOT_PUBLIC_URL: the https address under which the catalogue reaches the receiver.',
    );
  }
  return { missing };
}

/** Why the receiver does not compare automatically with these settings; null when it does. */
export function comparisonOff({
  reconcile,
  index,
}: Pick<Config, 'reconcile' | 'index'>): string | null {
  if (!reconcile) return 'EARSHOT_RECONCILE is off.';
  return index ? null : 'EARSHOT_INDEX is off, and a comparison uses the product index.';
}

/** Null for a private listener that is turned off. */
function readConsole({ value, failed, report }: Reader) {
  const listen = value('EARSHOT_CONSOLE_LISTEN');
  const password = value('EARSHOT_CONSOLE_PASSWORD');
  /** The beginning of download URLs. */
  const catalogueUrl = value('EARSHOT_CATALOGUE_URL');
  if (listen === null) return null;
  const isOpen = password === undefined && !isLoopbackHost(listen.host);
  if (isOpen && !failed('EARSHOT_CONSOLE_PASSWORD')) {
    const where = `${hostInUrl(listen.host)}:${listen.port}`;
    report(
      'EARSHOT_CONSOLE_LISTEN',
      `EARSHOT_CONSOLE_LISTEN: ${where} can be reached from other machines.`,
      `Set EARSHOT_CONSOLE_PASSWORD too, or use 127.0.0.1:${listen.port}.`,
    );
  }
  return { listen, password, catalogueUrl };
}

function readCredentials(reader: Reader) {
  const endpoint = readEndpointCredentials(reader);
  if (endpoint.source !== 'none') return endpoint;
  reader.report(
    'EARSHOT_ENDPOINT_USERNAME',
    'There are no endpoint credentials, so nobody could be let in.',
    'Run `earshot credentials create`, or set EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD.',
  );
  return reader.stop();
}

function readEndpoint(reader: Reader) {
  const endpoint = readEndpointCredentials(reader);
  const password = reader.value('EARSHOT_ACCOUNT_PASSWORD');
  if (endpoint.pairs.some((pair) => pair.password === password)) {
    const isVariable = endpoint.source === 'variables';
    const which = isVariable ? 'EARSHOT_ENDPOINT_PASSWORD' : `A password in ${credentialsFileName}`;
    reader.report(
      isVariable ? 'EARSHOT_ENDPOINT_PASSWORD' : null,
      `${which} is the password of your account.`,
      'The catalogue would send it over the network with every notification: use another one.',
    );
  }
  return endpoint;
}

/** How a command reaches the receiver of this machine, with the pair that the catalogue is to be given. */
function readHealth(reader: Reader) {
  const listen = reader.value('EARSHOT_LISTEN');
  const secure = reader.value('EARSHOT_TLS') !== 'off';
  if (listen.port === 0) {
    reader.report(
      'EARSHOT_LISTEN',
      'EARSHOT_LISTEN has port 0, any free one: the receiver cannot be found.',
    );
  }
  const credentials = readEndpointCredentials(reader).pairs.at(-1);
  if (credentials !== undefined) return { listen, secure, credentials };
  reader.report(
    'EARSHOT_ENDPOINT_USERNAME',
    'There are no endpoint credentials to log in with.',
    'Run this with the settings of the receiver.',
  );
  return reader.stop();
}

function readAccount({ value, failed, report }: Reader): Account | null {
  const accessToken = value('EARSHOT_ACCESS_TOKEN');
  const tokenUrl = value('EARSHOT_TOKEN_URL');
  const clientId = value('EARSHOT_CLIENT_ID');
  const username = value('EARSHOT_ACCOUNT_USERNAME');
  const password = value('EARSHOT_ACCOUNT_PASSWORD');
  const totp = value('EARSHOT_ACCOUNT_TOTP');
  if (accessToken !== undefined) return { kind: 'token', accessToken };
  if (username !== undefined && password !== undefined)
    return { kind: 'password', tokenUrl, clientId, username, password, totp };
  const isHalf = username !== undefined || password !== undefined;
  if (isHalf && !failed('EARSHOT_ACCOUNT_USERNAME', 'EARSHOT_ACCOUNT_PASSWORD')) {
    report(
      username === undefined ? 'EARSHOT_ACCOUNT_USERNAME' : 'EARSHOT_ACCOUNT_PASSWORD',
      'EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD belong together: set both.',
    );
  }
  return null;
}

function readSummary(reader: Reader) {
  const { value, report } = reader;
  /** For the subscriptions that state no rule of their own. */
  const rule = value('EARSHOT_SUMMARY');
  const inference = readInference(reader);
  const budget = {
    requestsPerHour: value('EARSHOT_SUMMARY_REQUESTS_PER_HOUR'),
    requestsPerDay: value('EARSHOT_SUMMARY_REQUESTS_PER_DAY'),
    tokensPerDay: value('EARSHOT_SUMMARY_TOKENS_PER_DAY'),
  };
  if (rule !== 'off' && !value('EARSHOT_INDEX')) {
    report(
      'EARSHOT_SUMMARY',
      `EARSHOT_SUMMARY=${rule} needs the product index, from which texts are made, but EARSHOT_INDEX is off.`,
      'Set EARSHOT_INDEX=on, or EARSHOT_SUMMARY=off.',
    );
  }
  return { rule, inference, budget };
}

/** Null where no model is configured: texts are made from the facts alone. */
function readInference({ value, failed, report }: Reader) {
  const url = value('EARSHOT_INFERENCE_URL');
  const apiKey = value('EARSHOT_INFERENCE_API_KEY');
  const model = value('EARSHOT_INFERENCE_MODEL');
  if (apiKey !== undefined && model !== undefined) return { url, apiKey, model };
  if (failed('EARSHOT_INFERENCE_API_KEY', 'EARSHOT_INFERENCE_MODEL')) return null;
  if (apiKey !== undefined) {
    report(
      'EARSHOT_INFERENCE_MODEL',
      'EARSHOT_INFERENCE_API_KEY is set, but no model is.',
      'Set EARSHOT_INFERENCE_MODEL to one that is available to the project of the key, such as openai/gpt-oss-120b.',
    );
  }
  if (model !== undefined) {
    report(
      'EARSHOT_INFERENCE_API_KEY',
      'EARSHOT_INFERENCE_MODEL is set, but there is no key.',
      'Set EARSHOT_INFERENCE_API_KEY to an API key of your project at the inference service, or EARSHOT_INFERENCE_API_KEY_FILE to a file that holds it.',
    );
  }
  return null;
}
