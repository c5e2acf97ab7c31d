/** Sources of the certificate: every combination, and refusals of invalid ones. */
import { rootCertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/core/config/config.ts';
import type { AcmeConfig } from '../../../src/features/certificate/settings.ts';
import {
  configWith,
  type Env,
  environment,
  minimalEnv,
  problemsWith,
  refusalOf,
  wholeTextOf,
} from '../../core/config/environment.ts';

const pem = rootCertificates.slice(0, 2).join('\n');
const brokenPem = '-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n';

/** The minimum for a certificate that the operator provides. */
const acme = {
  EARSHOT_TLS: 'acme',
  EARSHOT_TLS_CERT: undefined,
  EARSHOT_TLS_KEY: undefined,
  EARSHOT_PUBLIC_URL: 'https://earshot.example.org',
  EARSHOT_ACME_AGREE: 'yes',
};

const acmeConfig: AcmeConfig = {
  kind: 'acme',
  directoryUrl: 'https://acme-v02.api.letsencrypt.org/directory',
  host: 'earshot.example.org',
  email: undefined,
  challenge: 'http-01',
  httpListen: { host: '0.0.0.0', port: 80 },
  extraCaPem: undefined,
  eab: undefined,
};

/** The problems that `start` and `earshot certificate` report: they are the same. */
function problemsOf(env: Env, files = {}): readonly string[] {
  const problems = problemsWith({ ...acme, ...env }, files);
  const { EARSHOT_TLS_CERT: _, EARSHOT_TLS_KEY: __, ...rest } = minimalEnv;
  const own = environment({ ...rest, ...acme, ...env }, files);
  expect(refusalOf(() => loadConfig(own, ['acme'])).details).toEqual(problems);
  return problems;
}

describe('EARSHOT_TLS=acme', () => {
  it('needs a name and the agreement, and has defaults for the rest', () => {
    expect(configWith(acme).tls).toEqual(acmeConfig);
  });

  it('accepts all options that an authority may require', () => {
    const env = {
      ...acme,
      EARSHOT_PUBLIC_URL: 'https://Earshot.Example.org:8443',
      EARSHOT_ACME_DIRECTORY: 'https://ca.example.org/acme/directory/',
      EARSHOT_ACME_EMAIL: 'me@example.org',
      EARSHOT_ACME_CHALLENGE: 'tls-alpn-01',
      EARSHOT_ACME_HTTP_LISTEN: '[::1]:8080',
      EARSHOT_ACME_CA: 'ca.pem',
      EARSHOT_ACME_EAB_KEY_ID: 'kid-1',
      EARSHOT_ACME_EAB_HMAC_KEY_FILE: 'hmac',
    };
    expect(configWith(env, { 'ca.pem': pem, hmac: 'c2VjcmV0\n' }).tls).toEqual({
      kind: 'acme',
      directoryUrl: 'https://ca.example.org/acme/directory/',
      host: 'earshot.example.org',
      email: 'me@example.org',
      challenge: 'tls-alpn-01',
      httpListen: { host: '::1', port: 8080 },
      extraCaPem: pem,
      eab: { keyId: 'kid-1', hmacKey: 'c2VjcmV0' },
    });
  });

  it.each<readonly [name: string, value: string | undefined, RegExp]>([
    ...[undefined, 'https://0x7f.1', 'https://[2001:db8::1]', 'https://my_host.example.org'].map(
      (url) => ['PUBLIC_URL', url, /^EARSHOT_TLS=acme needs .* a host name/] as const,
    ),
    ['ACME_AGREE', undefined, /needs your agreement .*_AGREE=yes\.$/],
    ['ACME_EAB_KEY_ID', 'kid-1', /belong together: set both\.$/],
    ['ACME_EAB_HMAC_KEY', 'c2VjcmV0', /belong together: set both\.$/],
    ['ACME_CA', 'gone.pem', /^EARSHOT_ACME_CA: gone\.pem cannot be read\.$/],
    ['ACME_CA', 'broken.pem', /^EARSHOT_ACME_CA: broken.pem must contain only PEM/],
    ['TLS_CERT', 'cert.pem', /^EARSHOT_TLS=acme cannot be combined with/],
  ])('with EARSHOT_%s=%s is refused, in one sentence', (name, value, sentence) => {
    const files = {
      ...{ 'key.pem': '-----BEGIN PRIVATE KEY-----', 'cert.pem': pem, 'broken.pem': brokenPem },
    };
    const problems = problemsOf({ [`EARSHOT_${name}`]: value }, files);
    expect(problems).toEqual([expect.stringMatching(sentence)]);
  });

  it.each<Env>([
    { EARSHOT_ACME_EAB_HMAC_KEY: 'my-secret-key' },
    { EARSHOT_ACME_EAB_KEY_ID: 'k', EARSHOT_ACME_EAB_HMAC_KEY_FILE: 'f' },
  ])('never prints a key that is invalid: %j', (env) => {
    const error = refusalOf(() => configWith({ ...acme, ...env }, { f: 'my secret key' }));
    expect(error.details).toEqual([expect.stringContaining('EARSHOT_ACME_EAB_')]);
    expect(wholeTextOf(error)).not.toMatch(/my.secret.key/);
  });

  it('ignores its settings when the certificate comes from elsewhere', () => {
    const env = { EARSHOT_ACME_CA: 'gone.pem', EARSHOT_ACME_EAB_KEY_ID: 'half' };
    expect(configWith(env).tls).toMatchObject({ kind: 'files' });
  });
});

describe('the configuration of `earshot certificate`', () => {
  it.each(['files', 'off', undefined])('is refused with EARSHOT_TLS=%s', (kind) => {
    const own = () => loadConfig(environment({ ...acme, EARSHOT_TLS: kind }), ['acme']);
    expect(refusalOf(own)).toMatchObject({
      ...{ code: 'configuration', message: expect.stringContaining('set EARSHOT_TLS=acme') },
    });
  });

  it('for `show` has the files, or the order, which needs no agreement', () => {
    const checkConfig = (env: Env) => loadConfig(environment(env), ['servedTls']);
    const files = { EARSHOT_TLS_CERT: 'cert.pem', EARSHOT_TLS_KEY: 'key.pem' };
    const servedTls = { kind: 'files', cert: 'cert.pem', key: 'key.pem' };
    expect(checkConfig(files)).toEqual({ servedTls });
    expect(refusalOf(() => checkConfig({ EARSHOT_TLS: 'off' })).message).toMatch(/proxy/);
    const nameless = { ...acme, EARSHOT_PUBLIC_URL: undefined };
    expect(refusalOf(() => checkConfig(nameless)).details).toHaveLength(1);
  });
});

const off = { EARSHOT_TLS: 'off', EARSHOT_TLS_CERT: undefined, EARSHOT_TLS_KEY: undefined };

it.each<[Env, RegExp]>([
  [
    { EARSHOT_TLS_CERT: '', EARSHOT_TLS_KEY: undefined },
    /needs EARSHOT_TLS_CERT and EARSHOT_TLS_KEY\..*EARSHOT_TLS=off/,
  ],
  [{ ...off, EARSHOT_TLS_KEY: 'x.pem' }, /^EARSHOT_TLS=off cannot be combined with/],
])('HTTPS with %j is refused', (env, problem) => {
  expect(problemsWith(env)).toEqual([expect.stringMatching(problem)]);
});
