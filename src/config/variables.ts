/** The one table of variables: what each is called, means, holds and defaults to. */
import { z } from 'zod';
import { listenAddress, publicUrl } from './value-schemas.ts';

/** One row of the table. The schema reads the variable's text; `default` is a text too. */
export interface Variable {
  name: `EARSHOT_${string}`;
  schema: z.ZodType;
  default?: string;
  /** May also be given as a file, named by the variable with `_FILE` appended. */
  secret?: true;
  /** One or two sentences for `docs/configuration.md`. */
  description: string;
  /** A value as a user would write it. */
  example: string;
}

const variable = <const Row extends Variable>(row: Row) => row;

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
  dataDir: variable({
    name: 'EARSHOT_DATA_DIR',
    schema: z.string(),
    default: './data',
    description: 'The folder that holds the database and the secrets that earshot makes itself.',
    example: '/var/lib/earshot',
  }),
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
    schema: z.enum(['files', 'off']),
    default: 'files',
    description:
      '`files`: HTTPS with the certificate and key named below. `off`: plain HTTP, only behind a proxy that speaks HTTPS.',
    example: 'files',
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
