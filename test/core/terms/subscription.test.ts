/**
 * Names, endpoints and events of subscriptions: the identity of a subscription at the catalogue.
 */
import { describe, expect, it } from 'vitest';
import {
  endpointOf,
  nameInEndpoint,
  sortedEvents,
  subscriptionNamePattern,
} from '../../../src/core/terms/subscription.ts';

const publicUrl = 'https://earshot.example.org:8443';

describe('the name of a subscription', () => {
  it.each(['a', '0', 'default', 'alps-s2', '2026-05-02', 'a-', 'a--b', 'a'.repeat(63)])(
    'may be %s, and is read back from its endpoint',
    (name) => {
      expect(name).toMatch(subscriptionNamePattern);
      expect(nameInEndpoint(publicUrl, endpointOf(publicUrl, name))).toBe(name);
    },
  );

  it.each(['', '-a', 'A', 'ä', 'a_b', 'a.b', 'a b', 'a/b', 'a\n', '\na', 'a\0', 'a'.repeat(64)])(
    'cannot be %j',
    (name) => {
      expect(name).not.toMatch(subscriptionNamePattern);
    },
  );
});

describe('an endpoint', () => {
  it.each([
    ['https://earshot.example.org:8443/notifications/alps/', 'with a slash behind it'],
    ['HTTPS://Earshot.Example.ORG:08443/x/../notifications/alps', 'in another writing'],
  ])('%s is ours: %s', (endpoint) => {
    expect(nameInEndpoint(publicUrl, endpoint)).toBe('alps');
  });

  it('is ours with or without the default port', () => {
    const usual = 'https://earshot.example.org';
    expect(nameInEndpoint(usual, `${usual}:443/notifications/alps`)).toBe('alps');
    expect(nameInEndpoint(`${usual}:443`, `${usual}/notifications/alps`)).toBe('alps');
  });

  it.each([
    ['https://earshot.example.org:8444/notifications/alps', 'another port'],
    ['https://earshot.example.org/notifications/alps', 'no port'],
    ['https://earshot.example.org.evil.example:8443/notifications/alps', 'a longer name'],
    ['https://other.example.org:8443/notifications/alps', 'another name'],
    ['https://evil.example/#https://earshot.example.org:8443/notifications/alps', 'a hash'],
    ['https://earshot.example.org:8443@evil.example/notifications/alps', 'our name as a user'],
    ['https://earshot.example.org:8443/notifications', 'no name of a subscription'],
    ['https://earshot.example.org:8443/notifications/alps/more', 'more behind it'],
    ['https://earshot.example.org:8443/notifications/Alps', 'a name in capitals'],
    ['https://earshot.example.org:8443/notifications/al%70s', 'a name in other writing'],
    ['https://earshot.example.org:8443/notifications/a%2Fb', 'a slash in the name'],
    [`https://earshot.example.org:8443/notifications/${'a'.repeat(64)}`, 'a name too long'],
    ['https://earshot.example.org:8443/notifications/alps?a=1', 'a query'],
    ['https://earshot.example.org:8443/notifications/alps#a', 'a fragment'],
    ['https://earshot.example.org:8443/prefix/notifications/alps', 'a path before it'],
    ['/notifications/alps', 'no origin'],
    ['', 'nothing'],
  ])('%s is not ours: %s', (endpoint) => {
    expect(nameInEndpoint(publicUrl, endpoint)).toBeNull();
  });
});

it.each<[string[], string[]]>([
  [
    ['deleted', 'modified', 'created'],
    ['created', 'modified', 'deleted'],
  ],
  [
    ['created', 'created', 'deleted', 'created'],
    ['created', 'deleted'],
  ],
  [[], []],
  [
    ['zapped', 'deleted', 'archived'],
    ['archived', 'zapped', 'deleted'],
  ],
])('events %j become %j: sorted and unique', (events, sorted) => {
  const given = Object.freeze([...events]);
  expect(sortedEvents(given)).toEqual(sorted);
});
