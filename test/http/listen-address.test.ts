/** Addresses in texts: those of IPv6 are written so that their port can be told from them. */
import { expect, it } from 'vitest';
import { hostInUrl, loopbackOf } from '../../src/http/listen-address.ts';
import { startListener } from '../../src/http/listener.ts';

it.each([
  ['127.0.0.1', '127.0.0.1', '127.0.0.1'],
  ['0.0.0.0', '0.0.0.0', '127.0.0.1'],
  ['::', '[::]', '[::1]'],
  ['::1', '[::1]', '[::1]'],
  ['2001:db8::7', '[2001:db8::7]', '[2001:db8::7]'],
  ['localhost', 'localhost', 'localhost'],
])('%s is %s in a URL, and asked at %s', (host, inUrl, asked) => {
  expect(hostInUrl(host)).toBe(inUrl);
  expect(hostInUrl(loopbackOf(host))).toBe(asked);
});

it('a port that cannot be opened is told with its address, IPv6 in brackets', async () => {
  // Of the range for documentation (RFC 3849): no machine has it.
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
