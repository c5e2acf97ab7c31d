/** The doctor's checks of the endpoint: public URL, name, addresses, port, certificate, login. */
import { describe, expect, it } from 'vitest';
import {
  checkAddresses,
  checkCertificate,
  checkLogin,
  checkLoginRequired,
  checkName,
  checkPort,
  checkPublicUrl,
  checkThisHost,
  type ResolvedName,
  resolveName,
} from '../../src/admin/endpoint-checks.ts';
import { createEndpointProbe } from '../../src/admin/endpoint-probe.ts';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import { freePort } from '../helpers/free-ports.ts';
import {
  answering,
  createTrust,
  pair,
  receiver,
  startEndpoint,
  startTcp,
} from './endpoint/tls-endpoint.ts';

describe('the public URL', () => {
  it.each([
    ['https://earshot.example.org:8443', 'pass', 'on port 8443'],
    ['https://earshot.example.org', 'pass', 'on port 443'],
    ['http://earshot.example.org', 'fail', 'not https'],
    ['https://192.0.2.1', 'warn', 'requires a host name'],
    ['https://[2001:db8::1]:8443', 'warn', 'requires a host name'],
    [undefined, 'fail', 'EARSHOT_PUBLIC_URL is missing'],
  ])('%s: %s', (publicUrl, state, words) => {
    const [finding] = checkPublicUrl(publicUrl);
    expect(finding).toMatchObject({ check: 'public URL', state });
    expect(finding?.message).toContain(words);
    expect(finding?.advice === undefined).toBe(state === 'pass');
  });
});

describe('the host name', () => {
  const publicUrl = 'https://earshot.example.org:8443';
  const resolving = (resolved: ResolvedName) => async () => resolved;

  it('passes when DNS resolves it, and returns its addresses', async () => {
    const addresses = ['93.184.216.34', '2606:2800:220:1::1'];
    const lookups: string[] = [];
    const named = await checkName({
      publicUrl,
      resolveName: async (host) => {
        lookups.push(host);
        return { addresses, source: 'dns' };
      },
    });
    expect(named.addresses).toEqual(addresses);
    expect(named.findings).toMatchObject([{ check: 'name', state: 'pass' }]);
    expect(named.findings[0]?.message).toContain('93.184.216.34, 2606:2800:220:1::1');
    expect(lookups).toEqual(['earshot.example.org']);
  });

  it('causes a warning when only this machine resolves it', async () => {
    const resolve = resolving({ addresses: ['127.0.1.1'], source: 'hosts' });
    const { findings, addresses } = await checkName({ publicUrl, resolveName: resolve });
    expect(findings).toMatchObject([{ state: 'warn' }]);
    expect(findings[0]?.message).toContain('only on this machine');
    expect(findings[0]?.advice).toContain('Create an A record');
    expect(addresses).toEqual(['127.0.1.1']);
    // A test installation needs no DNS record.
    const trial = await checkName({ publicUrl: 'https://localhost:8443', resolveName: resolve });
    expect(trial.findings[0]).toMatchObject({
      state: 'warn',
      advice: expect.stringMatching(/fine for a test/),
    });
  });

  it('fails when it does not resolve', async () => {
    const unknown = () => Promise.reject(new Error('ENOTFOUND'));
    for (const resolve of [unknown, resolving({ addresses: [], source: 'dns' })]) {
      const { findings, addresses } = await checkName({ publicUrl, resolveName: resolve });
      expect(findings).toMatchObject([{ state: 'fail' }]);
      expect(findings[0]?.advice).toContain('dig earshot.example.org');
      expect(addresses).toEqual([]);
    }
  });

  it('may be an IP address, with or without brackets', async () => {
    const v6 = await checkName({ publicUrl: 'https://[2001:db8::1]', resolveName });
    expect(v6).toMatchObject({ addresses: ['2001:db8::1'], findings: [{ state: 'pass' }] });
    const v4 = await checkName({ publicUrl: 'https://192.0.2.1', resolveName });
    expect(v4).toMatchObject({ addresses: ['192.0.2.1'], findings: [{ state: 'pass' }] });
  });

  it('of this machine resolves only on this machine', async () => {
    const { addresses, source } = await resolveName('localhost');
    expect(source).toBe('hosts');
    expect(addresses.every((address) => address === '127.0.0.1' || address === '::1')).toBe(true);
    expect(addresses.length).toBeGreaterThan(0);
  });
});

describe('the address', () => {
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
  ])('%s is %s: fails, or causes a warning in a test', (address, words) => {
    const [finding] = checkAddresses({ addresses: [address], isTest: false });
    expect(finding).toMatchObject({ state: 'fail' });
    expect(finding?.message).toContain(`${address} (${words})`);
    expect(finding?.advice).not.toContain('fine for a test');
    expect(checkAddresses({ addresses: [address], isTest: true })).toMatchObject([
      { state: 'warn', advice: expect.stringContaining('fine for a test') },
    ]);
  });

  it('that is private in addition to a public one causes a warning that names it', () => {
    const [finding] = checkAddresses({ addresses: ['1.1.1.1', 'fd12::1'], isTest: false });
    expect(finding).toMatchObject({ state: 'warn' });
    expect(finding?.message).toContain('fd12::1');
    expect(finding?.message).not.toContain('1.1.1.1 ');
  });

  it('causes a warning if it is only IPv6', () => {
    const v6 = '2606:4700:4700::1111';
    expect(checkAddresses({ addresses: [v6], isTest: false })).toMatchObject([{ state: 'warn' }]);
    const both = ['1.1.1.1', v6];
    expect(checkAddresses({ addresses: both, isTest: false })).toMatchObject([{ state: 'pass' }]);
  });
});

const loopback = ['127.0.0.1', '::1'];
const checkHost = (addresses: string[], localAddresses: string[]) =>
  checkThisHost({ addresses, localAddresses: [...loopback, ...localAddresses] })[0];

describe('the resolved name', () => {
  it('passes when it resolves to an address of this machine', () => {
    expect(checkHost(['192.0.2.7'], ['192.0.2.7'])).toMatchObject({ state: 'pass' });
    expect(checkHost(['2001:db8::0:1'], ['2001:db8::1'])).toMatchObject({ state: 'pass' });
    expect(checkHost(['9.9.9.9'], ['::ffff:9.9.9.9'])).toMatchObject({ state: 'pass' });
  });

  it('causes a warning that names both addresses when it resolves to another public address', () => {
    const finding = checkHost(['9.9.9.9'], ['8.8.8.8']);
    expect(finding).toMatchObject({ state: 'warn' });
    expect(finding?.message).toMatch(/resolves to 9\.9\.9\.9, but this machine has 8\.8\.8\.8/);
    expect(finding?.advice).toMatch(/A and AAAA/);
  });

  it('causes a warning for an outdated AAAA record, even if the A record is correct', () => {
    const finding = checkHost(['8.8.8.8', '2a00::9'], ['8.8.8.8', '2a00::8']);
    expect(finding).toMatchObject({ state: 'warn' });
    expect(finding?.message).toMatch(/resolves to 2a00::9,/);
  });

  it('passes on a machine with private addresses, because of possible NAT', () => {
    const finding = checkHost(['9.9.9.9'], ['10.0.0.5', 'fe80::1']);
    expect(finding).toMatchObject({ state: 'pass' });
    expect(finding?.message).toMatch(/may be behind NAT/);
  });
});

const dayMs = 86_400_000;
const nowUs = () => Date.now() * 1000;
const endpointAt = (port: number) => `https://localhost:${port}/notifications/default`;

describe('the port', () => {
  it('passes when it accepts connections, and says that the test ran on this machine', async () => {
    const port = await startTcp(() => undefined);
    const [finding] = await checkPort({ publicUrl: `https://127.0.0.1:${port}` });
    expect(finding).toMatchObject({ check: 'port', state: 'pass' });
    expect(finding?.message).toContain('from this machine');
  });

  it('fails when nothing listens there', async () => {
    const port = await freePort();
    const [finding] = await checkPort({ publicUrl: `https://127.0.0.1:${port}` });
    expect(finding).toMatchObject({ state: 'fail' });
    expect(finding?.message).toContain(`refuses connections on port ${port}`);
    expect(finding?.advice).toContain('earshot start');
  });
});

describe('the certificate', () => {
  const publicly = createEndpointProbe({ timeoutMs: 5_000 });

  it('passes when it is publicly trusted, with its remaining days and its TLS version', async () => {
    const { ca, certificate } = await createTrust();
    const endpoint = endpointAt(await startEndpoint(certificate));
    // This authority stands for the public ones; the extra ones are not used.
    const trusting = createEndpointProbe({ extraCaPems: [ca] });
    const withExtra = () => Promise.reject(new Error('unexpected probe'));
    const seen = await checkCertificate({ endpoint, publicly: trusting, withExtra, nowUs });
    expect(seen.probe).toBe(trusting);
    expect(seen.findings).toMatchObject([
      { check: 'certificate', state: 'pass' },
      { check: 'certificate validity', state: 'pass' },
      { check: 'TLS version', state: 'pass', message: 'TLSv1.3.' },
    ]);
    expect(seen.findings[1]?.message).toMatch(/^(29|30) days left, until 20\d\d-\d\d-\d\d\.$/);
  });

  it('causes a prominent warning when only EARSHOT_PROBE_CA trusts it', async () => {
    const { ca, certificate } = await createTrust();
    const endpoint = endpointAt(await startEndpoint(certificate));
    const withExtra = createEndpointProbe({ extraCaPems: [ca] });
    const seen = await checkCertificate({ endpoint, publicly, withExtra, nowUs });
    expect(seen.probe).toBe(withExtra);
    expect(seen.findings).toMatchObject([
      { check: 'certificate', state: 'warn', message: expect.stringContaining('NOT PUBLICLY') },
      { check: 'certificate validity', state: 'pass' },
      { check: 'TLS version', state: 'pass' },
    ]);
  });

  it('fails when no authority trusts it', async () => {
    const { certificate } = await createTrust();
    const endpoint = endpointAt(await startEndpoint(certificate));
    for (const withExtra of [null, publicly]) {
      const seen = await checkCertificate({ endpoint, publicly, withExtra, nowUs });
      expect(seen.probe).toBeNull();
      expect(seen.findings).toMatchObject([
        { check: 'certificate', state: 'fail', advice: expect.stringContaining('fullchain') },
      ]);
    }
  });

  it.each([
    [5.5, 'pass', /^5 days left/],
    [4.5, 'warn', /^4 days left/],
    [1.5, 'warn', /^1 day left/],
  ])('valid for 30 days with %d left: %s', async (days, state, words) => {
    const authority = await createCertificateAuthority({ now: Date.now });
    const certificate = await authority.issue({ hosts: ['localhost'] });
    const nowUs = () => (Date.now() + (30 - days) * dayMs) * 1000;
    const endpoint = endpointAt(await startEndpoint(certificate));
    const trusting = createEndpointProbe({ extraCaPems: [authority.certificatePem] });
    const seen = await checkCertificate({ endpoint, publicly: trusting, withExtra: null, nowUs });
    expect(seen.findings[1]).toMatchObject({
      check: 'certificate validity',
      state,
      message: expect.stringMatching(words),
    });
  });

  it('passes with TLS 1.2', async () => {
    const { ca, certificate } = await createTrust();
    const port = await startEndpoint(certificate, receiver, { maxVersion: 'TLSv1.2' });
    const trusting = createEndpointProbe({ extraCaPems: [ca] });
    const options = { publicly: trusting, withExtra: null, nowUs };
    const { findings } = await checkCertificate({ endpoint: endpointAt(port), ...options });
    expect(findings[2]).toMatchObject({ state: 'pass', message: 'TLSv1.2.' });
  });
});

describe('the login', () => {
  async function open(listener = receiver) {
    const { ca, certificate } = await createTrust();
    const endpoint = endpointAt(await startEndpoint(certificate, listener));
    return { endpoint, probe: createEndpointProbe({ extraCaPems: [ca], timeoutMs: 5_000 }) };
  }

  it('is checked with each accepted pair', async () => {
    const options = await open();
    expect(await checkLogin({ ...options, pairs: [pair] })).toMatchObject([
      { check: 'endpoint login', state: 'pass' },
    ]);
    const wrong = { ...pair, password: 'not the secret' };
    const findings = await checkLogin({ ...options, pairs: [wrong, pair] });
    expect(findings).toMatchObject([
      { state: 'fail', message: expect.stringContaining('pair 1 of 2') },
      { state: 'pass', message: expect.stringContaining('pair 2 of 2') },
      { check: 'rotation', state: 'warn' },
    ]);
    expect(findings[0]?.advice).toContain('restart the receiver');
    expect(JSON.stringify(findings)).not.toMatch(/secret|catalogue:/);
  });

  it('passes when requests without credentials are refused', async () => {
    expect(await checkLoginRequired(await open())).toMatchObject([
      { check: 'login required', state: 'pass' },
    ]);
  });

  it.each([
    [200, 'open to everyone'],
    [404, 'must return 401'],
    [503, 'must return 401'],
  ])('fails when requests without credentials get %i', async (status, words) => {
    const [finding] = await checkLoginRequired(await open(answering(status)));
    expect(finding).toMatchObject({ state: 'fail' });
    expect(finding?.message).toContain(words);
    expect(finding?.advice).not.toBe('');
  });

  it('fails when the connection closes without an answer', async () => {
    const [finding] = await checkLoginRequired(await open(({ socket }) => void socket.destroy()));
    expect(finding).toMatchObject({ state: 'fail' });
    expect(finding?.message).toContain('was closed');
  });
});
