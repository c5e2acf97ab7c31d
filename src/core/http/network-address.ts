/** Network addresses: listen addresses, client addresses of requests, and networks of hosts. */

import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6, SocketAddress } from 'node:net';
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

/** Groups addresses of one host: an IPv4 address itself; for IPv6, where a host has a complete network, the /64. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const last = tail === undefined ? [] : tail.split(':');
  const missing = tail === undefined ? 0 : Math.max(0, 8 - groups.length - last.length);
  const filled = [...groups, ...Array<string>(missing).fill('0'), ...last];
  return `${filled.slice(0, 4).join(':')}::/64`;
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
  const trusted = blockListOf(trustedProxies);
  const isTrusted = (address: string) => trusted.check(address, familyOf(address));
  return ({ headers, socket }) => {
    let client = canonical(socket.remoteAddress ?? '');
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
    return client;
  };
}

function blockListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/');
    if (prefix === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(prefix), familyOf(address));
  }
  return list;
}

function addressIn(entry: string): string | null {
  if (entry.length > entryCharactersMax) return null;
  const [, bracketed, four, six] = entryShape.exec(entry.trim()) ?? [];
  if (bracketed !== undefined && isIP(bracketed) !== 6) return null;
  return canonical(bracketed ?? four ?? six ?? '');
}

/** Canonical form of an address; null if it is invalid. */
function canonical(text: string): string | null {
  // The zone is an interface of this machine (`fe80::1%eth0`), not part of the client address.
  const [bare = ''] = text.split('%');
  if (isIP(bare) === 0) return null;
  const { address } = new SocketAddress({ address: bare, family: familyOf(bare) });
  return /^::ffff:([\d.]+)$/.exec(address)?.[1] ?? address;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
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

/** True for `localhost` and the addresses of this machine's own network; IPv6 without brackets. */
export function isLoopbackHost(host: string): boolean {
  if (isIP(host) === 0) return host === 'localhost';
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8);
  loopback.addAddress('::1', 'ipv6');
  return loopback.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4');
}
