/** Where a server listens: how the address is written, and where it is reached from this machine. */
import { isIPv6 } from 'node:net';

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

/** IPv4 addresses count one by one; of IPv6, where a host owns a whole network, the /64. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').length;
  const filled = [
    ...groups,
    ...Array<string>(Math.max(0, missing)).fill('0'),
    ...(tail ?? '').split(':'),
  ];
  return `${filled.slice(0, 4).join(':')}::/64`;
}
