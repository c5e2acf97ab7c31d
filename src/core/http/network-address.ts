/** Network addresses: listen addresses, client addresses of requests, and networks of hosts. */

import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';

export interface ListenAddress {
  /** Name or address; IPv6 without brackets. */
  host: string;
  port: number;
}

/** Formats a host for use before `:port`: adds brackets to IPv6 addresses (RFC 3986, 3.2.2). */
export function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** Returns the loopback address for a wildcard address; other hosts unchanged. No brackets. */
export function loopbackOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

/** Returns the URL of a listener, for programs on this machine. */
export function localUrl({ host, port }: ListenAddress): string {
  return `http://${hostInUrl(loopbackOf(host))}:${port}`;
}

/** Returns the URL of the private listener, without a last slash; empty without one. */
export function consoleBase(console: { url?: string | undefined; listen: ListenAddress } | null) {
  return console === null ? '' : (console.url ?? localUrl(console.listen));
}

type Ip = ipaddr.IPv4 | ipaddr.IPv6;

/** Parses an address, IPv4 on an IPv6 socket as IPv4; null if it is invalid. */
function ipOf(text: string): Ip | null {
  // The zone is an interface of this machine (`fe80::1%eth0`), not part of the client address.
  const [bare = ''] = text.split('%');
  // ipaddr.js also accepts forms such as `127.1`, and reads the deprecated `::10.0.0.1` as a mapped address.
  return isIP(bare) === 0 || /^::\d+\./.test(bare) ? null : unmapped(ipaddr.parse(bare));
}

/** Returns the IPv4 address of an IPv4-mapped one (RFC 4291, 2.5.5.2). */
function unmapped(ip: Ip): Ip {
  return ip instanceof ipaddr.IPv6 && ip.range() === 'ipv4Mapped' ? ip.toIPv4Address() : ip;
}

/** Groups addresses of one host: an IPv4 address itself; for IPv6, where a host has a complete network, the /64. */
export function networkOf(address: string): string {
  const ip = ipOf(address);
  if (ip === null || ip.kind() === 'ipv4') return ip?.toString() ?? address;
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${ip}/64`)}/64`;
}

/** Maximum number of proxies to follow. */
const hopsMax = 32;
/** Maximum length of an entry; an IPv6 address with brackets, zone and port is shorter. */
const entryCharactersMax = 100;
/** Address with or without a port; an IPv6 address with a port must be in brackets. */
const entryShape = /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+)(?::\d{1,5})?|([\da-f:.]+))$/i;

/** Parts of a request that determine the client address. */
type AddressedRequest = Pick<IncomingMessage, 'headers'> & {
  socket: Pick<IncomingMessage['socket'], 'remoteAddress'>;
};

/**
 * Creates a function that returns the client address of a request, in canonical form: IPv4 on an IPv6
 * socket as IPv4. `trustedProxies` contains addresses and ranges (CIDR).
 *
 * Reads `X-Forwarded-For` only from trusted proxies. Each proxy appends the address of its client, so the
 * list is read from the right: the first address that is not a trusted proxy is the client; entries left of
 * it were written by the client. An invalid entry ends the reading, and the previous address is used.
 * `Forwarded` (RFC 7239) is ignored: nginx and Caddy do not send it, and two headers can disagree.
 */
export function createClientAddress(
  trustedProxies: readonly string[],
): (incoming: AddressedRequest) => string {
  const trusted = trustedProxies.map((range): [Ip, number] => {
    const [address = '', prefix] = range.split('/');
    const parsed = ipaddr.parse(address);
    const ip = unmapped(parsed);
    const bitsMax = 8 * ip.toByteArray().length;
    // A mapped range such as `::ffff:10.0.0.0/104` counts the bits before the IPv4 address.
    const mappedBits = 8 * parsed.toByteArray().length - bitsMax;
    return [ip, prefix === undefined ? bitsMax : Math.max(0, Number(prefix) - mappedBits)];
  });
  const isTrusted = (ip: Ip) =>
    trusted.some(([range, bits]) => ip.kind() === range.kind() && ip.match(range, bits));
  return ({ headers, socket }) => {
    let client = ipOf(socket.remoteAddress ?? '');
    if (client === null) return 'unknown';
    // Node joins several headers of this name with commas, in their order.
    let rest = String(headers['x-forwarded-for'] ?? '');
    for (let hops = 0; hops < hopsMax && rest !== '' && isTrusted(client); hops += 1) {
      const comma = rest.lastIndexOf(',');
      const address = addressIn(rest.slice(comma + 1));
      if (address === null) break;
      client = address;
      rest = rest.slice(0, Math.max(0, comma));
    }
    return client.toString();
  };
}

function addressIn(entry: string): Ip | null {
  if (entry.length > entryCharactersMax) return null;
  const [, bracketed, four, six] = entryShape.exec(entry.trim()) ?? [];
  if (bracketed !== undefined && isIP(bracketed) !== 6) return null;
  return ipOf(bracketed ?? four ?? six ?? '');
}

/** A path without dot segments, empty segments and escapes; without a slash at the end. */
export const pathPrefixForm = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)+$/;

const urlForm = 'must be an https URL, such as https://hooks.example.org/earshot';
/** An https URL, or http for this machine, without credentials; otherwise unchanged. */
export const exactUrl = z.string(urlForm).transform((text, context) => {
  const url = URL.parse(text);
  if (url === null || !(url.protocol === 'https:' || isLoopbackHttp(url))) {
    context.addIssue(
      'must be an https URL; http is allowed only for this machine (127.0.0.1, localhost)',
    );
    return z.NEVER;
  }
  if (url.username + url.password + url.hash === '') return url.href;
  context.addIssue('must not contain a user name, password or #');
  return z.NEVER;
});

/**
 * Parses the URL of a PostgreSQL database to one URL per server: several servers, such as a primary and its standby, are
 * separated by commas. Other hosts than this one are reached with TLS unless the URL sets `sslmode`.
 */
export const databaseUrls = z.string().transform((text, context) => {
  const match = /^postgres(?:ql)?:\/\/([^@/]*@)?([^/@?]*)(\/[^/?]+)(\?.*)?$/.exec(text);
  const [, login = '', hosts = '', database = '', query = ''] = match ?? [];
  const urls = hosts
    .split(',')
    .map((host) => URL.parse(`postgres://${login}${host}${database}${query}`));
  if (match === null || urls.includes(null) || !isDecodable(`${login}${database}`)) {
    context.addIssue(
      'must be postgres://user:password@host:5432/database (in the password, / is written %2F, @ %40, : %3A, # %23, ? %3F, % %25)',
    );
    return z.NEVER;
  }
  return urls.flatMap((url) => {
    if (url === null) return [];
    if (!isLocalDatabase(url) && !url.searchParams.has('sslmode'))
      url.searchParams.set('sslmode', 'verify-full');
    return [url.href];
  });
});

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** True for a database on this machine: a socket, or a loopback address. */
export function isLocalDatabase({ hostname, searchParams }: URL): boolean {
  // The parameter replaces the host.
  const host = searchParams.get('host') ?? hostname.replace(/^\[(.*)\]$/, '$1');
  return host === '' || host.startsWith('/') || isLoopbackHost(host);
}

function isLoopbackHttp({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && isLoopbackHost(hostname.replace(/^\[(.*)\]$/, '$1'));
}

/** Returns the host of a URL, an IPv6 address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** True for `localhost` and the addresses of this machine's own network; IPv6 without brackets. */
export function isLoopbackHost(host: string): boolean {
  return isIP(host) === 0 ? host === 'localhost' : ipaddr.process(host).range() === 'loopback';
}
