/** One frozen configuration for each kind of command: what it needs, and nothing else. */
import { type EndpointCredentials, readEndpointCredentials } from './endpoint-credentials.ts';
import { type Environment, readVariables, refuseProblems } from './read-variables.ts';
import type { Values } from './variables.ts';

export interface ServeConfig {
  listen: { host: string; port: number };
  publicUrl: string | undefined;
  dataDir: string;
  credentials: EndpointCredentials;
  /** Null: plain HTTP, behind a proxy. */
  certificateFiles: { cert: string; key: string } | null;
  logLevel: Values<'logLevel'>['logLevel'];
}

/** What `start` needs. Throws one `configuration` error that lists every problem. */
export function readServeConfig(environment: Environment): Readonly<ServeConfig> {
  const { values, problems } = readVariables(environment, [
    'publicUrl',
    'listen',
    'dataDir',
    'endpointUsername',
    'endpointPassword',
    'tls',
    'tlsCert',
    'tlsKey',
    'logLevel',
  ]);
  const credentials = readEndpointCredentials(values, environment.readFile, problems);
  const certificateFiles = readCertificateFiles(values, problems);
  refuseProblems(problems);
  const { listen, publicUrl, dataDir, logLevel } = values;
  return frozen({ listen, publicUrl, dataDir, credentials, certificateFiles, logLevel });
}

/** What commands need that look into the data directory. */
export function readDataConfig(environment: Environment): Readonly<{ dataDir: string }> {
  const { values, problems } = readVariables(environment, ['dataDir']);
  refuseProblems(problems);
  return Object.freeze(values);
}

function frozen<Value extends object>(value: Value): Readonly<Value> {
  for (const inner of Object.values(value)) {
    if (typeof inner === 'object' && inner !== null) frozen(inner);
  }
  return Object.freeze(value);
}

function readCertificateFiles(
  { tls, tlsCert, tlsKey }: Values<'tls' | 'tlsCert' | 'tlsKey'>,
  problems: string[],
): ServeConfig['certificateFiles'] {
  // Neither of the two: that has been reported.
  if (tls === undefined) return null;
  if (tls === 'off') {
    if (tlsCert !== undefined || tlsKey !== undefined) {
      problems.push('EARSHOT_TLS=off does not go with EARSHOT_TLS_CERT or EARSHOT_TLS_KEY.');
    }
    return null;
  }
  if (tlsCert === undefined || tlsKey === undefined) {
    const missing = [
      ...(tlsCert === undefined ? ['EARSHOT_TLS_CERT'] : []),
      ...(tlsKey === undefined ? ['EARSHOT_TLS_KEY'] : []),
    ];
    problems.push(`HTTPS needs ${missing.join(' and ')}. Behind a proxy: EARSHOT_TLS=off.`);
    return null;
  }
  return { cert: tlsCert, key: tlsKey };
}
