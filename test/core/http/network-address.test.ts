/** Addresses in texts: IPv6 addresses are written so that their port is unambiguous. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { startListener } from '../../../src/core/http/listener.ts';
import {
  createClientAddress,
  hostInUrl,
  loopbackOf,
  networkOf,
} from '../../../src/core/http/network-address.ts';

it.each([
  ['127.0.0.1', '127.0.0.1', '127.0.0.1'],
  ['::', '[::]', '[::1]'],
  ['::1', '[::1]', '[::1]'],
  ['2001:db8::7', '[2001:db8::7]', '[2001:db8::7]'],
  ['localhost', 'localhost', 'localhost'],
])('%s is %s in a URL, and requested at %s', (host, inUrl, requested) => {
  expect(hostInUrl(host)).toBe(inUrl);
  expect(hostInUrl(loopbackOf(host))).toBe(requested);
});

it('a port that cannot be opened is reported with its address, IPv6 in brackets', async () => {
  // From the range for documentation (RFC 3849): no machine has it.
  const listen = { host: '2001:db8::7', port: 8443 };
  const opening = startListener({
    fetch: () => new Response(),
    listen,
    listenVariable: 'X_LISTEN',
  });
  await expect(opening).rejects.toMatchObject({
    code: 'configuration',
    text: expect.stringMatching(/^Cannot listen on \[2001:db8::7\]:8443: .* Set X_LISTEN /),
  });
});

it.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8::1', '2001:db8::/64'],
  ['2001:db8::1:0:2:3:4', '2001:db8:0:1::/64'],
  ['fe80::1%eth0', 'fe80::/64'],
  ['::1', '::/64'],
  ['', ''],
])('%s belongs to %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

const proxies = ['10.0.0.0/8', '::ffff:172.16.0.0/108', '192.0.2.7', '2001:db8:aa::/48', 'fd00::1'];

const clientOf = createClientAddress(proxies);

function seen(peer: string | undefined, forwarded?: string): string {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
  return clientOf({ headers, socket: { remoteAddress: peer } });
}

describe("the client's address", () => {
  it.each([
    ['of a peer that is not a proxy', '198.51.100.9', '203.0.113.5', '198.51.100.9'],
    ['of a proxy that sends no address', '10.1.1.1', undefined, '10.1.1.1'],
    ['that a proxy names', '10.1.1.1', '203.0.113.5', '203.0.113.5'],
    ['that a single trusted address names', '192.0.2.7', '203.0.113.5', '203.0.113.5'],
    [
      'right of the address that the client claimed',
      '10.1.1.1',
      '203.0.113.5, fd00::1,10.9.9.9',
      '203.0.113.5',
    ],
    [
      'of the outermost proxy when all addresses are proxies',
      '10.1.1.1',
      '10.3.3.3, 10.2.2.2',
      '10.3.3.3',
    ],
    ['that a proxy of a mapped range names', '172.16.3.4', '203.0.113.5', '203.0.113.5'],
    ['of a peer outside of a mapped range', '172.32.3.4', '203.0.113.5', '172.32.3.4'],
    ['before an entry in the deprecated form', '10.1.1.1', '203.0.113.5, ::10.2.2.2', '10.1.1.1'],
    ['of a proxy behind an IPv6 socket', '::ffff:10.1.1.1', '203.0.113.5', '203.0.113.5'],
    ['without its zone', 'fe80::1%eth0', undefined, 'fe80::1'],
    ['of an unknown client, when the socket is closed', undefined, '203.0.113.5', 'unknown'],
  ])('is that %s', (_name, peer, forwarded, client) => {
    expect(seen(peer, forwarded)).toBe(client);
  });

  it.each([
    ['203.0.113.5:4711', '203.0.113.5'],
    ['[2001:db8::9]', '2001:db8::9'],
    ['[2001:db8::9]:4711', '2001:db8::9'],
    ['2001:DB8:0:0::9', '2001:db8::9'],
    ['::ffff:203.0.113.5', '203.0.113.5'],
    ['[::ffff:cb00:7105]:80', '203.0.113.5'],
    ['	 203.0.113.5 ', '203.0.113.5'],
  ])('is read from the entry %j', (entry, client) => {
    expect(seen('10.1.1.1', entry)).toBe(client);
  });
});

const word = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string({ maxLength: 40 }), fc.constant('10.1.2.3'));

const header = fc.array(word, { maxLength: 40 }).map((words) => words.join(', '));

const outside = fc.ipV4().filter((address) => seen(address, '192.0.2.1') === address);

it("a client's header is ignored when it does not come from a trusted proxy", () => {
  const nobody = createClientAddress([]);
  fc.assert(
    fc.property(outside, header, (peer, forwarded) => {
      expect(seen(peer, forwarded)).toBe(peer);
      const headers = { 'x-forwarded-for': forwarded, forwarded: `for=${forwarded}` };
      expect(nobody({ headers, socket: { remoteAddress: '10.1.1.1' } })).toBe('10.1.1.1');
    }),
  );
});
