/** Schemas that read a variable's text into a value. Their errors complete "NAME: …". */
import { BlockList, isIP } from 'node:net';
import { resolve } from 'node:path';
import { z } from 'zod';

/** `host:port`, with IPv6 addresses in brackets, to its two parts. */
export const listenAddress = z.string().transform((text, context) => {
  const match = /^(?:\[([0-9a-f:]+)\]|([^:[\]]+)):(\d{1,5})$/i.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    context.addIssue('must be host:port, such as 0.0.0.0:8443 or [::]:8443');
    return z.NEVER;
  }
  return { host: match[1] ?? match[2] ?? '', port };
});

/** The same, or `off` to null. */
export const listenAddressOrOff = z
  .string()
  .transform((text) => (text === 'off' ? null : text))
  .pipe(listenAddress.nullable());

/** An https URL without path, to its origin. */
export const publicUrl = z.string().transform((text, context) => {
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'https:') {
    context.addIssue('must be an https URL, such as https://earshot.example.org:8443');
    return z.NEVER;
  }
  if (
    url.username + url.password !== '' ||
    url.pathname !== '/' ||
    url.search !== '' ||
    url.hash !== ''
  ) {
    context.addIssue('must hold nothing but https://, the name and perhaps the port');
    return z.NEVER;
  }
  return url.origin;
});

const urlForm = 'must be an https URL, such as https://hooks.example.org/earshot';
/** An https URL, or http on this machine, without credentials: whatever else is in it stays. */
export const exactUrl = z.string(urlForm).transform((text, context) => {
  const url = URL.parse(text);
  if (url === null || !(url.protocol === 'https:' || isLoopbackHttp(url))) {
    context.addIssue('must be an https URL; http only to this machine (127.0.0.1, localhost)');
    return z.NEVER;
  }
  if (url.username + url.password !== '' || url.hash !== '') {
    context.addIssue('must hold no user name, password or #');
    return z.NEVER;
  }
  return url.href;
});

/** The same for a service below which paths are asked: without ?, and without its last slash. */
export const outboundUrl = exactUrl.transform((href, context) => {
  if (!href.includes('?')) return href.replace(/\/+$/, '');
  context.addIssue('must hold no ?');
  return z.NEVER;
});

/** An outbound URL; the path of the API is taken off, as people copy it along. */
export const catalogueUrl = outboundUrl.transform((url) => url.replace(/\/odata(\/v1)?$/, ''));

/** The same; the path of the chat completions is taken off, as people copy it along. */
export const inferenceUrl = outboundUrl.transform((url) =>
  url.replace(/\/openai(\/v1(\/chat\/completions)?)?$/, ''),
);

/** `<vendor>/<model_name>` (specification, inference service: Chat completion request). */
export const modelName = z
  .string()
  .max(200, 'is too long')
  .regex(
    /^[\x21-\x2e\x30-\x7e]+(\/[\x21-\x2e\x30-\x7e]+)+$/,
    'must have the form <vendor>/<model_name>, without blanks',
  );

/**
 * A folder, to its absolute path: a receiver must not lose its data when the folder that it was started
 * in is moved or deleted.
 */
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

const byteUnits = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** A size such as `256MiB`, `1.5GB` or `0`, to bytes. */
export const byteSize = z.string().transform((text, context) => {
  const match = /^(\d{1,9}(?:\.\d{1,3})?) ?([kMGT]|[KMGT]i)?B?$/.exec(text);
  const unit = Object.entries(byteUnits).find(([name]) => name === (match?.[2] ?? ''));
  if (match === null || unit === undefined) {
    context.addIssue('must be a size, such as 256MiB or 1.5GB');
    return z.NEVER;
  }
  return Math.round(Number(match[1]) * unit[1]);
});

/** A program and its arguments with blanks between them, to a list. */
export const commandLine = z
  .string()
  .transform((text) => text.split(/\s+/).filter((word) => word !== ''))
  .refine(([program]) => program !== undefined, 'must name a program');

const addressRange = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]);

/** Addresses and ranges (CIDR) with commas between them, to a list. */
export const addressRanges = z.string().transform((text, context) => {
  const ranges = text.split(',').map((range) => range.trim());
  const wrong = ranges.filter((range) => !addressRange.safeParse(range).success);
  if (wrong.length > 0) {
    context.addIssue(`must be IP addresses or ranges such as 10.0.0.0/8; "${wrong[0]}" is none`);
    return z.NEVER;
  }
  return ranges;
});

function isLoopbackHttp({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && isLoopbackHost(hostname.replace(/^\[(.*)\]$/, '$1'));
}

/** True for `localhost` and the addresses of this machine's own network; IPv6 without brackets. */
export function isLoopbackHost(host: string): boolean {
  if (isIP(host) === 0) return host === 'localhost';
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8);
  loopback.addAddress('::1', 'ipv6');
  return loopback.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4');
}
