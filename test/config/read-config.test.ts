/** The configuration of `start`: every variable, every problem, and never a secret's value. */
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readDataConfig, readServeConfig } from '../../src/config/read-config.ts';
import { readVariables } from '../../src/config/read-variables.ts';
import { type VariableKey, variables } from '../../src/config/variables.ts';
import { configWith, enough, environment, problemsWith, refusalOf } from './environment.ts';

const outboundUrls = {
  good: [
    ['https://catalogue.example.org/', 'https://catalogue.example.org'],
    ['http://127.0.0.1:8091/a/token', 'http://127.0.0.1:8091/a/token'],
    ['http://localhost:8091', 'http://localhost:8091'],
    ['http://[::1]:8091', 'http://[::1]:8091'],
  ],
  bad: [
    'http://catalogue.example.org',
    'http://127.0.0.1.example.org',
    'ftp://127.0.0.1',
    'catalogue.example.org',
    'https://user:word@catalogue.example.org',
    'https://catalogue.example.org/?a=1',
  ],
};
const amounts = {
  good: [
    ['0', 0],
    ['60', 60],
    ['999999999', 999_999_999],
  ],
  bad: ['-1', '1.5', '007', 'all', '1e3', '1000000000'],
};
const counts = { good: [['3', 3]], bad: ['0', '-1', '2.5', 'two', '1e9'] };

/** For each variable texts with their values, and texts that are refused. */
const examples = {
  publicUrl: {
    good: [
      ['https://earshot.example.org:8443', 'https://earshot.example.org:8443'],
      ['https://earshot.example.org:443/', 'https://earshot.example.org'],
      ['https://[2001:db8::1]:8443', 'https://[2001:db8::1]:8443'],
    ],
    bad: [
      'http://earshot.example.org',
      'earshot.example.org',
      'https://earshot.example.org/notifications',
      'https://user@earshot.example.org',
      'https://earshot.example.org/?a=1',
      'https://earshot.example.org/#a',
    ],
  },
  listen: {
    good: [
      ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
      ['localhost:65535', { host: 'localhost', port: 65_535 }],
      ['[::]:8443', { host: '::', port: 8443 }],
      ['[2001:db8::A]:443', { host: '2001:db8::A', port: 443 }],
    ],
    bad: ['8443', ':8443', '::1:8443', '[::1]', '0.0.0.0:65536', '0.0.0.0:', 'host:http', '[]:80'],
  },
  dataDir: {
    good: [
      ['/var/lib/earshot', '/var/lib/earshot'],
      ['data', resolve('data')],
    ],
    bad: [],
  },
  diskReserve: {
    good: [
      ['256MiB', 2 ** 28],
      ['1.5GB', 1_500_000_000],
      ['64 MiB', 2 ** 26],
      ['10G', 10_000_000_000],
      ['0', 0],
    ],
    bad: ['256mib', 'much', '-1', '1e9', '5%', 'MiB'],
  },
  keep: {
    good: [
      ['365d', { ageUs: 365 * 86_400_000_000, bytes: null }],
      ['50GB', { ageUs: null, bytes: 50_000_000_000 }],
      ['20GiB, 52w', { ageUs: 364 * 86_400_000_000, bytes: 20 * 2 ** 30 }],
    ],
    bad: ['365', '1y', '12m', '50gb', '0GB', '365d,30d', '365d 50GB', '23h', '99MB', ','],
  },
  backupDir: { good: [['backups', resolve('backups')]], bad: [] },
  backupEvery: counts,
  backupKeep: counts,
  compact: {
    good: [
      ['on', 'on'],
      ['off', 'off'],
    ],
    bad: ['yes', 'ON', '1'],
  },
  consoleListen: {
    good: [
      ['[::1]:8080', { host: '::1', port: 8080 }],
      ['off', null],
    ],
    bad: ['8080', 'Off', 'on', 'localhost'],
  },
  index: { good: [['off', 'off']], bad: ['Off', 'no'] },
  consolePassword: { good: [[' with: blanks ', ' with: blanks ']], bad: [] },
  endpointUsername: { good: [['имя', 'имя']], bad: ['user:name'] },
  endpointPassword: { good: [[' with: blanks ', ' with: blanks ']], bad: [] },
  tls: {
    good: [
      ['files', 'files'],
      ['acme', 'acme'],
      ['off', 'off'],
    ],
    bad: ['on', 'Off', 'letsencrypt'],
  },
  tlsCert: { good: [['c.pem', 'c.pem']], bad: [] },
  tlsKey: { good: [['k.pem', 'k.pem']], bad: [] },
  acmeDirectory: {
    good: [
      ['https://ca.example.org/acme/directory/', 'https://ca.example.org/acme/directory/'],
      ['https://ca.example.org/acme?profile=a', 'https://ca.example.org/acme?profile=a'],
      ['http://127.0.0.1:8000/dir', 'http://127.0.0.1:8000/dir'],
    ],
    bad: ['http://ca.example.org/dir', 'ca.example.org', 'https://me:word@ca.example.org/dir'],
  },
  acmeEmail: { good: [['me@example.org', 'me@example.org']], bad: ['me', 'mailto:me@example.org'] },
  acmeAgree: { good: [['yes', 'yes']], bad: ['no', 'true', 'Yes'] },
  acmeChallenge: {
    good: [
      ['http-01', 'http-01'],
      ['tls-alpn-01', 'tls-alpn-01'],
    ],
    bad: ['dns-01', 'http'],
  },
  acmeHttpListen: { good: [['[::]:80', { host: '::', port: 80 }]], bad: ['80'] },
  acmeCa: { good: [['ca.pem', 'ca.pem']], bad: [] },
  acmeEabKeyId: { good: [['kid-1', 'kid-1']], bad: [] },
  acmeEabHmacKey: { good: [['zWND-Z_M=', 'zWND-Z_M=']], bad: ['two words', 'a:b'] },
  trustedProxies: {
    good: [
      ['127.0.0.1', ['127.0.0.1']],
      ['10.0.0.0/8, ::1,2001:db8::/32', ['10.0.0.0/8', '::1', '2001:db8::/32']],
    ],
    bad: ['localhost', '10.0.0.0/33', '127.0.0.1,', '1.2.3'],
  },
  probeCa: { good: [['ca.pem', 'ca.pem']], bad: [] },
  catalogueUrl: {
    good: [
      ...outboundUrls.good,
      ['https://catalogue.example.org/odata/v1/', 'https://catalogue.example.org'],
    ],
    bad: outboundUrls.bad,
  },
  tokenUrl: outboundUrls,
  clientId: { good: [['cdse-public', 'cdse-public']], bad: [] },
  accountUsername: { good: [['me@example.org', 'me@example.org']], bad: [] },
  accountPassword: { good: [[' with: blanks ', ' with: blanks ']], bad: [] },
  accountTotp: {
    good: [
      ['123 456', '123456'],
      ['jbsw y3dp ehpk 3pxp', 'jbswy3dpehpk3pxp'],
    ],
    bad: ['12345', '1234567', 'not-base-32-189'],
  },
  accessToken: { good: [['eyJ.a-b_c', 'eyJ.a-b_c']], bad: ['two words', 'tokén'] },
  subscriptionsRunningMax: counts,
  subscriptionsMax: counts,
  summary: {
    good: ['off', 'each', 'digest'].map((rule) => [rule, rule]),
    bad: ['on', 'Each', 'all'],
  },
  inferenceUrl: {
    good: [
      ...outboundUrls.good,
      ['https://inference.example.org/openai/v1/', 'https://inference.example.org'],
      ['https://inference.example.org/a/openai', 'https://inference.example.org/a'],
      ['http://[::1]:1/openai/v1/chat/completions', 'http://[::1]:1'],
      ['https://inference.example.org/openai/v2', 'https://inference.example.org/openai/v2'],
    ],
    bad: outboundUrls.bad,
  },
  inferenceApiKey: { good: [['sk-a.b_c/d=', 'sk-a.b_c/d=']], bad: ['two words', 'kéy', 'a\tb'] },
  inferenceModel: {
    good: [
      ['openai/gpt-oss-120b', 'openai/gpt-oss-120b'],
      ['a/b/c.d:e', 'a/b/c.d:e'],
    ],
    bad: [
      'gpt-oss-120b',
      '/gpt',
      'openai/',
      'openai//gpt',
      'open ai/gpt',
      'a/б',
      `a/${'b'.repeat(200)}`,
    ],
  },
  summaryRequestsPerHour: amounts,
  summaryRequestsPerDay: amounts,
  summaryTokensPerDay: amounts,
  reconcile: {
    good: [
      ['on', 'on'],
      ['off', 'off'],
    ],
    bad: ['yes', 'ON', '1'],
  },
  reconcileRequestsPerMinute: {
    good: [
      ['1', 1],
      ['600', 600],
    ],
    bad: ['0', '-1', '1.5', 'many'],
  },
  alertUrl: {
    good: [
      ['https://chat.example.org/hooks/a?b=c', 'https://chat.example.org/hooks/a?b=c'],
      ['http://127.0.0.1:9000/', 'http://127.0.0.1:9000/'],
    ],
    bad: ['http://chat.example.org/', 'chat.example.org', 'https://a:b@chat.example.org/'],
  },
  alertCommand: {
    good: [
      ['/bin/tell', ['/bin/tell']],
      [' /bin/tell  --now me ', ['/bin/tell', '--now', 'me']],
    ],
    bad: ['  '],
  },
  logLevel: {
    good: ['debug', 'info', 'warn', 'error'].map((level) => [level, level]),
    bad: ['INFO', 'trace', '3'],
  },
} satisfies Record<VariableKey, { good: unknown[][]; bad: string[] }>;

// The keys of a record that is checked to hold exactly the variables.
const keys = Object.keys(examples) as VariableKey[];
const good = keys.flatMap((key) =>
  examples[key].good.map(([text, value]) => ({ key, name: variables[key].name, text, value })),
);
const bad = keys.flatMap((key) =>
  examples[key].bad.map((text) => ({ key, name: variables[key].name, text })),
);

describe('a variable', () => {
  it.each(good)('$name=$text is read', ({ key, name, text, value }) => {
    const { values, problems } = readVariables(environment({ [name]: String(text) }), [key]);
    expect(problems).toEqual([]);
    expect(values[key]).toEqual(value);
  });

  it.each(bad)('$name=$text is refused with an example of what is right', ({ key, name, text }) => {
    const { values, problems } = readVariables(environment({ [name]: text }), [key]);
    expect(values[key]).toBeUndefined();
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${name}: .*Example: `));
  });

  it.each(keys)('%s that is empty counts as unset', (key) => {
    const { name } = variables[key];
    const unset = readVariables(environment({}), [key]);
    expect(readVariables(environment({ [name]: '' }), [key])).toEqual(unset);
  });

  it('that nobody asks for is not read', () => {
    expect(readDataConfig(environment({ EARSHOT_LISTEN: 'nonsense' }))).toEqual({
      dataDir: resolve('data'),
    });
  });

  it('that is not of earshot is left alone', () => {
    expect(readDataConfig(environment({ PATH: '/bin', EARSHOTX: '1', earshot_tls: 'x' }))).toEqual({
      dataDir: resolve('data'),
    });
  });

  it.each([
    ['EARSHOT_LISTN', 'EARSHOT_LISTEN'],
    ['EARSHOT_DATADIR', 'EARSHOT_DATA_DIR'],
    ['EARSHOT_ENDPOINT_PASSWORD_FIEL', 'EARSHOT_ENDPOINT_PASSWORD_FILE'],
    ['EARSHOT_TLS_CERTIFICATE', 'EARSHOT_TLS_CERT'],
    ['EARSHOT_TLS_KEY_FILE', 'EARSHOT_TLS_KEY'],
  ])('%s is unknown, and %s is suggested', (name, nearest) => {
    expect(problemsWith({ [name]: 'x' })).toEqual([
      `${name} is not a variable of earshot. Did you mean ${nearest}?`,
    ]);
  });

  it('that is unknown is an error even when it is empty', () => {
    expect(problemsWith({ EARSHOT_LISTN: '' })).toHaveLength(1);
  });
});

describe('the configuration of start', () => {
  it('has defaults for all that can have one', () => {
    expect(configWith({})).toEqual({
      listen: { host: '0.0.0.0', port: 8443 },
      publicUrl: undefined,
      dataDir: resolve('data'),
      credentials: [{ username: 'catalogue', password: 'a long password' }],
      credentialsSource: 'variables',
      tls: { kind: 'files', cert: 'cert.pem', key: 'key.pem' },
      trustedProxies: [],
      console: {
        listen: { host: '127.0.0.1', port: 8080 },
        password: undefined,
        catalogueUrl: 'https://catalogue.dataspace.copernicus.eu',
      },
      index: true,
      logLevel: 'info',
    });
  });

  it('cannot be changed', () => {
    const config = configWith({});
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(readDataConfig(environment({})))).toBe(true);
  });

  it('reports all problems at once', () => {
    const problems = problemsWith({
      EARSHOT_LISTEN: 'x',
      EARSHOT_PUBLIC_URL: 'x',
      EARSHOT_LOG_LEVEL: 'x',
      EARSHOT_TLS_CERT: undefined,
      EARSHOT_ENDPOINT_USERNAME: undefined,
      EARSHOT_TYPO: 'x',
    });
    const named = ['TYPO', 'LISTEN', 'PUBLIC_URL', 'LOG_LEVEL', 'TLS_CERT', 'ENDPOINT_USERNAME'];
    expect(problems).toHaveLength(named.length);
    for (const name of named) {
      expect(problems.filter((problem) => problem.includes(`EARSHOT_${name}`))).toHaveLength(1);
    }
  });

  it('says which words a variable takes', () => {
    const [two, four] = problemsWith({ EARSHOT_INDEX: 'yes', EARSHOT_LOG_LEVEL: 'loud' });
    expect([two, four].toSorted()).toEqual([
      'EARSHOT_INDEX: must be on or off. Example: on',
      'EARSHOT_LOG_LEVEL: must be debug, info, warn or error. Example: info',
    ]);
  });

  it('says in one line how many there are and where to read about them', () => {
    const many = refusalOf(() => readServeConfig(environment({})));
    expect(many.code).toBe('configuration');
    expect(many.message).toMatch(/^2 problems .*docs\/configuration\.md/);
    expect(refusalOf(() => configWith({ EARSHOT_LISTEN: 'x' })).message).toMatch(/^One problem /);
  });
});

describe('HTTPS', () => {
  it.each([
    ['the certificate', { EARSHOT_TLS_CERT: undefined }, /needs EARSHOT_TLS_CERT\./],
    ['the key', { EARSHOT_TLS_KEY: '' }, /needs EARSHOT_TLS_KEY\./],
    [
      'both',
      { EARSHOT_TLS_CERT: '', EARSHOT_TLS_KEY: undefined },
      /needs EARSHOT_TLS_CERT and EARSHOT_TLS_KEY\..*EARSHOT_TLS=off/,
    ],
  ])('without %s is refused', (_title, env, problem) => {
    expect(problemsWith(env)).toEqual([expect.stringMatching(problem)]);
  });

  it('may be left to a proxy', () => {
    const off = { EARSHOT_TLS: 'off', EARSHOT_TLS_CERT: undefined, EARSHOT_TLS_KEY: undefined };
    expect(configWith(off).tls).toEqual({ kind: 'off' });
  });

  it.each(['EARSHOT_TLS_CERT', 'EARSHOT_TLS_KEY'] as const)(
    'that is off does not go with %s',
    (name) => {
      const { EARSHOT_TLS_CERT: _, EARSHOT_TLS_KEY: __, ...rest } = enough;
      const env = environment({ ...rest, EARSHOT_TLS: 'off', [name]: 'x.pem' });
      expect(refusalOf(() => readServeConfig(env)).details).toEqual([
        expect.stringContaining('EARSHOT_TLS=off does not go with'),
      ]);
    },
  );
});
