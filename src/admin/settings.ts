/** Settings of the catalogue account. */
import { z } from 'zod';
import { checkConfig, loadConfig } from '../core/config/config.ts';
import {
  credentialsFileName,
  readEndpointCredentials,
} from '../core/config/endpoint-credentials.ts';
import {
  defineSections,
  defineVariables,
  type Environment,
  type Loaded,
  type Reader,
} from '../core/config/load.ts';
import * as values from '../core/config/variables.ts';
import { variables as coreVariables } from '../core/config/variables.ts';
import { AppError } from '../core/terms/app-error.ts';
import type { Account } from './account.ts';

declare module '../core/config/config.ts' {
  interface Config extends Loaded<typeof sections> {}
  interface StartConfig
    extends Pick<Config, 'account' | 'limits' | 'probeCa' | 'endpoint' | 'pullRequestsPerMinute'> {}
}

const tokenUrlDefault =
  'https://identity.dataspace.copernicus.eu/auth/realms/CDSE/protocol/openid-connect/token';

export const variables = defineVariables({
  EARSHOT_PROBE_CA: {
    schema: z.string(),
    isTrusted: true,
    description:
      'PEM file with additional root certificates that earshot trusts when earshot checks the endpoint. For tests only: the catalogue trusts only public authorities.',
    example: './authority.pem',
  },
  EARSHOT_TOKEN_URL: {
    schema: values.outboundUrl,
    default: tokenUrlDefault,
    description: 'Token endpoint of the identity provider.',
    example: tokenUrlDefault,
  },
  EARSHOT_CLIENT_ID: {
    schema: z.string(),
    default: 'cdse-public',
    description: 'OAuth 2.0 client id for token requests.',
    example: 'cdse-public',
  },
  EARSHOT_ACCOUNT_USERNAME: {
    schema: z.string(),
    description: 'User name of your catalogue account, to register and maintain subscriptions.',
    example: 'me@example.org',
  },
  EARSHOT_ACCOUNT_PASSWORD: {
    schema: z.string(),
    secret: true,
    description: 'Password of your catalogue account.',
    example: 'the-password-of-your-account',
  },
  EARSHOT_ACCOUNT_TOTP: {
    // The message must not repeat the value: it is a secret.
    schema: z
      .string()
      .transform((text) => text.replaceAll(/[\s-]/g, ''))
      .refine((text) => /^\d{6}$/.test(text) || /^[a-z2-7]{8,}=*$/i.test(text), {
        error: 'must be six digits, or the shared secret in base32 (letters and the digits 2 to 7)',
      }),
    secret: true,
    description:
      'For accounts with two-factor login: the shared secret of the authenticator app (base32), or one six-digit code. A code is valid for half a minute.',
    example: 'JBSWY3DPEHPK3PXP',
  },
  EARSHOT_ACCESS_TOKEN: {
    schema: values.word,
    secret: true,
    description:
      'Access token to use instead of user name and password. The token expires after some minutes, and is therefore not suitable for automatic maintenance.',
    example: 'eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjB9.c2ln',
  },
  EARSHOT_SUBSCRIPTIONS_RUNNING_MAX: {
    schema: values.count,
    default: '2',
    description: 'Maximum number of running subscriptions that the catalogue allows per account.',
    example: '2',
  },
  EARSHOT_SUBSCRIPTIONS_MAX: {
    schema: values.count,
    default: '10',
    description:
      'Maximum number of running and paused subscriptions that the catalogue allows per account.',
    example: '10',
  },
  EARSHOT_PULL_REQUESTS_PER_MINUTE: {
    schema: values.count,
    default: '120',
    description:
      'Maximum number of requests per minute to the queues of pull subscriptions, for each program. Two requests read and acknowledge up to 20 notifications: the default reads 1,200 notifications per minute.',
    example: '120',
  },
});

const known = { ...coreVariables, ...variables };

export const sections = defineSections(known, {
  tokenUrl: ({ value }) => value('EARSHOT_TOKEN_URL'),
  /** Login of the catalogue account; null if not configured. */
  account: readAccount,
  /** Parts of a login that are set, for the sandbox. */
  login: ({ value }) => ({
    username: value('EARSHOT_ACCOUNT_USERNAME'),
    password: value('EARSHOT_ACCOUNT_PASSWORD'),
    totp: value('EARSHOT_ACCOUNT_TOTP'),
  }),
  limits: ({ value }) => ({
    runningMax: value('EARSHOT_SUBSCRIPTIONS_RUNNING_MAX'),
    totalMax: value('EARSHOT_SUBSCRIPTIONS_MAX'),
  }),
  /** PEM file of additional authorities for probes of our own endpoint. */
  probeCa: ({ value }) => value('EARSHOT_PROBE_CA'),
  pullRequestsPerMinute: ({ value }) => value('EARSHOT_PULL_REQUESTS_PER_MINUTE'),
  /** Optional credentials, for commands of the account; they differ from those of the account. */
  endpoint: readEndpoint,
});

export const groups = {
  start: ['account', 'limits', 'probeCa', 'endpoint', 'pullRequestsPerMinute'],
};

/** Sections for commands that use the catalogue account. */
export const accountSections = [
  'data',
  'publicUrl',
  'catalogueUrl',
  'account',
  'limits',
  'probeCa',
  'endpoint',
  'pullRequestsPerMinute',
] as const;
export type AccountConfig = ReturnType<typeof loadConfig<(typeof accountSections)[number]>>;

/** Account configuration with all settings that requests to the catalogue need. */
export type CompleteAccountConfig = AccountConfig & { account: Account };

/**
 * Loads the configuration for commands of the account. `publicUrl` is true if a push subscription is involved. Throws
 * `configuration`, also for a setting that is not set.
 */
export function loadAccountConfig(
  environment: Environment,
  needs: { publicUrl: boolean },
): CompleteAccountConfig {
  const complete = completeAccountConfig(loadConfig(environment, accountSections), needs);
  if (!('missing' in complete)) return complete;
  throw new AppError('configuration', 'Settings are missing:', { details: complete.missing });
}

/** Returns the complete configuration, or sentences that name the missing settings. */
export function completeAccountConfig(
  config: AccountConfig,
  needs: { publicUrl: boolean },
): CompleteAccountConfig | { missing: string[] } {
  const { account, publicUrl } = config;
  const isUrlMissing = needs.publicUrl && publicUrl === undefined;
  if (account !== null && !isUrlMissing) return Object.freeze({ ...config, account });
  const missing = [...(account === null ? [setAccount] : []), ...(isUrlMissing ? [setUrl] : [])];
  return { missing };
}

const setAccount =
  'Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD to the credentials of your catalogue account.';
const setUrl =
  'Set EARSHOT_PUBLIC_URL to the https URL at which the catalogue reaches the receiver. Without a public host, use pull subscriptions: `earshot register --pull`.';

function readEndpoint(reader: Reader<typeof known>) {
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

function readAccount({ value, failed, report }: Reader<typeof known>): Account | null {
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

/**
 * Returns false if the receiver needs no public listener: an account is configured, and neither EARSHOT_PUBLIC_URL nor a
 * variable of the listener. Pushes need one of these: at least a certificate, or EARSHOT_TLS.
 */
export function needsEndpoint(environment: Environment): boolean {
  const { publicUrl, account } = checkConfig(environment, ['publicUrl', 'account']).config;
  const isListenerSet = Object.entries(environment.env).some(
    ([name, value]) => value && /^EARSHOT_(LISTEN$|TLS)/.test(name),
  );
  return publicUrl !== undefined || account === null || isListenerSet;
}
