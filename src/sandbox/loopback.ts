/** Keeps the sandbox on this machine: which hosts are loopback, by name and by what the name resolves to. */
import { lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** True for localhost, 127.0.0.0/8 and ::1; brackets round an IPv6 address are allowed. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  return bare.toLowerCase() === 'localhost' || isLoopbackAddress(bare);
}

/**
 * Resolves a name as Node does, but fails when any of its addresses is not on this machine: a hosts
 * file or a resolver may say anything, even about localhost.
 */
export const lookupLoopback: LookupFunction = (host, options, callback) => {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '', 0);
    const foreign = addresses.find(({ address }) => !isLoopbackAddress(address));
    const [first] = addresses;
    if (foreign !== undefined || first === undefined) {
      const found = foreign?.address ?? 'nothing';
      return callback(new Error(`${host} resolves to ${found}, not to this machine.`), '', 0);
    }
    if (options.all) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
};

function isLoopbackAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 0) return false;
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8);
  loopback.addAddress('::1', 'ipv6');
  return loopback.check(address, family === 6 ? 'ipv6' : 'ipv4');
}
