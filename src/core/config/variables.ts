/** Variables of the receiver itself; features have theirs in their settings. */
import { z } from 'zod';
import { defineVariables } from './load.ts';
import * as values from './values.ts';

export const variables = defineVariables({
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
  EARSHOT_TLS: {
    schema: z.enum(['files', 'acme', 'off']),
    default: 'files',
    description:
      '`files`: HTTPS with EARSHOT_TLS_CERT and EARSHOT_TLS_KEY. `acme`: HTTPS; earshot obtains and renews the certificate automatically. `off`: plain HTTP, only behind a reverse proxy that terminates HTTPS.',
    example: 'acme',
  },
  EARSHOT_TLS_CERT: {
    schema: z.string(),
    isTrusted: true,
    description:
      'PEM file with the certificate and the chain. The receiver reloads a changed file automatically.',
    example: '/etc/letsencrypt/live/earshot.example.org/fullchain.pem',
  },
  EARSHOT_TLS_KEY: {
    schema: z.string(),
    description: 'PEM file with the private key of the certificate.',
    example: '/etc/letsencrypt/live/earshot.example.org/privkey.pem',
  },
  EARSHOT_TRUSTED_PROXIES: {
    schema: values.addressRanges,
    description:
      'IP addresses or ranges of trusted reverse proxies, separated by commas. The receiver accepts `X-Forwarded-For` only from these proxies.',
    example: '127.0.0.1, ::1',
  },
  EARSHOT_CATALOGUE_URL: {
    schema: values.catalogueUrl,
    default: 'https://catalogue.dataspace.copernicus.eu',
    description: 'URL of the catalogue, without `/odata/v1`.',
    example: 'https://datahub.creodias.eu',
  },
  EARSHOT_LOG_LEVEL: {
    schema: z.enum(['debug', 'info', 'warn', 'error']),
    default: 'info',
    description:
      'Minimum level of log lines. `debug` logs every notification. `info` logs the number of notifications every minute.',
    example: 'info',
  },
});
