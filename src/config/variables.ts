/** The one table of variables, by section: name, meaning, schema, default. */
import { z } from 'zod';
import { summaryRuleKinds } from '../domain/summaries.ts';
import { exactUrl } from '../http/network-address.ts';
import * as values from './values.ts';

/** One row. The schema reads the variable's text; `default` is a text too. */
export interface Variable {
  schema: z.ZodType;
  default?: string;
  /** May also be given as a file, named by the variable with `_FILE` appended. */
  secret?: true;
  /** One or two sentences for `docs/reference/configuration.md`. */
  description: string;
  /** A value as a user would write it. */
  example: string;
}

export const variables = {
  // Listeners
  EARSHOT_PUBLIC_URL: {
    schema: values.publicUrl,
    description:
      'The https address under which the catalogue reaches this receiver, with the port if it is not 443.',
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
      'Address and port of the private listener, which answers queries and hands out health and metrics (plain HTTP), or `off`. Other addresses than those of this machine itself need EARSHOT_CONSOLE_PASSWORD.',
    example: '127.0.0.1:8080',
  },
  EARSHOT_CONSOLE_PASSWORD: {
    schema: z.string(),
    secret: true,
    description: 'The password of the private listener (Basic Auth); the user name is `earshot`.',
    example: 'another-long-random-text',
  },

  // Data directory: index, free space, pruning, compaction, backups
  EARSHOT_INDEX: {
    schema: values.onOrOff,
    default: 'on',
    description:
      'Whether the receiver keeps the product index, which queries by filter need. With `off` it can still be made by `earshot index rebuild`.',
    example: 'on',
  },
  EARSHOT_DATA_DIR: {
    schema: values.directory,
    default: './data',
    description: 'The folder that holds the database and the secrets that earshot makes itself.',
    example: '/var/lib/earshot',
  },
  EARSHOT_DISK_RESERVE: {
    schema: values.byteSize,
    description:
      'How much of the disk of the data directory is kept free: with less, notifications are refused (503) until there is room again. 256 MiB unless told otherwise, and on a disk below 5 GiB a twentieth of it. 0 for no such limit.',
    example: '1GiB',
  },
  EARSHOT_KEEP: {
    schema: values.kept,
    description:
      'What of the log the receiver keeps: notifications up to an age (`365d`), as many of the newest as fit a size (`50GB`), or both with a comma. Once a day it removes the others for good. Everything is kept unless told.',
    example: '365d,50GB',
  },
  EARSHOT_COMPACT: {
    schema: values.onOrOff,
    default: 'on',
    description:
      'Whether the receiver compacts the log by itself, every hour, while nothing waits to be stored. `earshot compact` works either way.',
    example: 'on',
  },
  EARSHOT_BACKUP_DIR: {
    schema: values.directory,
    description:
      'The folder into which the receiver puts backups by itself, best on another disk; one receiver, one folder. None are made unless it is set. The first backup creates the folder. They hold secrets, too, and are readable by their owner alone.',
    example: '/mnt/backups/earshot',
  },
  EARSHOT_BACKUP_EVERY: {
    schema: values.count,
    default: '24',
    description: 'Hours from one backup to the next.',
    example: '24',
  },
  EARSHOT_BACKUP_KEEP: {
    schema: values.count,
    default: '7',
    description:
      'How many backups stay in that folder. Older ones are removed when a new one was made and checked.',
    example: '7',
  },

  // Credentials of the endpoint
  EARSHOT_ENDPOINT_USERNAME: {
    schema: z.string().refine((name) => !name.includes(':'), {
      error: 'a user name cannot hold a colon (RFC 7617)',
    }),
    description: 'The user name with which the catalogue logs in here (Basic Auth).',
    example: 'catalogue',
  },
  EARSHOT_ENDPOINT_PASSWORD: {
    schema: z.string(),
    secret: true,
    description: 'The password that belongs to it. Use another one than that of your account.',
    example: 'a-long-random-text',
  },

  // HTTPS
  EARSHOT_TLS: {
    schema: z.enum(['files', 'acme', 'off']),
    default: 'files',
    description:
      '`files`: HTTPS with the certificate and key named below. `acme`: earshot gets and renews its certificate itself. `off`: plain HTTP, only behind a proxy that speaks HTTPS.',
    example: 'acme',
  },
  EARSHOT_TLS_CERT: {
    schema: z.string(),
    description:
      'File with the certificate and its chain, PEM. Read again by itself when it changes.',
    example: '/etc/letsencrypt/live/earshot.example.org/fullchain.pem',
  },
  EARSHOT_TLS_KEY: {
    schema: z.string(),
    description: 'File with the private key of the certificate, PEM.',
    example: '/etc/letsencrypt/live/earshot.example.org/privkey.pem',
  },
  EARSHOT_ACME_DIRECTORY: {
    schema: exactUrl,
    default: 'https://acme-v02.api.letsencrypt.org/directory',
    description:
      "The directory URL of the certificate authority (ACME, RFC 8555). Let's Encrypt unless told otherwise.",
    example: 'https://acme-v02.api.letsencrypt.org/directory',
  },
  EARSHOT_ACME_EMAIL: {
    schema: z.email('must be an e-mail address'),
    description: 'Where the authority may write to. Some ask for it, some take none.',
    example: 'me@example.org',
  },
  EARSHOT_ACME_AGREE: {
    schema: z.literal('yes', "must be yes, which means: I agree to the authority's terms"),
    description:
      "`yes`: you agree to the authority's terms of service. `earshot certificate test` shows where they stand.",
    example: 'yes',
  },
  EARSHOT_ACME_CHALLENGE: {
    schema: z.enum(['http-01', 'tls-alpn-01']),
    default: 'http-01',
    description:
      'How the authority checks that the name is yours. `http-01`: it asks port 80 of this host. `tls-alpn-01`: it asks port 443, which must lead to EARSHOT_LISTEN.',
    example: 'http-01',
  },
  EARSHOT_ACME_HTTP_LISTEN: {
    schema: values.listenAddress,
    default: '0.0.0.0:80',
    description:
      'Address and port on which http-01 challenges are answered, and nothing else. The authority reaches it as port 80.',
    example: '0.0.0.0:80',
  },
  EARSHOT_ACME_CA: {
    schema: z.string(),
    description:
      "PEM file of authorities that the certificate authority's own HTTPS is checked against, besides the system's. For a private authority.",
    example: './private-authority.pem',
  },
  EARSHOT_ACME_EAB_KEY_ID: {
    schema: z.string(),
    description: 'External account binding: the key id, from an authority that asks for it.',
    example: 'kid-1',
  },
  EARSHOT_ACME_EAB_HMAC_KEY: {
    schema: z.string().regex(/^[\w+/-]+=*$/, 'must be base64url text, as the authority gave it'),
    secret: true,
    description: 'The key (base64url) that belongs to it.',
    example: 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W',
  },
  EARSHOT_TRUSTED_PROXIES: {
    schema: values.addressRanges,
    description:
      'Addresses or ranges of the proxies in front, with commas between them. `X-Forwarded-For` is believed from these alone.',
    example: '127.0.0.1, ::1',
  },
  EARSHOT_PROBE_CA: {
    schema: z.string(),
    description:
      'PEM file of authorities to trust besides the public ones when earshot looks at its own endpoint. For tests: the catalogue trusts public authorities only.',
    example: './authority.pem',
  },

  // Catalogue and account
  EARSHOT_CATALOGUE_URL: {
    schema: values.catalogueUrl,
    default: 'https://catalogue.dataspace.copernicus.eu',
    description: 'The catalogue, without `/odata/v1`.',
    example: 'https://datahub.creodias.eu',
  },
  EARSHOT_TOKEN_URL: {
    schema: values.outboundUrl,
    default:
      'https://identity.dataspace.copernicus.eu/auth/realms/CDSE/protocol/openid-connect/token',
    description: 'The token endpoint of the identity provider.',
    example:
      'https://identity.dataspace.copernicus.eu/auth/realms/CDSE/protocol/openid-connect/token',
  },
  EARSHOT_CLIENT_ID: {
    schema: z.string(),
    default: 'cdse-public',
    description: 'The client that tokens are asked for as (OAuth 2.0 client id).',
    example: 'cdse-public',
  },
  EARSHOT_ACCOUNT_USERNAME: {
    schema: z.string(),
    description: 'Your account at the catalogue, for registering and maintaining subscriptions.',
    example: 'me@example.org',
  },
  EARSHOT_ACCOUNT_PASSWORD: {
    schema: z.string(),
    secret: true,
    description: 'Its password.',
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
      'For accounts with two-factor login: the shared secret that the authenticator app was given (base32), or one six-digit code, which is good for half a minute.',
    example: 'JBSWY3DPEHPK3PXP',
  },
  EARSHOT_ACCESS_TOKEN: {
    schema: values.word,
    secret: true,
    description:
      'An access token to be used as it is, instead of user name and password. It ends after minutes, so maintenance cannot live on it.',
    example: 'eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjB9.c2ln',
  },
  EARSHOT_SUBSCRIPTIONS_RUNNING_MAX: {
    schema: values.count,
    default: '2',
    description: 'How many subscriptions of an account the catalogue lets run.',
    example: '2',
  },
  EARSHOT_SUBSCRIPTIONS_MAX: {
    schema: values.count,
    default: '10',
    description: 'How many subscriptions the catalogue lets an account have, paused ones included.',
    example: '10',
  },

  // Completeness and alerts
  EARSHOT_RECONCILE: {
    schema: values.onOrOff,
    default: 'on',
    description:
      'Whether the receiver compares the log with the catalogue by itself, and writes what is missing into it. `earshot reconcile` works either way.',
    example: 'on',
  },
  EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: {
    schema: values.count,
    default: '60',
    description:
      'How many requests for lists of products the catalogue gets in a minute at the most, one after the other. One brings up to 1,000 products.',
    example: '60',
  },
  EARSHOT_ALERT_URL: {
    schema: exactUrl,
    secret: true,
    description:
      'Where alerts are posted as JSON, with a `text` that incoming webhooks of chat systems show. A secret, as such addresses let anybody post.',
    example: 'https://chat.example.org/hooks/abcdef',
  },
  EARSHOT_ALERT_COMMAND: {
    schema: values.commandLine,
    description:
      'A program that is run for each alert, with the same JSON on its standard input; arguments follow with blanks between them, no shell reads them.',
    example: '/usr/local/bin/tell-me --urgent',
  },

  // Summaries
  EARSHOT_SUMMARY: {
    schema: z.enum(summaryRuleKinds),
    default: 'off',
    description:
      'What is told in words, for subscriptions whose `summary` in `earshot.config.ts` does not say so: `each` product, a `digest` of each day, or nothing. Without a model the texts are plain ones made from the facts.',
    example: 'digest',
  },
  EARSHOT_INFERENCE_URL: {
    schema: values.inferenceUrl,
    default: 'https://api-sherlock.cloudferro.com',
    description: 'The inference service that texts are asked of, without `/openai/v1`.',
    example: 'https://api-sherlock.cloudferro.com',
  },
  EARSHOT_INFERENCE_API_KEY: {
    schema: values.word,
    secret: true,
    description:
      'The API key of your project at the inference service. With EARSHOT_INFERENCE_MODEL it lets a language model write the texts.',
    example: 'the-key-of-your-project',
  },
  EARSHOT_INFERENCE_MODEL: {
    schema: values.modelName,
    description:
      'The language model, `<vendor>/<model_name>`: one that is available to the project of the key.',
    example: 'openai/gpt-oss-120b',
  },
  EARSHOT_SUMMARY_REQUESTS_PER_HOUR: {
    schema: values.amount,
    default: '60',
    description:
      'How many requests the inference service gets in any hour at the most. What exceeds it waits.',
    example: '60',
  },
  EARSHOT_SUMMARY_REQUESTS_PER_DAY: {
    schema: values.amount,
    default: '500',
    description: 'The same in any 24 hours.',
    example: '500',
  },
  EARSHOT_SUMMARY_TOKENS_PER_DAY: {
    schema: values.amount,
    default: '500000',
    description:
      'How many tokens, of questions and answers together, are spent in any 24 hours at the most.',
    example: '500000',
  },

  // Log
  EARSHOT_LOG_LEVEL: {
    schema: z.enum(['debug', 'info', 'warn', 'error']),
    default: 'info',
    description:
      'How much is logged. `debug` adds a line for each notification; `info` sums them up every minute.',
    example: 'info',
  },
} as const satisfies Record<`EARSHOT_${string}`, Variable>;

export type VariableName = keyof typeof variables;

/** What a variable holds once it is read; undefined where it is not set and has no default. */
export type Value<Name extends VariableName> =
  | z.output<(typeof variables)[Name]['schema']>
  | ((typeof variables)[Name] extends { default: string } ? never : undefined);

/** Every row, for code that treats all alike. */
export const variableRows = Object.entries(variables) as [VariableName, Variable][];
