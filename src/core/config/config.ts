/** The configuration by section. A command loads only the sections it uses; problems in others do not matter. */

import type { Feature } from '../feature.ts';
import { hostInUrl, isLoopbackHost, type ListenAddress } from '../http/network-address.ts';
import { readEndpointCredentials } from './endpoint-credentials.ts';
import {
  type ConfigProblem,
  checkSections,
  defineSections,
  type Environment,
  joinSettings,
  type Loaded,
  type Reader,
  refuseProblems,
  type Settings,
} from './load.ts';
import { variables } from './variables.ts';

/** Sections of the receiver itself; features have theirs in their settings. */
const coreSections = defineSections(variables, {
  publicUrl: ({ value }) => value('EARSHOT_PUBLIC_URL'),
  listen: ({ value }) => value('EARSHOT_LISTEN'),
  console: readConsole,
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies: ({ value }) => value('EARSHOT_TRUSTED_PROXIES') ?? [],
  logLevel: ({ value }) => value('EARSHOT_LOG_LEVEL'),
  dataDir: ({ value }) => value('EARSHOT_DATA_DIR'),
  /** Reserved free space on its disk; the default depends on the disk. */
  diskReserveBytes: ({ value }) => value('EARSHOT_DISK_RESERVE'),
  /** Required credentials, for the receiver. */
  credentials: readCredentials,
  catalogueUrl: ({ value }) => value('EARSHOT_CATALOGUE_URL'),
});

/** The configuration by section. Features declare theirs in these interfaces. */
export interface Config extends Loaded<typeof coreSections> {}

/** Configuration of commands that use the data directory. */
export interface DataConfig extends Pick<Config, 'dataDir' | 'diskReserveBytes'> {}

/** Configuration of a receiver. */
export interface StartConfig
  extends DataConfig,
    Pick<
      Config,
      'publicUrl' | 'credentials' | 'trustedProxies' | 'console' | 'logLevel' | 'catalogueUrl'
    > {
  /** Null without a public listener. */
  listen: Config['listen'] | null;
}

/** A section, or the group `data`. */
type Name = keyof Config | 'data';

type Configured<Names extends Name> = Readonly<
  Pick<Config, Extract<Names, keyof Config>> & ('data' extends Names ? DataConfig : unknown)
>;

/** Sections of the receiver itself in each group; features add theirs. */
const groups = {
  data: ['dataDir', 'diskReserveBytes'],
  start: [
    ...['publicUrl', 'listen', 'credentials', 'trustedProxies', 'console', 'logLevel'],
    'catalogueUrl',
  ],
};

/** Sections of the public listener; without one, they are not read. */
const noEndpoint = {
  listen: null,
  credentials: { source: 'none', pairs: [] },
  tls: { kind: 'off' },
  trustedProxies: [],
} as const;

/** Returns the settings of the program: those of the receiver itself, and of all features. */
export async function loadSettings(features: readonly Feature[]): Promise<Settings> {
  const slots = await Promise.all(features.flatMap(({ settings }) => settings?.() ?? []));
  return joinSettings([{ variables, sections: coreSections, groups }, ...slots]);
}

/** Returns the valid sections, and all problems. */
export function checkConfig<const Names extends Name>(
  environment: Environment,
  names: readonly Names[],
): { config: Partial<Configured<Names>>; problems: ConfigProblem[] } {
  const { data } = environment.settings.groups;
  const sections = names.flatMap((name): readonly string[] => (name === 'data' ? data : [name]));
  const { config, problems } = checkSections(environment, sections);
  // The sections have these types.
  return { config: config as unknown as Partial<Configured<Names>>, problems };
}

/** Loads sections. Throws one `configuration` error that lists all their problems, and unknown variables. */
export function loadConfig<const Names extends Name>(
  environment: Environment,
  names: readonly Names[],
): Configured<Names> {
  const { config, problems } = checkConfig(environment, names);
  refuseProblems(problems);
  return config as Configured<Names>;
}

/** Returns the valid settings of a receiver, and all problems. Without an endpoint, its settings are ignored. */
export function checkServed(
  environment: Environment,
  hasEndpoint: boolean,
): { config: Partial<StartConfig>; problems: ConfigProblem[] } {
  const ignored: object = hasEndpoint ? {} : noEndpoint;
  const { data, start } = environment.settings.groups;
  const names = [...data, ...start].filter((name) => !(name in ignored));
  const { config, problems } = checkSections(environment, names);
  return { config: { ...ignored, ...config }, problems };
}

/** Loads the settings of a receiver as `loadConfig` does. */
export function loadServed(environment: Environment, hasEndpoint: boolean): StartConfig {
  const { config, problems } = checkServed(environment, hasEndpoint);
  refuseProblems(problems);
  return config as StartConfig;
}

type CoreReader = Reader<typeof variables>;

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
function readConsole({ value, failed, report }: CoreReader): ConsoleConfig | null {
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

function readCredentials(reader: CoreReader) {
  const endpoint = readEndpointCredentials(reader);
  if (endpoint.source !== 'none') return endpoint;
  reader.report(
    'EARSHOT_ENDPOINT_USERNAME',
    'No endpoint credentials are configured: all notifications would be refused.',
    'Run `earshot credentials create`, or set EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD. Without a public host, set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD, and use a pull subscription: `earshot register --pull`.',
  );
  return reader.stop();
}
