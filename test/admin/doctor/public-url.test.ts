/** The doctor's look at the public URL: form, name, addresses. */
import { describe, expect, it } from 'vitest';
import {
  checkAddresses,
  checkName,
  checkPublicUrl,
  type ResolvedName,
  resolveName,
} from '../../../src/admin/endpoint-checks.ts';

describe('the public URL', () => {
  it.each([
    ['https://earshot.example.org:8443', 'pass', 'on port 8443'],
    ['https://earshot.example.org', 'pass', 'on port 443'],
    ['http://earshot.example.org', 'fail', 'not https'],
    ['https://192.0.2.1', 'warn', 'asks for a name'],
    ['https://[2001:db8::1]:8443', 'warn', 'asks for a name'],
    [undefined, 'fail', 'no EARSHOT_PUBLIC_URL'],
  ])('%s: %s', (publicUrl, state, words) => {
    const [finding] = checkPublicUrl(publicUrl);
    expect(finding).toMatchObject({ check: 'public URL', state });
    expect(finding?.message).toContain(words);
    expect(finding?.advice === undefined).toBe(state === 'pass');
  });
});

describe('its name', () => {
  const publicUrl = 'https://earshot.example.org:8443';
  const resolving = (resolved: ResolvedName) => async () => resolved;

  it('passes when DNS knows it, and its addresses are handed on', async () => {
    const addresses = ['93.184.216.34', '2606:2800:220:1::1'];
    const asked: string[] = [];
    const named = await checkName({
      publicUrl,
      resolveName: async (host) => {
        asked.push(host);
        return { addresses, source: 'dns' };
      },
    });
    expect(named.addresses).toEqual(addresses);
    expect(named.findings).toMatchObject([{ check: 'name', state: 'pass' }]);
    expect(named.findings[0]?.message).toContain('93.184.216.34, 2606:2800:220:1::1');
    expect(asked).toEqual(['earshot.example.org']);
  });

  it('is warned of when only this machine knows it', async () => {
    const resolve = resolving({ addresses: ['127.0.1.1'], source: 'hosts' });
    const { findings, addresses } = await checkName({ publicUrl, resolveName: resolve });
    expect(findings).toMatchObject([{ state: 'warn' }]);
    expect(findings[0]?.message).toContain('on this machine alone');
    expect(findings[0]?.advice).toContain('Make an A record');
    expect(addresses).toEqual(['127.0.1.1']);
    // No DNS provider can help a trial.
    const trial = await checkName({ publicUrl: 'https://localhost:8443', resolveName: resolve });
    expect(trial.findings[0]).toMatchObject({
      state: 'warn',
      advice: expect.stringMatching(/^Fine/),
    });
  });

  it('fails when nobody knows it', async () => {
    const unknown = () => Promise.reject(new Error('ENOTFOUND'));
    for (const resolve of [unknown, resolving({ addresses: [], source: 'dns' })]) {
      const { findings, addresses } = await checkName({ publicUrl, resolveName: resolve });
      expect(findings).toMatchObject([{ state: 'fail' }]);
      expect(findings[0]?.advice).toContain('dig earshot.example.org');
      expect(addresses).toEqual([]);
    }
  });

  it('may be an address, with or without brackets', async () => {
    const v6 = await checkName({ publicUrl: 'https://[2001:db8::1]', resolveName });
    expect(v6).toMatchObject({ addresses: ['2001:db8::1'], findings: [{ state: 'pass' }] });
    const v4 = await checkName({ publicUrl: 'https://192.0.2.1', resolveName });
    expect(v4).toMatchObject({ addresses: ['192.0.2.1'], findings: [{ state: 'pass' }] });
  });

  it('of this machine is known to this machine alone', async () => {
    const { addresses, source } = await resolveName('localhost');
    expect(source).toBe('hosts');
    expect(addresses.every((address) => address === '127.0.0.1' || address === '::1')).toBe(true);
    expect(addresses.length).toBeGreaterThan(0);
  });
});

describe('its address', () => {
  it.each([['93.184.216.34'], ['1.1.1.1'], ['172.32.0.1'], ['100.128.0.1']])(
    '%s is public',
    (address) => {
      expect(checkAddresses({ addresses: [address], isTest: false })).toMatchObject([
        { check: 'public address', state: 'pass' },
      ]);
    },
  );

  it.each([
    ['10.0.0.1', 'private'],
    ['172.16.5.4', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.1.1', 'private'],
    ['127.0.0.1', 'loopback'],
    ['127.0.1.1', 'loopback'],
    ['169.254.169.254', 'link local'],
    ['100.64.0.1', 'carrier grade nat'],
    ['100.127.255.255', 'carrier grade nat'],
    ['0.0.0.0', 'unspecified'],
    ['192.0.2.7', 'reserved'],
    ['224.0.0.1', 'multicast'],
    ['::1', 'loopback'],
    ['fe80::1', 'link local'],
    ['fd12:3456::1', 'unique local'],
    ['2001:db8::1', 'reserved'],
    ['::ffff:10.0.0.1', 'private'],
  ])('%s is %s, which fails, and in a test is warned of', (address, words) => {
    const [finding] = checkAddresses({ addresses: [address], isTest: false });
    expect(finding).toMatchObject({ state: 'fail' });
    expect(finding?.message).toContain(`${address} (${words})`);
    expect(finding?.advice).not.toContain('Fine for a test');
    expect(checkAddresses({ addresses: [address], isTest: true })).toMatchObject([
      { state: 'warn', advice: expect.stringContaining('Fine for a test') },
    ]);
  });

  it('that is hidden beside a public one is warned of, and named', () => {
    const [finding] = checkAddresses({ addresses: ['1.1.1.1', 'fd12::1'], isTest: false });
    expect(finding).toMatchObject({ state: 'warn' });
    expect(finding?.message).toContain('fd12::1');
    expect(finding?.message).not.toContain('1.1.1.1 ');
  });

  it('that is IPv6 alone is warned of', () => {
    const v6 = '2606:4700:4700::1111';
    expect(checkAddresses({ addresses: [v6], isTest: false })).toMatchObject([{ state: 'warn' }]);
    const both = ['1.1.1.1', v6];
    expect(checkAddresses({ addresses: both, isTest: false })).toMatchObject([{ state: 'pass' }]);
  });
});
