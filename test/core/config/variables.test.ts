/**
 * The table of variables: accepted and refused values of each, and the reference generated from it.
 */
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { generatedFiles } from '../../../scripts/generated-files.ts';
import { loadServed } from '../../../src/core/config/config.ts';
import {
  checkSections,
  defineSections,
  type Reader,
  type Variables,
} from '../../../src/core/config/load.ts';
import { settings } from '../../helpers/settings.ts';
import { type Env, environment } from './environment.ts';

const outboundUrls = {
  good: {
    'https://catalogue.example.org/': 'https://catalogue.example.org',
    'http://127.0.0.1:8091/a/token': 'http://127.0.0.1:8091/a/token',
    'http://localhost:8091': 'http://localhost:8091',
    'http://[::1]:8091': 'http://[::1]:8091',
  },
  bad: ['http://127.0.0.1.example.org', 'catalogue.example.org', 'https://a:b@example.org'],
};
const amounts = {
  good: { '0': 0, '60': 60, '999999999': 999_999_999 },
  bad: ['-1', '1.5', '007', 'all', '1e3', '1000000000'],
};
const counts = { good: { '3': 3 }, bad: ['0', '-1', '2.5', 'two', '1e9'] };

const switches = { good: { on: true, off: false }, bad: ['yes', 'ON', '1'] };

/** For each variable: texts with their values, and texts that are refused. */
const examples = {
  EARSHOT_PUBLIC_URL: {
    good: {
      'https://earshot.example.org:443/': 'https://earshot.example.org',
      'https://[2001:db8::1]:8443': 'https://[2001:db8::1]:8443',
    },
    bad: [
      'http://example.org',
      'https://example.org/path',
      'https://user@example.org',
      'https://a/#a',
    ],
  },
  EARSHOT_LISTEN: {
    good: {
      '127.0.0.1:0': { host: '127.0.0.1', port: 0 },
      'localhost:65535': { host: 'localhost', port: 65_535 },
      '[::]:8443': { host: '::', port: 8443 },
      '[2001:db8::A]:443': { host: '2001:db8::A', port: 443 },
    },
    bad: ['8443', ':8443', '::1:8443', '[::1]', '0.0.0.0:65536', '0.0.0.0:', 'host:http', '[]:80'],
  },
  EARSHOT_DATA_DIR: {
    good: { '/var/lib/earshot': '/var/lib/earshot', data: resolve('data') },
    bad: [],
  },
  EARSHOT_DISK_RESERVE: {
    good: {
      '256MiB': 2 ** 28,
      '1.5GB': 1_500_000_000,
      '64 MiB': 2 ** 26,
      '10G': 10_000_000_000,
      '0': 0,
    },
    bad: ['256mib', 'much', '-1', '1e9', '5%', 'MiB'],
  },
  EARSHOT_KEEP: {
    good: {
      '365d': { ageUs: 365 * 86_400_000_000, bytes: null },
      '50GB': { ageUs: null, bytes: 50_000_000_000 },
      '20GiB, 52w': { ageUs: 364 * 86_400_000_000, bytes: 20 * 2 ** 30 },
    },
    bad: ['365', '1y', '12m', '50gb', '0GB', '365d,30d', '365d 50GB', '23h', '99MB', ','],
  },
  EARSHOT_BACKUP_DIR: { good: { backups: resolve('backups') }, bad: [] },
  EARSHOT_BACKUP_EVERY: counts,
  EARSHOT_BACKUP_KEEP: counts,
  EARSHOT_CONSOLE_LISTEN: {
    good: { '[::1]:8080': { host: '::1', port: 8080 }, off: null },
    bad: ['8080', 'Off', 'on', 'localhost'],
  },
  EARSHOT_INDEX: switches,
  EARSHOT_CONSOLE_PASSWORD: { good: { ' with: blanks ': ' with: blanks ' }, bad: [] },
  EARSHOT_CONSOLE_URL: {
    good: {
      'https://example.org/earshot/': 'https://example.org/earshot',
      'https://Example.org:443/a/b-c_1.~d': 'https://example.org/a/b-c_1.~d',
      'http://10.0.0.1:8080': 'http://10.0.0.1:8080',
    },
    bad: [
      ...['example.org/earshot', 'ftp://example.org/', 'https://example.org/a//b', 'https://a:b@['],
      ...['https://example.org/a%2F', 'https://example.org/?a=1', 'https://me@example.org/'],
      ...['https://example.org/"onload', 'https://example.org/ä', 'a:b@c'],
    ],
  },
  EARSHOT_CONSOLE_ORIGINS: {
    good: {
      'https://maps.example.org': ['https://maps.example.org'],
      'https://a.org,http://localhost:5173 , http://[::1]:1': [
        ...['https://a.org', 'http://localhost:5173', 'http://[::1]:1'],
      ],
    },
    bad: [
      ...['*', 'null', 'https://*.example.org', 'maps.example.org', 'https://maps.example.org/'],
      ...['https://Maps.example.org', 'https://maps.example.org:443', 'https://a.org,', ','],
      'https://a.org https://b.org',
      'https://me:pass@a.org',
      'https://me:pa,ss@a.org',
      'a:b@c',
    ],
  },
  EARSHOT_ENDPOINT_USERNAME: { good: { имя: 'имя' }, bad: ['user:name'] },
  EARSHOT_ENDPOINT_PASSWORD: {
    good: { ' with: blanks ': ' with: blanks ', '12characters': '12characters' },
    bad: ['11character', 'secret', 'größe:12345', '           '],
  },
  EARSHOT_TLS: {
    good: { files: 'files', acme: 'acme', off: 'off' },
    bad: ['on', 'Off', 'letsencrypt'],
  },
  EARSHOT_TLS_CERT: { good: { 'c.pem': 'c.pem' }, bad: [] },
  EARSHOT_TLS_KEY: { good: { 'k.pem': 'k.pem' }, bad: [] },
  EARSHOT_ACME_DIRECTORY: {
    good: {
      'https://ca.example.org/acme/directory/': 'https://ca.example.org/acme/directory/',
      'https://ca.example.org/acme?profile=a': 'https://ca.example.org/acme?profile=a',
      'http://127.0.0.1:8000/dir': 'http://127.0.0.1:8000/dir',
    },
    bad: ['http://ca.example.org/dir', 'ca.example.org', 'https://me:word@ca.example.org/dir'],
  },
  EARSHOT_ACME_EMAIL: {
    good: { 'me@example.org': 'me@example.org' },
    bad: ['me', 'mailto:me@example.org'],
  },
  EARSHOT_ACME_AGREE: { good: { yes: 'yes' }, bad: ['no', 'true', 'Yes'] },
  EARSHOT_ACME_CHALLENGE: {
    good: { 'http-01': 'http-01', 'tls-alpn-01': 'tls-alpn-01' },
    bad: ['dns-01', 'http'],
  },
  EARSHOT_ACME_HTTP_LISTEN: { good: { '[::]:80': { host: '::', port: 80 } }, bad: ['80'] },
  EARSHOT_ACME_CA: { good: { 'ca.pem': 'ca.pem' }, bad: [] },
  EARSHOT_ACME_EAB_KEY_ID: { good: { 'kid-1': 'kid-1' }, bad: [] },
  EARSHOT_ACME_EAB_HMAC_KEY: { good: { 'zWND-Z_M=': 'zWND-Z_M=' }, bad: ['two words', 'a:b'] },
  EARSHOT_TRUSTED_PROXIES: {
    good: {
      '127.0.0.1': ['127.0.0.1'],
      '10.0.0.0/8, ::1,2001:db8::/32': ['10.0.0.0/8', '::1', '2001:db8::/32'],
    },
    bad: ['localhost', '10.0.0.0/33', '127.0.0.1,', '1.2.3'],
  },
  EARSHOT_PROBE_CA: { good: { 'ca.pem': 'ca.pem' }, bad: [] },
  EARSHOT_CATALOGUE_URL: {
    good: {
      ...outboundUrls.good,
      'https://catalogue.example.org/odata/v1/': 'https://catalogue.example.org',
    },
    bad: outboundUrls.bad,
  },
  EARSHOT_TOKEN_URL: outboundUrls,
  EARSHOT_CLIENT_ID: { good: { 'cdse-public': 'cdse-public' }, bad: [] },
  EARSHOT_ACCOUNT_USERNAME: { good: { 'me@example.org': 'me@example.org' }, bad: [] },
  EARSHOT_ACCOUNT_PASSWORD: { good: { ' with: blanks ': ' with: blanks ' }, bad: [] },
  EARSHOT_ACCOUNT_TOTP: {
    good: { '123 456': '123456', 'jbsw y3dp ehpk 3pxp': 'jbswy3dpehpk3pxp' },
    bad: ['12345', '1234567', 'not-base-32-189'],
  },
  EARSHOT_ACCESS_TOKEN: { good: { 'eyJ.a-b_c': 'eyJ.a-b_c' }, bad: ['two words', 'tokén'] },
  EARSHOT_SUBSCRIPTIONS_RUNNING_MAX: counts,
  EARSHOT_SUBSCRIPTIONS_MAX: counts,
  EARSHOT_SUMMARY: {
    good: { off: 'off', each: 'each', digest: 'digest' },
    bad: ['on', 'Each', 'all'],
  },
  EARSHOT_INFERENCE_URL: {
    good: {
      ...outboundUrls.good,
      'https://inference.example.org/openai/v1/': 'https://inference.example.org',
      'http://[::1]:1/openai/v1/chat/completions': 'http://[::1]:1',
    },
    bad: outboundUrls.bad,
  },
  EARSHOT_INFERENCE_API_KEY: {
    good: { 'sk-a.b_c/d=': 'sk-a.b_c/d=' },
    bad: ['two words', 'kéy', 'a\tb'],
  },
  EARSHOT_INFERENCE_MODEL: {
    good: { 'openai/gpt-oss-120b': 'openai/gpt-oss-120b', 'a/b/c.d:e': 'a/b/c.d:e' },
    bad: ['gpt-oss-120b', 'openai/', 'openai//gpt', 'open ai/gpt', 'a/б', `a/${'b'.repeat(200)}`],
  },
  EARSHOT_SUMMARY_REQUESTS_PER_DAY: amounts,
  EARSHOT_SUMMARY_TOKENS_PER_DAY: amounts,
  EARSHOT_RECONCILE: switches,
  EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: {
    good: { '1': 1, '600': 600 },
    bad: ['0', '-1', '1.5', 'many'],
  },
  EARSHOT_PULL_REQUESTS_PER_MINUTE: counts,
  EARSHOT_ALERT_URL: {
    good: {
      'https://chat.example.org/hooks/a?b=c': 'https://chat.example.org/hooks/a?b=c',
      'http://127.0.0.1:9000/': 'http://127.0.0.1:9000/',
    },
    bad: ['http://chat.example.org/', 'chat.example.org', 'https://a:b@chat.example.org/'],
  },
  EARSHOT_ALERT_COMMAND: {
    good: {
      '/bin/notify': ['/bin/notify'],
      ' /bin/notify  --now me ': ['/bin/notify', '--now', 'me'],
    },
    bad: ['  '],
  },
  EARSHOT_LOG_URL: {
    good: {
      'postgres://earshot:word@127.0.0.1:5433/earshot': [
        'postgres://earshot:word@127.0.0.1:5433/earshot',
      ],
      'postgresql:///earshot?host=/run/postgresql': ['postgres:///earshot?host=/run/postgresql'],
      'postgres://earshot@db1:5432,db2/earshot?sslrootcert=ca.pem': [
        'postgres://earshot@db1:5432/earshot?sslrootcert=ca.pem&sslmode=verify-full',
        'postgres://earshot@db2/earshot?sslrootcert=ca.pem&sslmode=verify-full',
      ],
      'postgres://db/earshot?sslmode=disable': ['postgres://db/earshot?sslmode=disable'],
    },
    bad: ['postgres://db', 'mysql://db/earshot', 'db/earshot', 'postgres://a:b:c@db:port/earshot'],
  },
  EARSHOT_LOG_SYNC: { good: { any: 'any', standby: 'standby' }, bad: ['on', 'ANY'] },
  EARSHOT_NODE: { good: { 'receiver-1': 'receiver-1' }, bad: ['receiver 1', '-', 'a/b'] },
  EARSHOT_LOG_LEVEL: {
    good: { debug: 'debug', info: 'info', warn: 'warn', error: 'error' },
    bad: ['INFO', 'trace', '3'],
  },
} as Record<string, { good: Record<string, unknown>; bad: string[] }>;

const rows = Object.entries(settings.variables);
const names = rows.map(([name]) => name);
const good = names.flatMap((name) =>
  Object.entries(examples[name]?.good ?? {}).map(([text, value]) => ({ name, text, value })),
);
const bad = names.flatMap((name) => (examples[name]?.bad ?? []).map((text) => ({ name, text })));

function read(name: string, env: Env) {
  const own = { one: ({ value }: Reader<Variables>) => value(name as keyof Variables) };
  const sections = defineSections(settings.variables, own);
  const place = { ...environment(env), settings: { ...settings, sections } };
  const { config, problems } = checkSections(place, ['one']);
  return { value: config.one, problems };
}

it('every variable has accepted and refused values here', () => {
  expect(Object.keys(examples).toSorted()).toEqual(names.toSorted());
});

describe('a variable', () => {
  it.each(good)('$name=$text is read', ({ name, text, value }) => {
    expect(read(name, { [name]: text })).toEqual({ value, problems: [] });
  });

  it.each(bad)('$name=$text is refused with a valid example', ({ name, text }) => {
    const { problems, ...others } = read(name, { [name]: text });
    expect(others).toEqual({});
    expect(problems).toHaveLength(1);
    const [{ variable, message = '', advice = '' } = {}] = problems;
    expect(variable).toBe(name);
    expect(message).toMatch(new RegExp(`^${name}: .*\\.$`));
    // One example, in the message or after it.
    expect(`${message} ${advice}`.match(/ such as |Example: /g)?.length).toBeGreaterThan(0);
    expect(advice === '').toBe(message.includes(' such as '));
  });

  it.each(names)('%s is refused without the password in it', (name) => {
    const urls = ['https://me:word7@a.org', 'https//me:word7@a.org', 'me:word7@a.org'];
    const odd = ['https://me:word7,a@a.org', 'https://me:wo/word7@a.org,b', 'a:word7@['];
    for (const text of [...urls, ...odd])
      expect(JSON.stringify(read(name, { [name]: text }).problems)).not.toContain('word7');
  });

  it.each(names)('%s counts as unset when empty', (name) => {
    expect(read(name, { [name]: '' })).toEqual(read(name, {}));
  });

  it.each(rows)('%s has an example that is accepted', (_name, { schema, example }) => {
    expect(schema.safeParse(example).success).toBe(true);
  });
});

it('the example file is a complete configuration once its lines are uncommented', async () => {
  const lines = (await generatedFiles())['.env.example']?.match(/(?<=^# )EARSHOT_[A-Z_]+=.*$/gm);
  expect(lines).toHaveLength(rows.length);
  const env = Object.fromEntries((lines ?? []).map((line) => line.split(/=(.*)/s)));
  expect(loadServed(environment(env), true)).toMatchObject({ logLevel: 'info' });
});
