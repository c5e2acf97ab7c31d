/** A delivery attempt over real sockets: trust, request, success, and the certificate authority. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSubscriptions, type EndpointRules } from '../../src/sandbox/account.ts';
import {
  createCertificateAuthority,
  createSelfSigned,
} from '../../src/sandbox/certificate-authority.ts';
import { createRandom, createSandboxClock } from '../../src/sandbox/clock.ts';
import {
  createDeliverer,
  type DelivererOptions,
  isSuccess,
} from '../../src/sandbox/delivery/deliverer.ts';
import {
  createLiveServiceSettings,
  SandboxConfigurationError,
  serviceSettingsSchema,
} from '../../src/sandbox/live-settings.ts';
import { isLoopbackHost, lookupLoopback } from '../../src/sandbox/local-server.ts';
import { type EndpointAnswer, startEndpoint, startMs, startTrustedEndpoint } from './set-up.ts';

const body = Buffer.from('{"ProductName":"Grüße"}');
const credentials = { username: 'catalogue', password: 'secret' };
const now = () => performance.now();

async function deliverOnce({
  endpoint,
  username = credentials.username,
  password = credentials.password,
  ...options
}: Omit<DelivererOptions, 'now'> & {
  endpoint: URL;
  username?: string | null;
  password?: string | null;
}) {
  const deliverer = createDeliverer({ ...options, now });
  const attempt = await deliverer.deliver({ endpoint: endpoint.href, username, password }, body);
  deliverer.close();
  return attempt;
}

/** Delivers once to a trusted endpoint. */
async function deliverTrusted(
  options: Omit<Parameters<typeof deliverOnce>[0], 'endpoint'> = {},
  answer?: EndpointAnswer,
) {
  const { url: endpoint, requests, trustedCaPems } = await startTrustedEndpoint(answer);
  const attempt = await deliverOnce({ endpoint, trustedCaPems, ...options });
  return { attempt, requests };
}

describe('the sender and the certificate', () => {
  it('delivers to an endpoint with a certificate of a trusted authority, by name or address', async () => {
    const { url, port, requests, trustedCaPems } = await startTrustedEndpoint();
    for (const endpoint of [url, new URL(`https://127.0.0.1:${port}/`)]) {
      const attempt = await deliverOnce({ endpoint, trustedCaPems });
      expect(attempt).toMatchObject({ status: 200, error: null });
    }
    expect(requests).toHaveLength(2);
  });

  it.each([
    ['self-signed', /self-signed/, false],
    ['self-signed and trusted', /self-signed/, true],
    ['for another host', /ERR_TLS_CERT_ALTNAME_INVALID/, true],
    ['of an unknown authority', /UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER/, false],
    ['expired', /CERT_HAS_EXPIRED/, true],
  ])('refuses a certificate that is %s', async (kind, error, trusted) => {
    const hosts = kind === 'for another host' ? ['endpoint.example', '127.0.0.9'] : ['localhost'];
    const authority = await createCertificateAuthority({ now: Date.now });
    const notAfterMs = Date.now() + (kind === 'expired' ? -60_000 : 60_000);
    const isSelfSigned = kind.startsWith('self-signed');
    const certificate = isSelfSigned
      ? await createSelfSigned({ hosts, now: Date.now })
      : await authority.issue({ hosts, notAfterMs });
    const other = await createCertificateAuthority({ now: Date.now });
    const root = isSelfSigned ? certificate : authority;
    const trustedCaPems = [(trusted ? root : other).certificatePem];
    const { url: endpoint, requests } = await startEndpoint({ certificate });
    const attempt = await deliverOnce({ endpoint, trustedCaPems });
    expect(attempt).toMatchObject({ status: null, error: expect.stringMatching(error) });
    expect(requests).toHaveLength(0);
  });

  it('refuses an invalid certificate of a trusted authority and reports which one', () => {
    const create = () => createDeliverer({ trustedCaPems: ['nonsense'], now });
    expect(create).toThrow(SandboxConfigurationError);
    expect(create).toThrow(/authority 1 is not a PEM certificate/);
  });
});

describe('the rules of endpoints', () => {
  /** Returns the refusal of an endpoint; null when it is allowed. */
  function refusalOf(endpoint: string, endpointRules: EndpointRules = {}, username = 'catalogue') {
    const clock = createSandboxClock({ now });
    const liveSettings = createLiveServiceSettings(serviceSettingsSchema.parse({}));
    const account = createSubscriptions({
      clock,
      liveSettings,
      endpointRules,
      random: createRandom(1),
    });
    const address = { endpoint, username, password: 'hunter2' };
    const subscription = { status: 'running', events: [], filter: '', stageOrder: false } as const;
    try {
      return account.create({ ...subscription, address }) && null;
    } catch (error) {
      expect(error).toMatchObject({ name: 'SubscriptionRefusal', kind: 'request' });
      return String(error);
    }
  }

  it.each([
    'https://192.0.2.1/',
    'https://endpoint.example/',
    'https://localhost.example/',
    'https://[2001:db8::1]/',
    'https://128.0.0.1/',
    'https://0.0.0.0/',
  ])('refuse %s, which is not this machine, unless other machines are allowed', (endpoint) => {
    expect(refusalOf(endpoint)).toMatch(/not on this machine.*--allow-remote/);
    expect(refusalOf(endpoint, { allowRemote: true })).toBeNull();
  });

  it('accept the names and addresses of loopback as this machine', () => {
    for (const host of ['localhost', 'LOCALHOST', '127.0.0.1', '127.8.9.10', '[::1]']) {
      expect(isLoopbackHost(host)).toBe(true);
      expect(refusalOf(`https://${host}/`)).toBeNull();
    }
  });

  it('refuse plain HTTP unless it is allowed, and always refuse other schemes', () => {
    expect(refusalOf('http://localhost/')).toMatch(/must begin with https:\/\//);
    expect(refusalOf('http://localhost/', { allowPlainHttp: true })).toBeNull();
    expect(refusalOf('ftp://localhost/', { allowPlainHttp: true })).toMatch(/https/);
    expect(refusalOf('nonsense', { allowPlainHttp: true })).toMatch(/not a URL/);
  });

  it('refuse credentials in the URL without repeating them, and a user name with a colon', () => {
    const refusal = refusalOf('https://catalogue:hunter2@localhost/');
    expect(refusal).toMatch(/^(?!.*hunter2).*URL contains credentials/);
    expect(refusalOf('https://localhost/', {}, 'a:b')).toMatch(/colon/);
  });

  it('fail to resolve a name to an address that is not this machine', async () => {
    const resolve = (host: string) =>
      new Promise((done) => {
        lookupLoopback(host, {}, (error, address) => done(error ?? address));
      });
    expect(await resolve('127.0.0.1')).toBe('127.0.0.1');
    const message = '192.0.2.1 resolves to 192.0.2.1, not to a loopback address.';
    expect(await resolve('192.0.2.1')).toMatchObject({ message });
  });
});

describe('a delivery attempt', () => {
  it('posts the bytes as JSON to the path of the endpoint, over plain HTTP as well', async () => {
    const plain = await startEndpoint({});
    expect(await deliverOnce({ endpoint: plain.url })).toMatchObject({ status: 200 });
    const { requests } = await deliverTrusted();
    for (const [request] of [requests, plain.requests]) {
      expect(request).toMatchObject({ method: 'POST', path: '/notifications/try-out', body });
      const headers = { 'content-type': 'application/json', 'content-length': `${body.length}` };
      expect(request?.headers).toMatchObject(headers);
    }
  });

  it.each(['secret', 'a:b:c', ':', '', 'pässwörd – ключ 🔑'])(
    'sends the password %j as Basic credentials in UTF-8',
    async (password) => {
      const { requests } = await deliverTrusted({ password });
      const [scheme, encoded = ''] = requests[0]?.headers.authorization?.split(' ') ?? [];
      const sent = Buffer.from(encoded, 'base64').toString('utf8');
      expect([scheme, sent]).toEqual(['Basic', `catalogue:${password}`]);
    },
  );

  it('sends no credentials when none are configured', async () => {
    const { requests } = await deliverTrusted({ username: null, password: null });
    expect(requests[0]?.headers).not.toHaveProperty('authorization');
  });

  it('does not follow a redirect', async () => {
    const redirect = { status: 307, headers: { Location: '/elsewhere' } };
    const { attempt, requests } = await deliverTrusted({}, () => redirect);
    expect([attempt.status, requests.length]).toEqual([307, 1]);
  });

  it('reads only part of a long response and uses its status', async () => {
    // The response is shorter than its Content-Length: waiting for its end would never finish.
    const headers = { 'Content-Length': '900000000' };
    const long = { status: 201, headers, body: 'x'.repeat(200_000) };
    const { attempt } = await deliverTrusted({}, () => long);
    expect(attempt.status).toBe(201);
  });

  it('fails on a timeout and on a refused connection', async () => {
    const { attempt } = await deliverTrusted({ timeoutMs: 50 }, () => 'hang');
    expect(attempt).toMatchObject({ status: null, error: 'no complete answer within 50 ms' });
    expect(attempt.durationMs).toBeGreaterThanOrEqual(45);
    const endpoint = new URL('https://127.0.0.1:1/');
    expect((await deliverOnce({ endpoint })).error).toContain('ECONNREFUSED');
  });

  it('ends immediately when it is aborted', async () => {
    const giveUp = new AbortController();
    const { url, trustedCaPems } = await startTrustedEndpoint(() => {
      giveUp.abort();
      return 'hang';
    });
    const deliverer = createDeliverer({ trustedCaPems, now });
    const address = { ...credentials, endpoint: url.href };
    const attempt = await deliverer.deliver(address, body, giveUp.signal);
    expect(attempt).toMatchObject({ status: null, error: expect.stringContaining('aborted') });
    expect(await deliverer.deliver(address, body, giveUp.signal)).toMatchObject({ status: null });
    deliverer.close();
  });

  it('reuses a connection', async () => {
    const { url, requests, trustedCaPems } = await startTrustedEndpoint();
    const deliverer = createDeliverer({ trustedCaPems, now });
    const address = { ...credentials, endpoint: url.href };
    for (let times = 0; times < 3; times += 1) await deliverer.deliver(address, body);
    deliverer.close();
    expect(requests.map(({ headers }) => headers.connection)).toEqual(Array(3).fill('keep-alive'));
    expect(new Set(requests.map(({ remotePort }) => remotePort)).size).toBe(1);
  });

  it('succeeds with every 2xx status', () => {
    const statuses = [199, 200, 204, 299, 300, 404, 503, null];
    expect(statuses.filter(isSuccess)).toEqual([200, 204, 299]);
  });
});

describe('the temporary certificate authority', () => {
  const now = () => startMs;

  it('issues a server certificate with its key for names and addresses, signed by its root', async () => {
    const authority = await createCertificateAuthority({ now });
    const notAfterMs = startMs + 60_000;
    const hosts = ['localhost', '127.0.0.1', '::1'];
    const { certificatePem, keyPem } = await authority.issue({ hosts, notAfterMs });
    const leaf = new X509Certificate(certificatePem);
    const root = new X509Certificate(authority.certificatePem);
    expect([root.ca, leaf.ca]).toEqual([true, false]);
    expect([leaf.checkIssued(root), leaf.verify(root.publicKey)]).toEqual([true, true]);
    expect([leaf.checkHost('localhost'), leaf.checkHost('example.com')]).toEqual([
      'localhost',
      undefined,
    ]);
    expect([leaf.checkIP('127.0.0.1'), leaf.checkIP('::1')]).toEqual(['127.0.0.1', '::1']);
    expect(leaf.validFromDate.getTime()).toBe(startMs - 3_600_000);
    expect(leaf.validToDate.getTime()).toBe(notAfterMs);
    expect(keyPem).toContain('-----BEGIN PRIVATE KEY-----');
    const key = createPrivateKey(keyPem);
    expect(key.asymmetricKeyDetails?.namedCurve).toBe('prime256v1');
    expect(leaf.checkPrivateKey(key)).toBe(true);
    await expect(authority.issue({ hosts: [] })).rejects.toThrow(RangeError);
  });

  it('issues a self-signed certificate whose issuer is itself, and escapes special characters in hosts', async () => {
    const { certificatePem } = await createSelfSigned({ hosts: ['a,O=Somebody Else'], now });
    const certificate = new X509Certificate(certificatePem);
    expect(certificate.issuer).toBe(certificate.subject);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.subject.split('\n')).toHaveLength(1);
  });
});
