/** Table of all environment variables by section: name, description, schema, default. */
import { z } from 'zod';
import { summaryRuleKinds } from '../../features/summary/terms.ts';
import { databaseUrls, exactUrl } from '../http/network-address.ts';
import * as values from './values.ts';

/** A variable. The schema parses its text; `default` is a text too. */
export interface Variable {
  schema: z.ZodType;
  default?: string;
  /** May also be set as `<name>_FILE`, the path of a file that contains the value. */
  secret?: true;
  /** Description for `docs/reference/configuration.md`, in one to three sentences. */
  description: string;
  /** Example of a value. */
  example: string;
}

export const variables = {
  // Listeners
  EARSHOT_PUBLIC_URL: {
    schema: values.publicUrl,
    description:
      'The https URL at which the catalogue reaches this receiver, with the port if the port is not 443.',
    example: 'https://earshot.example.org:8443',
  },
  EARSHOT_LISTEN: {
    schema: values.listenAddress,
    default: '0.0.0.0:8443',
    description: 'Address and port of the public listener.',
    example: '0.0.0.0:8443',
  },
  EARSHOT_CONSOLE_LISTEN: {
    schema: values.listenAddressOrOff,
    default: '127.0.0.1:8080',
    description:
      'Address and port of the private listener for queries, health and metrics (plain HTTP). `off`: no private listener. An address that other machines can reach requires EARSHOT_CONSOLE_PASSWORD.',
    example: '127.0.0.1:8080',
  },
  EARSHOT_CONSOLE_PASSWORD: {
    schema: z.string(),
    secret: true,
    description: 'Password of the private listener, 12 characters or more; the user is `earshot`.',
    example: 'another-long-random-text',
  },
  EARSHOT_CONSOLE_URL: {
    schema: values.consoleUrl,
    description:
      'URL at which users reach the private listener through a reverse proxy; it may have a path. All links start with it. By default, they have the address of the request, with `X-Forwarded-Proto` and `X-Forwarded-Prefix`.',
    example: 'https://example.org/earshot',
  },
  EARSHOT_CONSOLE_ORIGINS: {
    schema: values.origins,
    description:
      'Origins of web pages that may read `/api`, `/odata` and `/stac` in a browser (CORS), separated by commas. By default, only pages of the private listener may.',
    example: 'https://maps.example.org, http://localhost:5173',
  },

  // Data directory: index, free space, pruning, compaction, backups
  EARSHOT_INDEX: {
    schema: values.onOrOff,
    default: 'on',
    description:
      '`on`: the receiver maintains the product index. Queries by filter need the index. `off`: only `earshot admin index rebuild` and `earshot query products` update the index.',
    example: 'on',
  },
  EARSHOT_DATA_DIR: {
    schema: values.directory,
    default: './data',
    description: 'The data directory, for the database and for the secrets that earshot creates.',
    example: '/var/lib/earshot',
  },
  EARSHOT_DISK_RESERVE: {
    schema: values.byteSize,
    description:
      'Minimum free space on the disk of the data directory. With less free space, the receiver refuses notifications (503). The default is 256 MiB, or 5 % of a disk that is smaller than 5 GiB. `0` disables the limit.',
    example: '1GiB',
  },
  EARSHOT_KEEP: {
    schema: values.kept,
    description:
      'Limits of the notification log: a maximum age (`365d`), a maximum size (`50GB`), or both, separated by a comma. Once a day, the receiver permanently deletes the oldest notifications that exceed a limit. By default, all notifications are kept.',
    example: '365d,50GB',
  },
  EARSHOT_BACKUP_DIR: {
    schema: values.directory,
    description:
      'Directory for automatic backups, preferably on another disk. Each receiver needs a separate directory, which the first backup creates. Without this variable, the receiver creates no backups. Backups contain secrets; only the owner can read the files.',
    example: '/mnt/backups/earshot',
  },
  EARSHOT_BACKUP_EVERY: {
    schema: values.count,
    default: '24',
    description: 'Interval of automatic backups, in hours.',
    example: '24',
  },
  EARSHOT_BACKUP_KEEP: {
    schema: values.count,
    default: '7',
    description:
      'Number of automatic backups to keep. Older backups are deleted after a new backup has been created and verified.',
    example: '7',
  },

  // Shared log of several receivers
  EARSHOT_LOG_URL: {
    schema: databaseUrls,
    secret: true,
    description:
      'The PostgreSQL database of the shared log, for several receivers. Separate several servers (a primary and its standby) by commas. By default, the receiver has a log of its own in the data directory.',
    example: 'postgres://earshot:a-long-random-text@db1:5432,db2:5432/earshot',
  },
  EARSHOT_LOG_SYNC: {
    schema: z.enum(['any', 'standby']),
    default: 'any',
    description:
      '`standby`: notifications are accepted only with a synchronous standby of the database. `any`: also without a standby; then a failure of the database server can lose accepted notifications.',
    example: 'standby',
  },
  EARSHOT_NODE: {
    schema: z.string().regex(/^[a-z0-9][a-z0-9.-]{0,62}$/i, 'must be a name such as receiver-1'),
    description:
      'Name of this receiver in messages, if several receivers share a log. The default is the host name.',
    example: 'receiver-1',
  },

  // Credentials of the endpoint
  EARSHOT_ENDPOINT_USERNAME: {
    schema: z.string().refine((name) => !name.includes(':'), {
      error: 'must not contain a colon (RFC 7617)',
    }),
    description: 'User name with which the catalogue authenticates to this receiver (Basic Auth).',
    example: 'catalogue',
  },
  EARSHOT_ENDPOINT_PASSWORD: {
    schema: values.endpointPassword,
    secret: true,
    description:
      'Password of EARSHOT_ENDPOINT_USERNAME, with at least 12 characters. `earshot credentials create` creates a password of 256 bits. The password must differ from the password of your catalogue account.',
    example: 'a-long-random-text',
  },

  // HTTPS
  EARSHOT_TLS: {
    schema: z.enum(['files', 'acme', 'off']),
    default: 'files',
    description:
      '`files`: HTTPS with EARSHOT_TLS_CERT and EARSHOT_TLS_KEY. `acme`: HTTPS; earshot obtains and renews the certificate automatically. `off`: plain HTTP, only behind a reverse proxy that terminates HTTPS.',
    example: 'acme',
  },
  EARSHOT_TLS_CERT: {
    schema: z.string(),
    description:
      'PEM file with the certificate and the chain. The receiver reloads a changed file automatically.',
    example: '/etc/letsencrypt/live/earshot.example.org/fullchain.pem',
  },
  EARSHOT_TLS_KEY: {
    schema: z.string(),
    description: 'PEM file with the private key of the certificate.',
    example: '/etc/letsencrypt/live/earshot.example.org/privkey.pem',
  },
  EARSHOT_ACME_DIRECTORY: {
    schema: exactUrl,
    default: 'https://acme-v02.api.letsencrypt.org/directory',
    description:
      "Directory URL of the certificate authority (ACME, RFC 8555). The default is Let's Encrypt.",
    example: 'https://acme-v02.api.letsencrypt.org/directory',
  },
  EARSHOT_ACME_EMAIL: {
    schema: z.email('must be an e-mail address'),
    description:
      'E-mail address for the certificate authority. Some authorities require an address, others ignore the address.',
    example: 'me@example.org',
  },
  EARSHOT_ACME_AGREE: {
    schema: z.literal('yes', 'must be yes, to agree to the terms of the authority'),
    description:
      '`yes`: you agree to the terms of service of the authority. For the default authority: https://letsencrypt.org/repository.',
    example: 'yes',
  },
  EARSHOT_ACME_CHALLENGE: {
    schema: z.enum(['http-01', 'tls-alpn-01']),
    default: 'http-01',
    description:
      'Challenge with which the authority verifies the host name. `http-01`: the authority connects to port 80 of the host name. `tls-alpn-01`: the authority connects to port 443, which must lead to EARSHOT_LISTEN.',
    example: 'http-01',
  },
  EARSHOT_ACME_HTTP_LISTEN: {
    schema: values.listenAddress,
    default: '0.0.0.0:80',
    description:
      'Address and port of the listener for http-01 challenges. The authority connects to port 80 of the host name, which must lead to this listener.',
    example: '0.0.0.0:80',
  },
  EARSHOT_ACME_CA: {
    schema: z.string(),
    description:
      'PEM file with the root certificates of a private certificate authority. For the connection to this authority, earshot trusts these certificates in addition to the public ones.',
    example: './private-authority.pem',
  },
  EARSHOT_ACME_EAB_KEY_ID: {
    schema: z.string(),
    description: 'Key id of the external account binding, if the authority requires one.',
    example: 'kid-1',
  },
  EARSHOT_ACME_EAB_HMAC_KEY: {
    schema: z.string().regex(/^[\w+/-]+=*$/, 'must be base64url text, as issued by the authority'),
    secret: true,
    description: 'HMAC key of the external account binding (base64url).',
    example: 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W',
  },
  EARSHOT_TRUSTED_PROXIES: {
    schema: values.addressRanges,
    description:
      'IP addresses or ranges of trusted reverse proxies, separated by commas. The receiver accepts `X-Forwarded-For` only from these proxies.',
    example: '127.0.0.1, ::1',
  },
  EARSHOT_PROBE_CA: {
    schema: z.string(),
    description:
      'PEM file with additional root certificates that earshot trusts when earshot checks the endpoint. For tests only: the catalogue trusts only public authorities.',
    example: './authority.pem',
  },

  // Catalogue and account
  EARSHOT_CATALOGUE_URL: {
    schema: values.catalogueUrl,
    default: 'https://catalogue.dataspace.copernicus.eu',
    description: 'URL of the catalogue, without `/odata/v1`.',
    example: 'https://datahub.creodias.eu',
  },
  EARSHOT_TOKEN_URL: {
    schema: values.outboundUrl,
    default:
      'https://identity.dataspace.copernicus.eu/auth/realms/CDSE/protocol/openid-connect/token',
    description: 'Token endpoint of the identity provider.',
    example:
      'https://identity.dataspace.copernicus.eu/auth/realms/CDSE/protocol/openid-connect/token',
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

  // Completeness and alerts
  EARSHOT_RECONCILE: {
    schema: values.onOrOff,
    default: 'on',
    description:
      '`on`: the receiver compares the log with the catalogue automatically and fetches missing notifications. `off`: only `earshot reconcile` compares.',
    example: 'on',
  },
  EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: {
    schema: values.count,
    default: '60',
    description:
      'Maximum number of product queries per minute that earshot sends to the catalogue. Each query returns up to 400 products (`earshot reconcile`: 1,000).',
    example: '60',
  },
  EARSHOT_PULL_REQUESTS_PER_MINUTE: {
    schema: values.count,
    default: '120',
    description:
      'Maximum number of requests per minute to the queues of pull subscriptions, for each program. Two requests read and acknowledge up to 20 notifications: the default reads 1,200 notifications per minute.',
    example: '120',
  },
  EARSHOT_ALERT_URL: {
    schema: exactUrl,
    secret: true,
    description:
      'URL to which the receiver sends alerts as JSON (POST). The field `text` is for incoming webhooks of chat systems. The URL is a secret: anybody who has the URL can post.',
    example: 'https://chat.example.org/hooks/abcdef',
  },
  EARSHOT_ALERT_COMMAND: {
    schema: values.commandLine,
    description:
      'Program that the receiver runs for each alert, with the alert as JSON on standard input. Spaces separate the arguments; no shell is used.',
    example: '/usr/local/bin/send-alert --urgent',
  },

  // Summaries
  EARSHOT_SUMMARY: {
    schema: z.enum(summaryRuleKinds),
    default: 'off',
    description:
      'Default of the option `summary` of each subscription in `earshot.config.ts`: `each` (one text per product), `digest` (one text per day) or `off`. Without a language model, earshot generates the texts from the product data.',
    example: 'digest',
  },
  EARSHOT_INFERENCE_URL: {
    schema: values.inferenceUrl,
    default: 'https://api-sherlock.cloudferro.com',
    description: 'URL of the inference service, without `/openai/v1`.',
    example: 'https://api-sherlock.cloudferro.com',
  },
  EARSHOT_INFERENCE_API_KEY: {
    schema: values.word,
    secret: true,
    description:
      'API key of your project at the inference service. The key and EARSHOT_INFERENCE_MODEL together enable summaries by a language model.',
    example: 'the-key-of-your-project',
  },
  EARSHOT_INFERENCE_MODEL: {
    schema: values.modelName,
    description:
      'Language model, as `<vendor>/<model_name>`. The model must be available to the project of the API key.',
    example: 'openai/gpt-oss-120b',
  },
  EARSHOT_SUMMARY_REQUESTS_PER_DAY: {
    schema: values.amount,
    default: '500',
    description:
      'Maximum number of requests to the inference service in any 24 hours. Additional summaries wait.',
    example: '500',
  },
  EARSHOT_SUMMARY_TOKENS_PER_DAY: {
    schema: values.amount,
    default: '500000',
    description: 'Maximum number of tokens, in prompts and answers, in any 24 hours.',
    example: '500000',
  },

  // Log
  EARSHOT_LOG_LEVEL: {
    schema: z.enum(['debug', 'info', 'warn', 'error']),
    default: 'info',
    description:
      'Minimum level of log lines. `debug` logs every notification. `info` logs the number of notifications every minute.',
    example: 'info',
  },
} as const satisfies Record<`EARSHOT_${string}`, Variable>;

export type VariableName = keyof typeof variables;

/** Value of a variable; undefined when it is not set and has no default. */
export type Value<Name extends VariableName> =
  | z.output<(typeof variables)[Name]['schema']>
  | ((typeof variables)[Name] extends { default: string } ? never : undefined);

/** Variables as entries. */
export const variableRows = Object.entries(variables) as [VariableName, Variable][];
