/** What commands need that work on the catalogue account. */
import type { Account } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import {
  credentialsFileName,
  type EndpointCredentials,
  readEndpointCredentials,
} from './endpoint-credentials.ts';
import { frozen } from './frozen.ts';
import { type Environment, readVariables, refuseProblems } from './read-variables.ts';
import type { Values } from './variables.ts';

export interface AccountConfig {
  dataDir: string;
  publicUrl: string | undefined;
  catalogueUrl: string;
  /** How the account is entered; null when nothing says so. */
  account: Account | null;
  limits: { runningMax: number; totalMax: number };
  /** PEM file of authorities that are trusted when our own endpoint is probed. */
  probeCa: string | undefined;
  endpoint: EndpointCredentials;
}

/** With what a call of the catalogue needs. */
export type CompleteAccountConfig = AccountConfig & {
  account: NonNullable<AccountConfig['account']>;
  publicUrl: string;
};

/** Throws one `configuration` error that lists every problem. Nothing has to be set. */
export function readAccountConfig(environment: Environment): Readonly<AccountConfig> {
  const { values, problems } = readVariables(environment, [
    'publicUrl',
    'dataDir',
    'endpointUsername',
    'endpointPassword',
    'probeCa',
    'catalogueUrl',
    'tokenUrl',
    'clientId',
    'accountUsername',
    'accountPassword',
    'accountTotp',
    'accessToken',
    'subscriptionsRunningMax',
    'subscriptionsMax',
  ]);
  const account = readAccount(values, problems);
  const endpoint = readEndpointCredentials(values, problems);
  if (endpoint.pairs.some(({ password }) => password === values.accountPassword)) {
    const which =
      endpoint.source === 'variables'
        ? 'EARSHOT_ENDPOINT_PASSWORD'
        : `A password in ${credentialsFileName}`;
    problems.push(
      `${which} is the password of your account. The catalogue would send it over the network with every notification: use another one.`,
    );
  }
  refuseProblems(problems);
  const { dataDir, publicUrl, catalogueUrl, probeCa } = values;
  const limits = { runningMax: values.subscriptionsRunningMax, totalMax: values.subscriptionsMax };
  return frozen({ dataDir, publicUrl, catalogueUrl, account, limits, probeCa, endpoint });
}

/** The same, with an account and a public URL. Throws `configuration`. */
export function readCompleteAccountConfig(
  environment: Environment,
): Readonly<CompleteAccountConfig> {
  const complete = completeAccountConfig(readAccountConfig(environment));
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
  if (account !== null && publicUrl !== undefined) {
    return frozen({ ...config, account, publicUrl });
  }
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

function readAccount(
  values: Values<
    'accessToken' | 'tokenUrl' | 'clientId' | 'accountUsername' | 'accountPassword' | 'accountTotp'
  >,
  problems: string[],
): AccountConfig['account'] {
  const { accessToken, tokenUrl, clientId, accountUsername: username, accountTotp: totp } = values;
  const { accountPassword: password } = values;
  if (accessToken !== undefined) return { kind: 'token', accessToken };
  if (username !== undefined && password !== undefined) {
    return { kind: 'password', tokenUrl, clientId, username, password, totp };
  }
  // What is wrong with one of them has been said; the other one alone is no second problem.
  const told = problems.some((problem) => /EARSHOT_ACCOUNT_(?!TOTP)/.test(problem));
  if (!told && (username !== undefined || password !== undefined)) {
    problems.push(
      'EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD belong together: set both.',
    );
  }
  return null;
}
