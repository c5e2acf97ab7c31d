/** One frozen configuration for each kind of command: what it needs, and nothing else. */
import { AppError } from '../domain/app-error.ts';
import { type ConsoleConfig, consoleKeys, readConsole } from './console-config.ts';
import {
  type CredentialPairs,
  type EndpointCredentials,
  readEndpointCredentials,
} from './endpoint-credentials.ts';
import { frozen } from './frozen.ts';
import { type Environment, readVariables, refuseProblems } from './read-variables.ts';
import { readTls, type TlsConfig, tlsKeys } from './tls-config.ts';
import type { Values } from './variables.ts';

export interface ServeConfig {
  listen: { host: string; port: number };
  publicUrl: string | undefined;
  dataDir: string;
  /** What is kept free on its disk; the usual where there is none. */
  diskReserveBytes?: number | undefined;
  credentials: CredentialPairs;
  credentialsSource: EndpointCredentials['source'];
  tls: TlsConfig;
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is believed. */
  trustedProxies: readonly string[];
  /** Null where there is no private listener. */
  console: ConsoleConfig | null;
  /** Whether the product index is kept. */
  index: boolean;
  logLevel: Values<'logLevel'>['logLevel'];
}

/** What `start` needs. Throws one `configuration` error that lists every problem. */
export function readServeConfig(environment: Environment): Readonly<ServeConfig> {
  const { values, problems } = readVariables(environment, [
    'publicUrl',
    'listen',
    'dataDir',
    'diskReserve',
    'endpointUsername',
    'endpointPassword',
    ...tlsKeys,
    'trustedProxies',
    ...consoleKeys,
    'index',
    'logLevel',
  ]);
  const endpoint = readEndpointCredentials(values, problems);
  const told = problems.some((problem) => /EARSHOT_ENDPOINT_|endpoint-credentials/.test(problem));
  if (endpoint.source === 'none' && !told) {
    problems.push(
      'There are no endpoint credentials, so nobody could be let in. Run `earshot credentials create`, or set EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD.',
    );
  }
  const tls = readTls(values, environment, problems);
  const console = readConsole(values, problems);
  refuseProblems(problems);
  const { listen, publicUrl, dataDir, trustedProxies = [], index, logLevel } = values;
  return frozen({
    listen,
    publicUrl,
    dataDir,
    diskReserveBytes: values.diskReserve,
    credentials: endpoint.pairs,
    credentialsSource: endpoint.source,
    tls,
    trustedProxies,
    console,
    index: index === 'on',
    logLevel,
  });
}

type Read<Readers extends readonly (() => unknown)[]> = {
  [Index in keyof Readers]: ReturnType<Readers[Index]>;
};

/** Reads several configurations, and reports what is wrong with all of them at once. */
export function readAll<const Readers extends readonly (() => unknown)[]>(
  ...readers: Readers
): Read<Readers> {
  const problems = new Set<string>();
  const values = readers.map((read) => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      for (const detail of error.details) problems.add(detail);
      return undefined;
    }
  });
  refuseProblems([...problems]);
  // Nothing was refused, so all were read.
  return values as Read<Readers>;
}

export type DataConfig = Pick<ServeConfig, 'dataDir' | 'diskReserveBytes'>;

/** What commands need that look into the data directory. */
export function readDataConfig(environment: Environment): Readonly<DataConfig> {
  const { values, problems } = readVariables(environment, ['dataDir', 'diskReserve']);
  refuseProblems(problems);
  return Object.freeze({ dataDir: values.dataDir, diskReserveBytes: values.diskReserve });
}

/** The catalogue's address without `/odata/v1`, for links to what it holds. */
export function readCatalogueUrl(environment: Environment): string {
  const { values, problems } = readVariables(environment, ['catalogueUrl']);
  refuseProblems(problems);
  return values.catalogueUrl;
}
