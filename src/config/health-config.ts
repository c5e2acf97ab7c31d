/** What `earshot health` needs: where the receiver of this machine listens, and how to log in. */
import { AppError } from '../domain/app-error.ts';
import { type CredentialPairs, readEndpointCredentials } from './endpoint-credentials.ts';
import { frozen } from './frozen.ts';
import { type Environment, readVariables, refuseProblems } from './read-variables.ts';

export interface HealthConfig {
  listen: { host: string; port: number };
  secure: boolean;
  /** The pair that the catalogue is to be given. */
  credentials: CredentialPairs[number];
}

/** Throws one `configuration` error that lists every problem. */
export function readHealthConfig(environment: Environment): Readonly<HealthConfig> {
  const { values, problems } = readVariables(environment, [
    'listen',
    'dataDir',
    'endpointUsername',
    'endpointPassword',
    'tls',
  ]);
  const credentials = readEndpointCredentials(values, problems).pairs.at(-1);
  const told = problems.some((problem) => /EARSHOT_ENDPOINT_|endpoint-credentials/.test(problem));
  if (credentials === undefined && !told) {
    problems.push(
      'There are no endpoint credentials to log in with. Run this with the settings of the receiver.',
    );
  }
  if (values.listen?.port === 0) {
    problems.push('EARSHOT_LISTEN has port 0, any free one: the receiver cannot be found.');
  }
  refuseProblems(problems);
  if (credentials === undefined) throw new AppError('internal', 'A problem was not told.');
  return frozen({ listen: values.listen, secure: values.tls !== 'off', credentials });
}
