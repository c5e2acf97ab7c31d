/** Schemas that parse the text of a variable, or a field of `earshot.config.ts`; variables of the receiver itself. */

import { resolve } from 'node:path';
import { z } from 'zod';
import type { Expression } from '../../filter/builder.ts';
import type { Retention } from '../../store/pruning/terms.ts';
import { exactUrl, pathPrefixForm } from '../http/network-address.ts';
import { dayUs, durationUs } from '../terms/dates.ts';
import { defineVariables } from './load.ts';

/** Adds a message that follows "NAME: ". */
function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue(message);
  return z.NEVER;
}

/** Parses `host:port`, with IPv6 addresses in brackets. */
export const listenAddress = z.string().transform((text, context) => {
  const match = /^(?:\[([0-9a-f:]+)\]|([^:[\]]+)):(\d{1,5})$/i.exec(text);
  const port = Number(match?.[3]);
  if (match !== null && port <= 65_535) return { host: match[1] ?? match[2] ?? '', port };
  return refuse(context, 'must be host:port, such as 0.0.0.0:8443 or [::]:8443');
});

/** Parses the same, or `off` as null. */
const listenAddressOrOff = z
  .string()
  .transform((text) => (text === 'off' ? null : text))
  .pipe(listenAddress.nullable());

export const onOrOff = z.enum(['on', 'off']).transform((text) => text === 'on');

/** A secret that is sent in a header. */
export const word = z.string().regex(/^[\x21-\x7e]+$/, 'must be one word without spaces');

/** Minimum length of passwords that users choose, in characters. */
export const passwordLengthMin = 12;

/** A password of the endpoint. Guesses are not limited: valid credentials are always accepted. */
export const endpointPassword = z
  .string()
  .min(passwordLengthMin, `must have at least ${passwordLengthMin} characters`);

/** Parses an https URL without a path to its origin. */
export const publicUrl = z.string().transform((text, context) => {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:')
    return refuse(context, 'must be an https URL, such as https://earshot.example.org:8443');
  const { username, password, pathname, search, hash, origin } = url;
  if (username + password + search + hash === '' && pathname === '/') return origin;
  return refuse(context, 'must contain only https://, the host name and optionally the port');
});

/** Parses the URL of the private listener, with or without a path; removes the slash at the end. */
export const consoleUrl = z.string().transform((text, context) => {
  const url = URL.parse(text);
  const path = url?.pathname.replace(/\/$/, '') ?? '';
  const isWeb = url !== null && /^https?:$/.test(url.protocol);
  const isSimple = isWeb && url.href === url.origin + url.pathname;
  if (isSimple && (path === '' || pathPrefixForm.test(path))) return url.origin + path;
  return refuse(
    context,
    'must be an http or https URL, such as https://example.org/earshot, without user name, password, ? and #; the path may contain letters, digits, -, ., _ and ~',
  );
});

/** Parses origins, separated by commas, each exactly as browsers send it. */
export const origins = z.string().transform((text, context) => {
  const all = text.split(',').map((one) => one.trim());
  const isOrigin = (one: string) =>
    /^https?:\/\/[\w.:[\]-]+$/.test(one) && URL.parse(one)?.origin === one;
  if (all.every(isOrigin)) return all;
  return refuse(context, 'must be origins such as https://maps.example.org, separated by commas');
});

/** Parses the base URL of a service: no query string; removes trailing slashes. */
export const outboundUrl = exactUrl
  .refine((href) => !href.includes('?'), 'must not contain ?')
  .transform((href) => href.replace(/\/+$/, ''));

/** Parses an outbound URL and removes the path of the API, which users often copy. */
export const catalogueUrl = outboundUrl.transform((url) => url.replace(/\/odata(\/v1)?$/, ''));

/** Parses an outbound URL and removes the path of chat completions, which users often copy. */
export const inferenceUrl = outboundUrl.transform((url) =>
  url.replace(/\/openai(\/v1(\/chat\/completions)?)?$/, ''),
);

/** `<vendor>/<model_name>` (specification, inference service: Chat completion request). */
export const modelName = z
  .string()
  .max(200, 'is too long')
  .regex(
    /^[\x21-\x2e\x30-\x7e]+(\/[\x21-\x2e\x30-\x7e]+)+$/,
    'must have the form <vendor>/<model_name>, without spaces',
  );

/** Resolves a directory to its absolute path, as the working directory of a receiver may be moved later. */
export const directory = z.string().transform((path) => resolve(path));

/** A whole number of at least 1. */
export const count = z
  .string()
  .regex(/^[1-9]\d{0,5}$/, 'must be a whole number, 1 or more')
  .transform(Number);

/** A whole number of at least 0. */
export const amount = z
  .string()
  .regex(/^(0|[1-9]\d{0,8})$/, 'must be a whole number, 0 or more, of at most nine digits')
  .transform(Number);

const byteUnits: Readonly<Record<string, number>> = {
  ...{ '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 },
};

/** Parses a size such as `256MiB`, `1.5GB` or `0` to bytes. */
const byteSize = z.string().transform((text, context) => {
  const match = /^(\d{1,9}(?:\.\d{1,3})?) ?([kMGT]|[KMGT]i)?B?$/.exec(text);
  const unit = byteUnits[match?.[2] ?? ''];
  if (match !== null && unit !== undefined) return Math.round(Number(match[1]) * unit);
  return refuse(context, 'must be a size, such as 256MiB or 1.5GB');
});

/** Parses a program and its arguments, separated by spaces. */
export const commandLine = z
  .string()
  .transform((text) => text.split(/\s+/).filter((part) => part !== ''))
  .refine(([program]) => program !== undefined, 'must name a program');

const addressRange = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]);

/** Parses IP addresses and ranges (CIDR), separated by commas. */
export const addressRanges = z.string().transform((text, context) => {
  const ranges = text.split(',').map((range) => range.trim());
  if (ranges.every((range) => addressRange.safeParse(range).success)) return ranges;
  return refuse(context, 'must be IP addresses or ranges such as 10.0.0.0/8, separated by commas');
});

const ageForm = 'must be an age in hours, days or weeks, such as 36h, 365d or 52w';

/** Parses `365d`, `52w` or `36h` to microseconds. */
export const keptAge = z.string(ageForm).transform((text, context) => {
  const us = /^\d{1,5} ?[hdw]$/.test(text) ? durationUs(text.replace(' ', '')) : null;
  return us ?? refuse(context, ageForm);
});

/** Parses a maximum time from sensing to publication, such as `30d`, to microseconds. */
export const maximumAge = keptAge.refine((us) => us > 0, 'must be longer than 0');

/** Parses `50GB` or `20GiB` to bytes. The unit is required, as a bare number is ambiguous. */
export const keptSize = z.string().transform((text, context) => {
  const size = /[kMGT]i?B?$/.test(text) ? byteSize.safeParse(text) : null;
  if (size?.success === true && size.data > 0) return size.data;
  return refuse(context, 'must be a size such as 50GB or 20GiB');
});

/** Minimum limits: smaller ones are probably mistakes, and pruning cannot be undone. */
const minimumLimits = { ageUs: dayUs, bytes: 100e6 };

/** Parses `365d`, `50GB`, or both, separated by a comma. */
export const kept = z.string().transform((text, context): Retention => {
  const found: Retention = { ageUs: null, bytes: null };
  for (const part of text.split(',').map((one) => one.trim())) {
    const [age, size] = [keptAge.safeParse(part), keptSize.safeParse(part)];
    if (age.success && found.ageUs === null) found.ageUs = age.data;
    else if (size.success && found.bytes === null) found.bytes = size.data;
    else {
      return refuse(
        context,
        'must be an age such as 365d, a size such as 50GB, or both, separated by a comma',
      );
    }
  }
  const { ageUs, bytes } = minimumLimits;
  if ((found.ageUs ?? ageUs) >= ageUs && (found.bytes ?? bytes) >= bytes) return found;
  return refuse(context, 'must be an age of at least 1d, or a size of at least 100MB');
});

/** Parses a filter of `earshot.config.ts`. An expression may come from another copy of this program. */
export const filterSchema = z
  .custom<string | Expression>(
    (value) =>
      typeof value === 'string' || z.looseObject({ tree: z.object() }).safeParse(value).success,
    'must be a string with a $filter expression, such as "Collection/Name eq \'SENTINEL-2\'", or an expression built with collection(…), and(…), …',
  )
  .transform(String);

/** Variables of the receiver itself; features have theirs in their settings. */
export const variables = defineVariables({
  EARSHOT_PUBLIC_URL: {
    schema: publicUrl,
    description:
      'The https URL at which the catalogue reaches this receiver, with the port if the port is not 443.',
    example: 'https://earshot.example.org:8443',
  },
  EARSHOT_LISTEN: {
    schema: listenAddress,
    default: '0.0.0.0:8443',
    description: 'Address and port of the public listener.',
    example: '0.0.0.0:8443',
  },
  EARSHOT_CONSOLE_LISTEN: {
    schema: listenAddressOrOff,
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
    schema: consoleUrl,
    description:
      'URL at which users reach the private listener through a reverse proxy; it may have a path. All links start with it. By default, they have the address of the request.',
    example: 'https://example.org/earshot',
  },
  EARSHOT_CONSOLE_ORIGINS: {
    schema: origins,
    description:
      'Origins of web pages that may read `/api`, `/odata` and `/stac` in a browser (CORS), separated by commas. By default, only pages of the private listener may.',
    example: 'https://maps.example.org, http://localhost:5173',
  },
  EARSHOT_DATA_DIR: {
    schema: directory,
    default: './data',
    description: 'The data directory, for the database and for the secrets that earshot creates.',
    example: '/var/lib/earshot',
  },
  EARSHOT_DISK_RESERVE: {
    schema: byteSize,
    description:
      'Minimum free space on the disk of the data directory. With less free space, the receiver refuses notifications (503). The default is 256 MiB, or 5 % of a disk that is smaller than 5 GiB, but at least 8 MiB. `0` disables the limit.',
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
    schema: endpointPassword,
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
    schema: addressRanges,
    description:
      'IP addresses or ranges of trusted reverse proxies, separated by commas. The receiver accepts `X-Forwarded-For` only from these proxies.',
    example: '127.0.0.1, ::1',
  },
  EARSHOT_CATALOGUE_URL: {
    schema: catalogueUrl,
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
