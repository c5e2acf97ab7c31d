/** One delivery attempt over real sockets: whom the sender trusts, what it sends, what counts as success. */
import { describe, expect, it } from 'vitest';
import { createSubscriptions, type EndpointRules } from '../../src/sandbox/account.ts';
import {
  createCertificateAuthority,
  createSelfSigned,
} from '../../src/sandbox/certificate-authority.ts';
import { createSandboxClock } from '../../src/sandbox/clock.ts';
import { SandboxConfigurationError } from '../../src/sandbox/configuration-error.ts';
import {
  createDeliverer,
  type DelivererOptions,
  isSuccess,
} from '../../src/sandbox/delivery/deliverer.ts';
import { isLoopbackHost, lookupLoopback } from '../../src/sandbox/local-server.ts';
import { createRandom } from '../../src/sandbox/random.ts';
import {
  createServiceKnobs,
  serviceSettingsSchema,
} from '../../src/sandbox/services/service-settings.ts';
import { startEndpoint, startTrustedEndpoint } from './recording-endpoint.ts';

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

describe('the sender and the certificate', () => {
  it('delivers to an endpoint of an authority it was told to trust', async () => {
    const { url, requests, trustedCaPems } = await startTrustedEndpoint();
    expect(await deliverOnce({ endpoint: url, trustedCaPems })).toMatchObject({
      status: 200,
      error: null,
    });
    expect(requests).toHaveLength(1);
  });

  it('accepts a certificate for the address when the endpoint is an address', async () => {
    const { port, requests, trustedCaPems } = await startTrustedEndpoint();
    const endpoint = new URL(`https://127.0.0.1:${port}/`);
    expect(await deliverOnce({ endpoint, trustedCaPems })).toMatchObject({ status: 200 });
    expect(requests).toHaveLength(1);
  });

  it.each(['not told', 'told'])(
    'refuses a self-signed certificate, %s to trust it',
    async (told) => {
      const certificate = await createSelfSigned({ hosts: ['localhost'], now: Date.now });
      const { url, requests } = await startEndpoint({ certificate });
      const trustedCaPems = told === 'told' ? [certificate.certificatePem] : [];
      const attempt = await deliverOnce({ endpoint: url, trustedCaPems });
      expect(attempt).toMatchObject({
        status: null,
        error: expect.stringContaining('self-signed'),
      });
      expect(requests).toHaveLength(0);
    },
  );

  it('refuses a certificate for another host', async () => {
    const authority = await createCertificateAuthority({ now: Date.now });
    const certificate = await authority.issue({ hosts: ['endpoint.example', '127.0.0.9'] });
    const { url, requests } = await startEndpoint({ certificate });
    const trustedCaPems = [authority.certificatePem];
    const attempt = await deliverOnce({ endpoint: url, trustedCaPems });
    expect(attempt.error).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
    expect(requests).toHaveLength(0);
  });

  it('refuses a certificate of an authority it was not told of', async () => {
    const { url, requests } = await startTrustedEndpoint();
    const stranger = await createCertificateAuthority({ now: Date.now });
    const attempt = await deliverOnce({ endpoint: url, trustedCaPems: [stranger.certificatePem] });
    expect(attempt.status).toBeNull();
    expect(attempt.error).toMatch(/UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT/);
    expect(requests).toHaveLength(0);
  });

  it('refuses a certificate that has expired', async () => {
    const authority = await createCertificateAuthority({ now: Date.now });
    const notAfterMs = Date.now() - 60_000;
    const certificate = await authority.issue({ hosts: ['localhost'], notAfterMs });
    const { url, requests } = await startEndpoint({ certificate });
    const attempt = await deliverOnce({
      endpoint: url,
      trustedCaPems: [authority.certificatePem],
    });
    expect(attempt.error).toContain('CERT_HAS_EXPIRED');
    expect(requests).toHaveLength(0);
  });
});

describe('the rules of endpoints', () => {
  /** Returns the refusal of an endpoint; null when it is allowed. */
  function refusalOf(endpoint: string, endpointRules: EndpointRules = {}, username = 'catalogue') {
    const clock = createSandboxClock({ now });
    const knobs = createServiceKnobs(serviceSettingsSchema.parse({}));
    const account = createSubscriptions({ clock, knobs, endpointRules, random: createRandom(1) });
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
  ])('refuse %s, which is not this machine, unless that is allowed', (endpoint) => {
    expect(refusalOf(endpoint)).toMatch(/not on this machine.*--allow-remote/);
    expect(refusalOf(endpoint, { allowRemote: true })).toBeNull();
  });

  it.each(['localhost', 'LOCALHOST', '127.0.0.1', '127.8.9.10', '[::1]'])(
    'take %s for this machine',
    (host) => {
      expect(isLoopbackHost(host)).toBe(true);
      expect(refusalOf(`https://${host}/`)).toBeNull();
    },
  );

  it('refuse plain HTTP unless it is allowed, and everything else always', () => {
    expect(refusalOf('http://localhost/')).toMatch(/must begin with https:\/\//);
    expect(refusalOf('http://localhost/', { allowPlainHttp: true })).toBeNull();
    expect(refusalOf('ftp://localhost/', { allowPlainHttp: true })).toMatch(/https/);
    expect(refusalOf('nonsense', { allowPlainHttp: true })).toMatch(/not a URL/);
  });

  it('refuse credentials in the URL without repeating them, and a user name with a colon', () => {
    const refusal = refusalOf('https://catalogue:hunter2@localhost/');
    expect(refusal).toMatch(/^(?!.*hunter2).*credentials in its URL/);
    expect(refusalOf('https://localhost/', {}, 'a:b')).toMatch(/colon/);
  });
});

describe('the sender', () => {
  it('fails to resolve a name to an address that is not this machine', async () => {
    const resolve = (host: string) =>
      new Promise((done) => {
        lookupLoopback(host, {}, (error, address) => done(error ?? address));
      });
    expect(await resolve('127.0.0.1')).toBe('127.0.0.1');
    expect(await resolve('192.0.2.1')).toMatchObject({
      message: '192.0.2.1 resolves to 192.0.2.1, not to this machine.',
    });
  });

  it('speaks plain HTTP to an endpoint that does', async () => {
    const { url, requests } = await startEndpoint({});
    expect(await deliverOnce({ endpoint: url })).toMatchObject({ status: 200 });
    expect(requests).toHaveLength(1);
  });

  it('refuses a trusted authority that is not a certificate, saying which', () => {
    const create = () => createDeliverer({ trustedCaPems: ['nonsense'], now });
    expect(create).toThrow(SandboxConfigurationError);
    expect(create).toThrow(/authority number 1 is not a certificate/);
  });
});

describe('a delivery attempt', () => {
  it('posts the bytes as JSON to the path of the endpoint', async () => {
    const { url, requests, trustedCaPems } = await startTrustedEndpoint();
    await deliverOnce({ endpoint: url, trustedCaPems });
    expect(requests[0]).toMatchObject({ method: 'POST', path: '/notifications/try-out', body });
    expect(requests[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(body.length),
    });
  });

  it.each(['secret', 'a:b:c', ':', '', 'pässwörd – ключ 🔑'])(
    'sends the password %j as Basic credentials in UTF-8',
    async (password) => {
      const { url, requests, trustedCaPems } = await startTrustedEndpoint();
      await deliverOnce({ endpoint: url, password, trustedCaPems });
      const [scheme, encoded] = requests[0]?.headers.authorization?.split(' ') ?? [];
      expect(scheme).toBe('Basic');
      expect(Buffer.from(encoded ?? '', 'base64').toString('utf8')).toBe(`catalogue:${password}`);
    },
  );

  it('sends no credentials when there are none', async () => {
    const { url, requests, trustedCaPems } = await startTrustedEndpoint();
    await deliverOnce({ endpoint: url, username: null, password: null, trustedCaPems });
    expect(requests[0]?.headers).not.toHaveProperty('authorization');
  });

  it('does not follow a redirect', async () => {
    const { url, requests, trustedCaPems } = await startTrustedEndpoint(() => ({
      status: 307,
      headers: { Location: '/elsewhere' },
    }));
    expect(await deliverOnce({ endpoint: url, trustedCaPems })).toMatchObject({ status: 307 });
    expect(requests).toHaveLength(1);
  });

  it('reads a long answer only in part and goes by its status', async () => {
    // It promises more than it sends: whoever waits for the end waits in vain.
    const { url, trustedCaPems } = await startTrustedEndpoint(() => ({
      status: 201,
      headers: { 'Content-Length': '900000000' },
      body: 'x'.repeat(200_000),
    }));
    expect(await deliverOnce({ endpoint: url, trustedCaPems })).toMatchObject({ status: 201 });
  });

  it('fails when no answer comes in time', async () => {
    const { url, trustedCaPems } = await startTrustedEndpoint(() => 'hang');
    const attempt = await deliverOnce({ endpoint: url, trustedCaPems, timeoutMs: 50 });
    expect(attempt).toMatchObject({ status: null, error: 'no complete answer within 50 ms' });
    expect(attempt.durationMs).toBeGreaterThanOrEqual(45);
  });

  it('fails when nobody listens', async () => {
    const endpoint = new URL('https://127.0.0.1:1/');
    expect((await deliverOnce({ endpoint })).error).toContain('ECONNREFUSED');
  });

  it('ends at once when it is given up', async () => {
    const giveUp = new AbortController();
    const { url, trustedCaPems } = await startTrustedEndpoint(() => {
      giveUp.abort();
      return 'hang';
    });
    const deliverer = createDeliverer({ trustedCaPems, now });
    const address = { ...credentials, endpoint: url.href };
    const attempt = await deliverer.deliver(address, body, giveUp.signal);
    expect(attempt).toMatchObject({ status: null, error: expect.stringContaining('given up') });
    expect(await deliverer.deliver(address, body, giveUp.signal)).toMatchObject({ status: null });
    deliverer.close();
  });

  it('uses a connection again', async () => {
    const { url, requests, trustedCaPems } = await startTrustedEndpoint();
    const deliverer = createDeliverer({ trustedCaPems, now });
    const address = { ...credentials, endpoint: url.href };
    for (let times = 0; times < 3; times += 1) await deliverer.deliver(address, body);
    deliverer.close();
    expect(requests.map(({ headers }) => headers.connection)).toEqual(Array(3).fill('keep-alive'));
    expect(new Set(requests.map(({ remotePort }) => remotePort)).size).toBe(1);
  });

  it.each([
    [199, false],
    [200, true],
    [204, true],
    [299, true],
    [300, false],
    [404, false],
    [503, false],
    [null, false],
  ])('with the status %s counts as success: %s', (status, expected) => {
    expect(isSuccess(status)).toBe(expected);
  });
});
