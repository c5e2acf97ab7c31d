/** The configuration by section. A command loads only the sections it uses; problems in others do not matter. */
import type { Account } from '../../admin/account.ts';
import { readOwnAcme, readServedTls, readTls } from '../../features/certificate/settings.ts';
import { hostInUrl, isLoopbackHost, type ListenAddress } from '../http/network-address.ts';
import { AppError } from '../terms/app-error.ts';
import { credentialsFileName, readEndpointCredentials } from './endpoint-credentials.ts';
import { checkSections, type Environment, type Loaded, loadSections, type Reader } from './load.ts';

/** Sections: each reads its variables and checks that they are consistent. */
const sections = {
  publicUrl: ({ value }: Reader) => value('EARSHOT_PUBLIC_URL'),
  listen: ({ value }: Reader) => value('EARSHOT_LISTEN'),
  console: readConsole,
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies: ({ value }: Reader) => value('EARSHOT_TRUSTED_PROXIES') ?? [],
  logLevel: ({ value }: Reader) => value('EARSHOT_LOG_LEVEL'),
  dataDir: ({ value }: Reader) => value('EARSHOT_DATA_DIR'),
  /** Reserved free space on its disk; the default depends on the disk. */
  diskReserveBytes: ({ value }: Reader) => value('EARSHOT_DISK_RESERVE'),
  /** True if the product index is maintained. */
  index: ({ value }: Reader) => value('EARSHOT_INDEX'),
  /** Null when everything is kept. */
  keep: ({ value }: Reader) => value('EARSHOT_KEEP') ?? null,
  sharedLog: readSharedLog,
  backup: ({ value }: Reader) => ({
    /** Null when the receiver makes no backups. */
    folder: value('EARSHOT_BACKUP_DIR') ?? null,
    everyHours: value('EARSHOT_BACKUP_EVERY'),
    /** Number of backups to keep. */
    keep: value('EARSHOT_BACKUP_KEEP'),
  }),
  /** Required credentials, for the receiver. */
  credentials: readCredentials,
  /** Optional credentials, for commands of the account; they differ from those of the account. */
  endpoint: readEndpoint,
  health: readHealth,
  tls: (reader: Reader) => readTls(reader),
  servedTls: readServedTls,
  acme: readOwnAcme,
  /** PEM file of additional authorities for probes of our own endpoint. */
  probeCa: ({ value }: Reader) => value('EARSHOT_PROBE_CA'),
  catalogueUrl: ({ value }: Reader) => value('EARSHOT_CATALOGUE_URL'),
  tokenUrl: ({ value }: Reader) => value('EARSHOT_TOKEN_URL'),
  /** Login of the catalogue account; null if not configured. */
  account: readAccount,
  limits: ({ value }: Reader) => ({
    runningMax: value('EARSHOT_SUBSCRIPTIONS_RUNNING_MAX'),
    totalMax: value('EARSHOT_SUBSCRIPTIONS_MAX'),
  }),
  /** True if the receiver compares the log with the catalogue. */
  reconcile: ({ value }: Reader) => value('EARSHOT_RECONCILE'),
  requestsPerMinute: ({ value }: Reader) => value('EARSHOT_RECONCILE_REQUESTS_PER_MINUTE'),
  pullRequestsPerMinute: ({ value }: Reader) => value('EARSHOT_PULL_REQUESTS_PER_MINUTE'),
  alertUrl: ({ value }: Reader) => value('EARSHOT_ALERT_URL') ?? null,
  /** Program and arguments. */
  alertCommand: ({ value }: Reader) => value('EARSHOT_ALERT_COMMAND') ?? null,
  summary: readSummary,
};

export type Config = Loaded<typeof sections>;

/** Loads sections. Throws one `configuration` error that lists all their problems, and unknown variables. */
export function loadConfig<const Section extends keyof Config>(
  environment: Environment,
  names: readonly Section[],
): Loaded<Pick<typeof sections, Section>> {
  return loadSections(environment, chosen(names));
}

/** Returns the valid sections, and all problems. */
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

/** Sections for commands that use the data directory. */
export const dataSections = ['dataDir', 'diskReserveBytes', 'sharedLog'] as const;
export type DataConfig = Pick<Config, (typeof dataSections)[number]>;

/** Sections of the public listener. */
const endpointSections = ['listen', 'credentials', 'tls', 'trustedProxies'] as const;

/** Sections for the receiver. */
export const serveSections = [
  'publicUrl',
  ...endpointSections,
  ...dataSections,
  'console',
  'index',
  'logLevel',
] as const;
/** `listen` is null without a public listener. */
export type ServeConfig = Pick<Config, Exclude<(typeof serveSections)[number], 'listen'>> & {
  listen: Config['listen'] | null;
};

/** Settings of a receiver that only reads queues. */
const noEndpoint: Pick<ServeConfig, (typeof endpointSections)[number]> = {
  listen: null,
  credentials: { source: 'none', pairs: [] },
  tls: { kind: 'off' },
  trustedProxies: [],
};

/** Returns the sections that a receiver reads. */
export function servedSections<Section extends keyof Config>(
  names: readonly Section[],
  hasEndpoint: boolean,
): Section[] {
  return names.filter((name) => hasEndpoint || !endpointSections.some((own) => own === name));
}

type Served<Section extends keyof Config> = Omit<Pick<Config, Section>, 'listen'> &
  Pick<ServeConfig, 'listen'>;

/** Loads the sections of a receiver as `loadConfig` does. Without an endpoint, the settings of the endpoint are ignored. */
export function loadServed<const Section extends keyof Config>(
  environment: Environment,
  names: readonly Section[],
  { hasEndpoint }: { hasEndpoint: boolean },
): Served<Section> {
  const config: Partial<Config> = loadConfig(environment, servedSections(names, hasEndpoint));
  return Object.freeze({ ...(hasEndpoint ? {} : noEndpoint), ...config }) as Served<Section>;
}

/** Sections for commands that use the catalogue account. */
export const accountSections = [
  'dataDir',
  'sharedLog',
  'publicUrl',
  'catalogueUrl',
  'account',
  'limits',
  'probeCa',
  'endpoint',
  'pullRequestsPerMinute',
] as const;
export type AccountConfig = Pick<Config, (typeof accountSections)[number]>;

/** Sections for a comparison with the catalogue. */
export const reconcileSections = [
  ...dataSections,
  'catalogueUrl',
  'account',
  'requestsPerMinute',
] as const;
export type ReconcileConfig = Pick<Config, (typeof reconcileSections)[number]>;

/** Sections for the watchdog. */
export const watchSections = ['reconcile', 'alertUrl', 'alertCommand'] as const;
export type WatchConfig = Pick<Config, (typeof watchSections)[number]>;

/** Sections for the receiver with all background jobs. */
export const startSections = [
  ...serveSections,
  ...accountSections,
  'summary',
  ...reconcileSections,
  ...watchSections,
  'keep',
  'backup',
] as const;
export type StartConfig = ServeConfig &
  Pick<Config, Exclude<(typeof startSections)[number], 'listen'>>;

/** Account configuration with all settings that requests to the catalogue need. */
export type CompleteAccountConfig = AccountConfig & { account: Account };

/** `publicUrl` is true if a push subscription is involved. */
interface AccountNeeds {
  publicUrl: boolean;
}

/**
 * Loads the configuration for commands of the account. Throws `configuration`, also for a setting that is not set.
 */
export function loadAccountConfig(
  environment: Environment,
  needs: AccountNeeds,
): CompleteAccountConfig {
  const complete = completeAccountConfig(loadConfig(environment, accountSections), needs);
  if (!('missing' in complete)) return complete;
  throw new AppError('configuration', 'Settings are missing:', {
    details: complete.missing,
  });
}

/** Returns the complete configuration, or sentences that name the missing settings. */
export function completeAccountConfig(
  config: AccountConfig,
  needs: AccountNeeds,
): CompleteAccountConfig | { missing: string[] } {
  const { account, publicUrl } = config;
  const isUrlMissing = needs.publicUrl && publicUrl === undefined;
  if (account !== null && !isUrlMissing) return Object.freeze({ ...config, account });
  const missing: string[] = [];
  if (account === null) {
    missing.push(
      'Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD to the credentials of your catalogue account.',
    );
  }
  if (isUrlMissing) {
    missing.push(
      'Set EARSHOT_PUBLIC_URL to the https URL at which the catalogue reaches the receiver. Without a public host, use pull subscriptions: `earshot register --pull`.',
    );
  }
  return { missing };
}

/** Returns why the receiver does not compare automatically with these settings; null when it does. */
export function comparisonOff({
  reconcile,
  index,
}: Pick<Config, 'reconcile' | 'index'>): string | null {
  if (!reconcile) return 'EARSHOT_RECONCILE is off.';
  return index ? null : 'EARSHOT_INDEX is off, but a comparison needs the product index.';
}

/** Reads the database of the shared log; null when this receiver has a log of its own. */
function readSharedLog({ value, report, failed }: Reader) {
  const urls = value('EARSHOT_LOG_URL');
  const needsStandby = value('EARSHOT_LOG_SYNC') === 'standby';
  const nodeName = value('EARSHOT_NODE') ?? null;
  if (urls !== undefined) return { urls, needsStandby, nodeName };
  if (needsStandby && !failed('EARSHOT_LOG_URL')) {
    report(
      'EARSHOT_LOG_SYNC',
      'EARSHOT_LOG_SYNC is standby, but EARSHOT_LOG_URL is not set.',
      'Set EARSHOT_LOG_URL to the database of the shared log.',
    );
  }
  return null;
}

export interface ConsoleConfig {
  listen: ListenAddress;
  password: string | undefined;
  /** Base of download URLs. */
  catalogueUrl: string;
  /** Address at which users reach the listener; by default, that of each request. */
  url?: string | undefined;
  /** Origins of other pages that may read answers. */
  origins?: readonly string[] | undefined;
}

/** Reads the private listener; null when it is off. */
function readConsole({ value, failed, report }: Reader): ConsoleConfig | null {
  const listen = value('EARSHOT_CONSOLE_LISTEN');
  const password = value('EARSHOT_CONSOLE_PASSWORD');
  const catalogueUrl = value('EARSHOT_CATALOGUE_URL');
  const url = value('EARSHOT_CONSOLE_URL');
  const origins = value('EARSHOT_CONSOLE_ORIGINS');
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
  return { listen, password, catalogueUrl, url, origins };
}

function readCredentials(reader: Reader) {
  const endpoint = readEndpointCredentials(reader);
  if (endpoint.source !== 'none') return endpoint;
  reader.report(
    'EARSHOT_ENDPOINT_USERNAME',
    'No endpoint credentials are configured: all notifications would be refused.',
    'Run `earshot credentials create`, or set EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD. Without a public host, use a pull subscription: `earshot register --pull`.',
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
      'Use another password: the catalogue sends the endpoint password with every notification.',
    );
  }
  return endpoint;
}

/**
 * Reads how a command connects to the receiver on this machine, with the credentials that the catalogue should use.
 */
function readHealth(reader: Reader) {
  const listen = reader.value('EARSHOT_LISTEN');
  const secure = reader.value('EARSHOT_TLS') !== 'off';
  if (listen.port === 0) {
    reader.report(
      'EARSHOT_LISTEN',
      'EARSHOT_LISTEN has port 0 (any free port), but this command needs a fixed port.',
    );
  }
  const credentials = readEndpointCredentials(reader).pairs.at(-1);
  if (credentials !== undefined) return { listen, secure, credentials };
  reader.report(
    'EARSHOT_ENDPOINT_USERNAME',
    'No endpoint credentials are configured.',
    'Run this command with the settings of the receiver.',
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
  /** Rule of the subscriptions without one of their own. */
  const rule = value('EARSHOT_SUMMARY');
  const inference = readInference(reader);
  const budget = {
    requestsPerDay: value('EARSHOT_SUMMARY_REQUESTS_PER_DAY'),
    tokensPerDay: value('EARSHOT_SUMMARY_TOKENS_PER_DAY'),
  };
  if (rule !== 'off' && !value('EARSHOT_INDEX')) {
    report(
      'EARSHOT_SUMMARY',
      `EARSHOT_SUMMARY=${rule} needs the product index, but EARSHOT_INDEX is off.`,
      'Set EARSHOT_INDEX=on, or EARSHOT_SUMMARY=off.',
    );
  }
  return { rule, inference, budget };
}

/** Reads the language model; null when none is configured: texts are then generated from the facts alone. */
function readInference({ value, failed, report }: Reader) {
  const url = value('EARSHOT_INFERENCE_URL');
  const apiKey = value('EARSHOT_INFERENCE_API_KEY');
  const model = value('EARSHOT_INFERENCE_MODEL');
  if (apiKey !== undefined && model !== undefined) return { url, apiKey, model };
  if (failed('EARSHOT_INFERENCE_API_KEY', 'EARSHOT_INFERENCE_MODEL')) return null;
  if (apiKey !== undefined) {
    report(
      'EARSHOT_INFERENCE_MODEL',
      'EARSHOT_INFERENCE_API_KEY is set, but EARSHOT_INFERENCE_MODEL is not.',
      'Set EARSHOT_INFERENCE_MODEL to a model that is available to the project of the key, such as openai/gpt-oss-120b.',
    );
  }
  if (model !== undefined) {
    report(
      'EARSHOT_INFERENCE_API_KEY',
      'EARSHOT_INFERENCE_MODEL is set, but EARSHOT_INFERENCE_API_KEY is not.',
      'Set EARSHOT_INFERENCE_API_KEY to an API key of your project at the inference service, or EARSHOT_INFERENCE_API_KEY_FILE to the path of a file with the key.',
    );
  }
  return null;
}
