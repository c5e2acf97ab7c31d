/** The doctor's checks of the endpoint: public URL, name, addresses, port, certificate, login; and of the clock. */
import { describe, expect, it } from 'vitest';
import { createEndpointProbe } from '../../../src/admin/endpoint-probe.ts';
import {
  checkAddresses,
  checkClock,
  checkEndpoint,
  checkPublicUrl,
} from '../../../src/features/doctor/endpoint-steps.ts';
import { createCertificateAuthority } from '../../../src/sandbox/certificate-authority.ts';
import {
  answering,
  createTrust,
  pair,
  receiver,
  startEndpoint,
} from '../../admin/endpoint/tls-endpoint.ts';
import { startServer } from '../../core/http/answering-server.ts';
import { freePort } from '../../helpers/free-ports.ts';

it.each([
  ['https://earshot.example.org:8443', 'ok', 'on port 8443'],
  ['http://earshot.example.org', 'critical', 'not https'],
  ['https://[2001:db8::1]:8443', 'warning', 'requires a host name'],
  [undefined, 'critical', 'is missing'],
])('the public URL %s: %s', (publicUrl, level, words) => {
  const [finding] = checkPublicUrl(publicUrl);
  expect(finding).toMatchObject({ check: 'public URL', level });
  expect(finding?.text).toContain(words);
});

it.each<[addresses: string[], level: string, isTest?: boolean]>([
  [['93.184.216.34', '2606:4700:4700::1111'], 'ok'],
  [[], 'critical'],
  ...['10.0.0.1', '127.0.1.1', '169.254.169.254', '100.64.0.1', 'fd12:3456::1'].map(
    (address): [string[], string] => [[address], 'critical'],
  ),
  [['::ffff:10.0.0.1'], 'critical'],
  [['10.0.0.1'], 'warning', true],
  [['10.0.0.1', '1.1.1.1'], 'warning'],
])('the addresses %j: %s', (addresses, level, isTest = false) => {
  const found = checkAddresses('earshot.example.org', addresses, isTest);
  expect(found).toMatchObject({ check: 'public address', level });
});

const endpointAt = (port: number) => `https://localhost:${port}/notifications/default`;

describe('the endpoint', () => {
  const publicly = createEndpointProbe({ timeoutMs: 5_000 });
  const nowUs = () => Date.now() * 1_000;

  it.each([
    ['ok', 5.5, /TLSv1.3, certificate valid until 20\d\d-\d\d-\d\d \(days left: 5\)\.$/],
    ['warning', 1.5, /days left: 1/],
  ])('%s with %d of 30 days left, and warns without public trust', async (level, days, words) => {
    const authority = await createCertificateAuthority({ now: Date.now });
    const port = await startEndpoint(await authority.issue({ hosts: ['localhost'] }));
    const trusting = createEndpointProbe({ extraCaPems: [authority.certificatePem] });
    const later = () => (Date.now() + (30 - days) * 86_400_000) * 1000;
    const options = { endpoint: endpointAt(port), pairs: [], nowUs: later };
    const [trusted] = await checkEndpoint({ ...options, publicly: trusting, withExtra: null });
    expect(trusted).toMatchObject({ level, text: expect.stringMatching(words) });
    const [extra] = await checkEndpoint({ ...options, publicly, withExtra: trusting });
    const text = expect.stringMatching(/NOT PUBLICLY.*days left:/);
    expect(extra).toMatchObject({ level: 'warning', text });
    const refused = await checkEndpoint({ ...options, publicly, withExtra: publicly });
    expect(refused).toMatchObject([{ check: 'endpoint', level: 'critical' }]);
  });

  async function openTrusted(listener = receiver) {
    const { ca, certificate } = await createTrust();
    const endpoint = endpointAt(await startEndpoint(certificate, listener));
    const probe = createEndpointProbe({ extraCaPems: [ca], timeoutMs: 5_000 });
    return { endpoint, publicly: probe, withExtra: null, nowUs };
  }

  it('is checked with each accepted pair', async () => {
    const wrong = { ...pair, password: 'not the secret' };
    const findings = await checkEndpoint({ ...(await openTrusted()), pairs: [wrong, pair] });
    expect(findings).toMatchObject([
      { check: 'endpoint', level: 'ok' },
      { check: 'endpoint login', level: 'critical', text: expect.stringContaining('pair 1 of 2') },
      { check: 'endpoint login', level: 'warning', nextStep: expect.stringContaining('rotate') },
    ]);
    const good = await checkEndpoint({ ...(await openTrusted()), pairs: [pair] });
    expect(good.map(({ level }) => level)).toEqual(['ok', 'ok']);
    expect(JSON.stringify(findings)).not.toMatch(/secret|catalogue:/);
  });

  it.each([200, 404])('requires a login: %i without credentials is critical', async (status) => {
    const options = { ...(await openTrusted(answering(status))), pairs: [] };
    const text = expect.stringContaining(`returns ${status} instead of 401`);
    expect((await checkEndpoint(options))[1]).toMatchObject({ level: 'critical', text });
  });
});

const thereMs = Date.UTC(2026, 4, 1, 12);

/** A service with a fixed clock. */
const startService = (headers: Record<string, string> = {}) => {
  const date = new Date(thereMs).toUTCString();
  return startServer([{ status: 404, headers: { Date: date, ...headers } }]);
};

const at = (secondsAhead: number) => () => (thereMs + secondsAhead * 1000) * 1000;

describe('the clock', () => {
  it.each([
    [-31, 'warning', '31 s behind'],
    [300, 'warning', '300 s ahead of'],
    [301, 'critical', '301 s ahead of'],
  ])('%i seconds ahead: %s', async (seconds, level, words) => {
    const { url, requests } = await startService();
    const finding = await checkClock([url], { fetch, nowUs: at(seconds) });
    expect(finding).toMatchObject({ check: 'clock', level });
    expect(finding.text).toContain(words);
    expect(requests).toMatchObject([{ method: 'HEAD', headers: { 'cache-control': 'no-store' } }]);
  });

  it('is compared with the next service when one does not answer or sends no date', async () => {
    const closed = `http://127.0.0.1:${await freePort()}`;
    const silent = await startService({ Date: '' });
    const { url } = await startService();
    const own = { fetch, nowUs: at(100) };
    const { text } = await checkClock([closed, silent.url, url], own);
    expect(text).toContain(new URL(url).host);
    expect(await checkClock([closed], own)).toMatchObject({ level: 'unknown' });
  });
});
