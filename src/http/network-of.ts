/** Which addresses belong together: whoever has one of them has the others as well. */
import { isIPv6 } from 'node:net';

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
