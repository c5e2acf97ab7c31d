/** The one table of variables: what each is called, means, holds and defaults to. */
import { z } from 'zod';
import { backupVariables } from './backup-variables.ts';
import { compactVariables } from './compact-variables.ts';
import { completenessVariables } from './completeness-variables.ts';
import { diskVariables } from './disk-variables.ts';
import { keepVariables } from './keep-variables.ts';
import { summaryVariables } from './summary-variables.ts';
import {
  addressRanges,
  catalogueUrl,
  count,
  directory,
  exactUrl,
  listenAddress,
  listenAddressOrOff,
  outboundUrl,
  publicUrl,
} from './value-schemas.ts';
import { type Variable, variable } from './variable.ts';

export type { Variable };

export const variables = {
  publicUrl: variable({
    name: 'EARSHOT_PUBLIC_URL',
    schema: publicUrl,
    description:
      'The https address under which the catalogue reaches this receiver, with the port if it is not 443.',
    example: 'https://earshot.example.org:8443',
  }),
  listen: variable({
    name: 'EARSHOT_LISTEN',
    schema: listenAddress,
    default: '0.0.0.0:8443',
    description: 'Address and port of the public listener.',
    example: '0.0.0.0:8443',
  }),
  consoleListen: variable({
    name: 'EARSHOT_CONSOLE_LISTEN',
    schema: listenAddressOrOff,
    default: '127.0.0.1:8080',
    description:
      'Address and port of the private listener, which answers queries and hands out health and metrics (plain HTTP), or `off`. Other addresses than those of this machine itself need EARSHOT_CONSOLE_PASSWORD.',
    example: '127.0.0.1:8080',
  }),
  consolePassword: variable({
    name: 'EARSHOT_CONSOLE_PASSWORD',
    schema: z.string(),
    secret: true,
    description: 'The password of the private listener (Basic Auth); the user name is `earshot`.',
    example: 'another-long-random-text',
  }),
  index: variable({
    name: 'EARSHOT_INDEX',
    schema: z.enum(['on', 'off']),
    default: 'on',
    description:
      'Whether the receiver keeps the product index, which queries by filter need. With `off` it can still be made by `earshot index rebuild`.',
    example: 'on',
  }),
  dataDir: variable({
    name: 'EARSHOT_DATA_DIR',
    schema: directory,
    default: './data',
    description: 'The folder that holds the database and the secrets that earshot makes itself.',
    example: '/var/lib/earshot',
  }),
  ...diskVariables,
  ...keepVariables,
  ...compactVariables,
  ...backupVariables,
  endpointUsername: variable({
    name: 'EARSHOT_ENDPOINT_USERNAME',
    schema: z.string().refine((name) => !name.includes(':'), {
      error: 'a user name cannot hold a colon (RFC 7617)',
    }),
    description: 'The user name with which the catalogue logs in here (Basic Auth).',
    example: 'catalogue',
  }),
  endpointPassword: variable({
    name: 'EARSHOT_ENDPOINT_PASSWORD',
    schema: z.string(),
    secret: true,
    description: 'The password that belongs to it. Use another one than that of your account.',
    example: 'a-long-random-text',
  }),
  tls: variable({
    name: 'EARSHOT_TLS',
    schema: z.enum(['files', 'acme', 'off']),
    default: 'files',
    description:
      '`files`: HTTPS with the certificate and key named below. `acme`: earshot gets and renews its certificate itself. `off`: plain HTTP, only behind a proxy that speaks HTTPS.',
    example: 'acme',
  }),
  tlsCert: variable({
    name: 'EARSHOT_TLS_CERT',
    schema: z.string(),
    description:
      'File with the certificate and its chain, PEM. Read again by itself when it changes.',
    example: '/etc/letsencrypt/live/earshot.example.org/fullchain.pem',
  }),
  tlsKey: variable({
    name: 'EARSHOT_TLS_KEY',
    schema: z.string(),
    description: 'File with the private key of the certificate, PEM.',
    example: '/etc/letsencrypt/live/earshot.example.org/privkey.pem',
  }),
  acmeDirectory: variable({
    name: 'EARSHOT_ACME_DIRECTORY',
    schema: exactUrl,
    default: 'https://acme-v02.api.letsencrypt.org/directory',
    description:
      "The directory URL of the certificate authority (ACME, RFC 8555). Let's Encrypt unless told otherwise.",
    example: 'https://acme-v02.api.letsencrypt.org/directory',
  }),
  acmeEmail: variable({
    name: 'EARSHOT_ACME_EMAIL',
    schema: z.email('must be an e-mail address'),
    description: 'Where the authority may write to. Some ask for it, some take none.',
    example: 'me@example.org',
  }),
  acmeAgree: variable({
    name: 'EARSHOT_ACME_AGREE',
    schema: z.literal('yes', "must be yes, which means: I agree to the authority's terms"),
    description:
      "`yes`: you agree to the authority's terms of service. `earshot certificate test` shows where they stand.",
    example: 'yes',
  }),
  acmeChallenge: variable({
    name: 'EARSHOT_ACME_CHALLENGE',
    schema: z.enum(['http-01', 'tls-alpn-01']),
    default: 'http-01',
    description:
      'How the authority checks that the name is yours. `http-01`: it asks port 80 of this host. `tls-alpn-01`: it asks port 443, which must lead to EARSHOT_LISTEN.',
    example: 'http-01',
  }),
  acmeHttpListen: variable({
    name: 'EARSHOT_ACME_HTTP_LISTEN',
    schema: listenAddress,
    default: '0.0.0.0:80',
    description:
      'Address and port on which http-01 challenges are answered, and nothing else. The authority reaches it as port 80.',
    example: '0.0.0.0:80',
  }),
  acmeCa: variable({
    name: 'EARSHOT_ACME_CA',
    schema: z.string(),
    description:
      "PEM file of authorities that the certificate authority's own HTTPS is checked against, besides the system's. For a private authority.",
    example: './private-authority.pem',
  }),
  acmeEabKeyId: variable({
    name: 'EARSHOT_ACME_EAB_KEY_ID',
    schema: z.string(),
    description: 'External account binding: the key id, from an authority that asks for it.',
    example: 'kid-1',
  }),
  acmeEabHmacKey: variable({
    name: 'EARSHOT_ACME_EAB_HMAC_KEY',
    schema: z.string().regex(/^[\w+/-]+=*$/, 'must be base64url text, as the authority gave it'),
    secret: true,
    description: 'The key (base64url) that belongs to it.',
    example: 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W',
  }),
  trustedProxies: variable({
    name: 'EARSHOT_TRUSTED_PROXIES',
    schema: addressRanges,
    description:
      'Addresses or ranges of the proxies in front, with commas between them. `X-Forwarded-For` is believed from these alone.',
    example: '127.0.0.1, ::1',
  }),
  probeCa: variable({
    name: 'EARSHOT_PROBE_CA',
    schema: z.string(),
    description:
      'PEM file of authorities to trust besides the public ones when earshot looks at its own endpoint. For tests: the catalogue trusts public authorities only.',
    example: './authority.pem',
  }),
  catalogueUrl: variable({
    name: 'EARSHOT_CATALOGUE_URL',
    schema: catalogueUrl,
    default: 'https://catalogue.dataspace.copernicus.eu',
    description: 'The catalogue, without `/odata/v1`.',
    example: 'https://datahub.creodias.eu',
  }),
  tokenUrl: variable({
    name: 'EARSHOT_TOKEN_URL',
    schema: outboundUrl,
    default:
      'https://identity.dataspace.copernicus.eu/auth/realms/CDSE/protocol/openid-connect/token',
    description: 'The token endpoint of the identity provider.',
    example:
      'https://identity.dataspace.copernicus.eu/auth/realms/CDSE/protocol/openid-connect/token',
  }),
  clientId: variable({
    name: 'EARSHOT_CLIENT_ID',
    schema: z.string(),
    default: 'cdse-public',
    description: 'The client that tokens are asked for as (OAuth 2.0 client id).',
    example: 'cdse-public',
  }),
  accountUsername: variable({
    name: 'EARSHOT_ACCOUNT_USERNAME',
    schema: z.string(),
    description: 'Your account at the catalogue, for registering and maintaining subscriptions.',
    example: 'me@example.org',
  }),
  accountPassword: variable({
    name: 'EARSHOT_ACCOUNT_PASSWORD',
    schema: z.string(),
    secret: true,
    description: 'Its password.',
    example: 'the-password-of-your-account',
  }),
  accountTotp: variable({
    name: 'EARSHOT_ACCOUNT_TOTP',
    // The message must not repeat the value: it is a secret.
    schema: z
      .string()
      .transform((text) => text.replaceAll(/[\s-]/g, ''))
      .refine((text) => /^\d{6}$/.test(text) || /^[a-z2-7]{8,}=*$/i.test(text), {
        error: 'must be six digits, or the shared secret in base32 (letters and the digits 2 to 7)',
      }),
    secret: true,
    description:
      'For accounts with two-factor login: the shared secret that the authenticator app was given (base32), or one six-digit code, which is good for half a minute.',
    example: 'JBSWY3DPEHPK3PXP',
  }),
  accessToken: variable({
    name: 'EARSHOT_ACCESS_TOKEN',
    schema: z.string().regex(/^[\x21-\x7e]+$/, 'must be one word without blanks'),
    secret: true,
    description:
      'An access token to be used as it is, instead of user name and password. It ends after minutes, so maintenance cannot live on it.',
    example: 'eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjB9.c2ln',
  }),
  subscriptionsRunningMax: variable({
    name: 'EARSHOT_SUBSCRIPTIONS_RUNNING_MAX',
    schema: count,
    default: '2',
    description: 'How many subscriptions of an account the catalogue lets run.',
    example: '2',
  }),
  subscriptionsMax: variable({
    name: 'EARSHOT_SUBSCRIPTIONS_MAX',
    schema: count,
    default: '10',
    description: 'How many subscriptions the catalogue lets an account have, paused ones included.',
    example: '10',
  }),
  ...completenessVariables,
  ...summaryVariables,
  logLevel: variable({
    name: 'EARSHOT_LOG_LEVEL',
    schema: z.enum(['debug', 'info', 'warn', 'error']),
    default: 'info',
    description:
      'How much is logged. `debug` adds a line for each notification; `info` sums them up every minute.',
    example: 'info',
  }),
} as const;

export type VariableKey = keyof typeof variables;

/** The values of some variables, read and checked; those that are not set are undefined. */
export type Values<Key extends VariableKey> = {
  readonly [K in Key]:
    | z.output<(typeof variables)[K]['schema']>
    | ((typeof variables)[K] extends { default: string } ? never : undefined);
};
