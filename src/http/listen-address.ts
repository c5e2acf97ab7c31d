/** Where a server listens: how the address is written, and where it is reached from this machine. */

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
