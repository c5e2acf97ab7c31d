/** Addresses: where a server listens, whose request it is, and which addresses belong to one host. */

import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6, SocketAddress } from 'node:net';
import { z } from 'zod';

export interface ListenAddress {
  /** A name or an address; IPv6 without brackets. */
  host: string;
  port: number;
}

/** A host as it stands before `:port`: IPv6 addresses get brackets (RFC 3986, 3.2.2). */
export function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** Where an address that means all of this machine's is reached; any other as it is. No brackets. */
export function loopbackOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

/** Groups the addresses of one host: each IPv4 address alone; of IPv6, where a host owns a whole network, the /64. */
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

/** More proxies than this are not followed. */
const hopsMax = 32;
/** The longest text of an IPv6 address, with brackets, zone and port, is shorter. */
const entryCharactersMax = 100;
/** An address with or without a port; only an IPv6 address with a port must stand in brackets. */
const entryShape = /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+)(?::\d{1,5})?|([\da-f:.]+))$/i;

/** The parts of a request that tell whose it is. */
type AddressedRequest = Pick<IncomingMessage, 'headers'> & {
  socket: Pick<IncomingMessage['socket'], 'remoteAddress'>;
};

/**
 * Prepares the question for the client's address, in its usual form: IPv4 behind an IPv6 socket as
 * IPv4. `trustedProxies` holds addresses and ranges (CIDR).
 *
 * `X-Forwarded-For` of any other peer is not read. Each proxy appends the address that it was asked
 * from, so the list is read from the right: what a trusted proxy wrote is believed, and the first
 * address that is no trusted proxy is the client; what stands left of it is the client's own word.
 * An entry that is no address ends the reading, and the last one that was believed counts.
 * `Forwarded` (RFC 7239) is not read: nginx and Caddy do not send it, and two headers can disagree.
 */
export function createClientAddress(
  trustedProxies: readonly string[],
): (incoming: AddressedRequest) => string {
  const trusted = blockListOf(trustedProxies);
  const isTrusted = (address: string) => trusted.check(address, familyOf(address));
  return ({ headers, socket }) => {
    let believed = canonical(socket.remoteAddress ?? '');
    if (believed === null) return 'unknown';
    // Node joins several headers of this name with commas, in their order.
    let rest = String(headers['x-forwarded-for'] ?? '');
    for (let hops = 0; hops < hopsMax && rest !== '' && isTrusted(believed); hops += 1) {
      const comma = rest.lastIndexOf(',');
      const address = addressIn(rest.slice(comma + 1));
      if (address === null) break;
      believed = address;
      rest = rest.slice(0, Math.max(0, comma));
    }
    return believed;
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

/** One text for each address; null for what is none. */
function canonical(text: string): string | null {
  // The zone names an interface of this machine (`fe80::1%eth0`), which is nothing of the client's.
  const [bare = ''] = text.split('%');
  if (isIP(bare) === 0) return null;
  const { address } = new SocketAddress({ address: bare, family: familyOf(bare) });
  return /^::ffff:([\d.]+)$/.exec(address)?.[1] ?? address;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}

const urlForm = 'must be an https URL, such as https://hooks.example.org/earshot';
/** An https URL, or http on this machine, without credentials: everything else in it stays. */
export const exactUrl = z.string(urlForm).transform((text, context) => {
  const url = URL.parse(text);
  if (url === null || !(url.protocol === 'https:' || isLoopbackHttp(url))) {
    context.addIssue('must be an https URL; http only to this machine (127.0.0.1, localhost)');
    return z.NEVER;
  }
  if (url.username + url.password + url.hash === '') return url.href;
  context.addIssue('must hold no user name, password or #');
  return z.NEVER;
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
