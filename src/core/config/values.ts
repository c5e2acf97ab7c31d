/** Schemas that parse the text of a variable, or a field of `earshot.config.ts`. */
import { resolve } from 'node:path';
import { z } from 'zod';
import type { Expression } from '../../filter/builder.ts';
import type { Retention } from '../../store/pruning/terms.ts';
import { exactUrl, pathPrefixForm } from '../http/network-address.ts';
import { dayUs, hourUs, weekUs } from '../terms/time-units.ts';

/** Adds a message that follows "NAME: ". */
function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue(message);
  return z.NEVER;
}

/** Quotes an item of a list, unless the list could contain a password, which may contain a comma. */
function quotedItem(list: string, item: string): string {
  return list.includes('@') ? 'an item' : `"${item}"`;
}

/** Parses `host:port`, with IPv6 addresses in brackets. */
export const listenAddress = z.string().transform((text, context) => {
  const match = /^(?:\[([0-9a-f:]+)\]|([^:[\]]+)):(\d{1,5})$/i.exec(text);
  const port = Number(match?.[3]);
  if (match !== null && port <= 65_535) return { host: match[1] ?? match[2] ?? '', port };
  return refuse(context, 'must be host:port, such as 0.0.0.0:8443 or [::]:8443');
});

/** Parses the same, or `off` as null. */
export const listenAddressOrOff = z
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
  const isSimple =
    url !== null && /^https?:$/.test(url.protocol) && url.href === url.origin + url.pathname;
  if (isSimple && (path === '' || pathPrefixForm.test(path))) return url.origin + path;
  const rule = 'must be an http or https URL, such as https://example.org/earshot';
  if (url === null || !/^https?:$/.test(url.protocol)) return refuse(context, rule);
  const fault = isSimple
    ? 'the path may contain letters, digits, -, ., _ and ~'
    : 'a user name, password, ? or # is not permitted';
  return refuse(context, `${rule}; ${fault}`);
});

/** Returns the origin of a web URL whose host could exist; null for any other text. */
function originOf(text: string): string | null {
  const url = URL.parse(text);
  const isWeb = url !== null && /^https?:$/.test(url.protocol) && /^[\w.:[\]-]+$/.test(url.host);
  return isWeb ? url.origin : null;
}

/** Parses origins, separated by commas, each exactly as browsers send it. */
export const origins = z.string().transform((text, context) => {
  const all = text.split(',').map((one) => one.trim());
  const [wrong] = all.filter((one) => originOf(one) !== one || one.includes('*'));
  if (wrong === undefined) return all;
  const fault = `${quotedItem(text, wrong)} is none${suggestion(wrong, originOf(wrong))}`;
  const rule = 'must be origins such as https://maps.example.org, separated by commas';
  return refuse(context, `${rule}; ${fault}`);
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
export const byteSize = z.string().transform((text, context) => {
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
  const wrong = ranges.find((range) => !addressRange.safeParse(range).success);
  if (wrong === undefined) return ranges;
  return refuse(
    context,
    `must be IP addresses or ranges such as 10.0.0.0/8; ${quotedItem(text, wrong)} is neither`,
  );
});

const ageUnitsUs: Readonly<Record<string, number>> = {
  h: hourUs,
  d: dayUs,
  w: weekUs,
};

/** Parses `365d`, `52w` or `36h` to microseconds. */
export const keptAge = z.string().transform((text, context) => {
  const match = /^(\d{1,5}) ?([hdw])$/.exec(text);
  const unitUs = ageUnitsUs[match?.[2] ?? ''];
  if (match !== null && unitUs !== undefined) return Number(match[1]) * unitUs;
  const hint = suggestion(text, ageLike(text));
  return refuse(context, `must be an age such as 365d, 52w or 36h${hint}`);
});

/** Parses `50GB` or `20GiB` to bytes. The unit is required, as a bare number is ambiguous. */
export const keptSize = z.string().transform((text, context) => {
  const size = /[kMGT]i?B?$/.test(text) ? byteSize.safeParse(text) : null;
  if (size?.success === true && size.data > 0) return size.data;
  const hint = suggestion(text, sizeLike(text));
  return refuse(context, `must be a size such as 50GB or 20GiB${hint}`);
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
      const what = age.success || size.success ? 'is a repeated limit' : 'is neither';
      const hint = suggestion(part, sizeLike(part) ?? ageLike(part));
      return refuse(
        context,
        `must be an age such as 365d, a size such as 50GB, or both, separated by a comma; ${quotedItem(text, part)} ${what}${hint}`,
      );
    }
  }
  const { ageUs, bytes } = minimumLimits;
  if ((found.ageUs ?? ageUs) >= ageUs && (found.bytes ?? bytes) >= bytes) return found;
  return refuse(context, 'must be an age of at least 1d, or a size of at least 100MB');
});

/** Returns the correct form of `365`, `365 days` or `1y`; null for anything else. */
function ageLike(text: string): string | null {
  const match = /^(\d{1,5}) ?(?:([hdwy])(?:ours?|ays?|eeks?|ears?)?)?$/i.exec(text);
  const unit = match?.[2]?.toLowerCase() ?? 'd';
  if (match === null) return null;
  return unit === 'y' ? `${Number(match[1]) * 365}d` : `${match[1]}${unit}`;
}

/** Returns the correct form of `50gb` or `50 Gb`; null for anything else, also `12m`, which may be months. */
function sizeLike(text: string): string | null {
  const match = /^([\d.]{1,10}) ?(?:([kmgt])(i)?b|([gt]))$/i.exec(text);
  const unit = (match?.[2] ?? match?.[4])?.toUpperCase().replace('K', 'k');
  return match === null ? null : `${match[1]}${unit}${match[3] === undefined ? '' : 'i'}B`;
}

function suggestion(text: string, like: string | null): string {
  return like === null || like === text ? '' : `. Did you mean ${like}?`;
}

/** Parses a filter of `earshot.config.ts`. An expression may come from another copy of this program. */
export const filterSchema = z
  .custom<string | Expression>(
    (value) =>
      typeof value === 'string' || z.looseObject({ tree: z.object() }).safeParse(value).success,
    'must be a string with a $filter expression, such as "Collection/Name eq \'SENTINEL-2\'", or an expression built with collection(…), and(…), …',
  )
  .transform(String);
