/** Sinks of `earshot.config.ts`: all forms, and refusals with place and reason. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { mqtt } from '../../../src/features/sinks/targets/mqtt.ts';
import { collection, defineConfig, type EarshotConfig } from '../../../src/index.ts';
import { createChain } from '../../admin/endpoint/certificate-chain.ts';
import { exporting, loadText, refusalAt } from '../../core/config/load-file.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { mqttTarget } from './mqtt-target.ts';

const load = (sinks: unknown, folder?: string) =>
  loadText(exporting({ subscriptions: { alps: {} }, sinks }), folder);

function secretFile(folder: string, name: string, text: string, mode = 0o600): string {
  writeFileSync(join(folder, name), text);
  chmodSync(join(folder, name), mode);
  return name;
}

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const bare = {
  subscriptions: [],
  events: [],
  filter: '',
  startAt: 'now',
  timeoutMs: 30_000,
  attemptsMax: 5,
};

describe('sinks', () => {
  it('are empty without a file, and when the file has none', async () => {
    expect((await loadText('export default { subscriptions: {} };')).sinks).toEqual([]);
    expect((await load({})).sinks).toEqual([]);
  });

  it('may be the only content of a file, for users who register with flags', async () => {
    const text = "export default { sinks: { act: { command: ['act'] } } };";
    const { sinks, subscriptions } = await loadText(text);
    expect(sinks).toMatchObject([{ name: 'act' }]);
    expect(subscriptions).toBeNull();
  });

  it('can be a command, a webhook, NATS and MQTT, with defaults', async () => {
    const { sinks, subscriptions } = await load({
      web: { webhook: 'https://hooks.example.org/x?a=b' },
      act: { command: ['python3', 'act.py', ''] },
      bus: { nats: { servers: ['nats://127.0.0.1:4222'], subject: 'earshot.{event}' } },
      broker: { mqtt: { url: 'mqtt://127.0.0.1:1883' } },
    });
    expect(sinks).toEqual([
      {
        ...bare,
        name: 'act',
        concurrency: 2,
        target: { kind: 'command', command: ['python3', 'act.py', ''] },
      },
      {
        ...bare,
        name: 'broker',
        concurrency: 32,
        target: mqttTarget('mqtt://127.0.0.1:1883'),
      },
      {
        ...bare,
        name: 'bus',
        concurrency: 32,
        target: {
          kind: 'nats',
          servers: ['nats://127.0.0.1:4222'],
          subject: 'earshot.{event}',
          credentials: { kind: 'none' },
          ca: null,
        },
      },
      {
        ...bare,
        name: 'web',
        concurrency: 8,
        target: { kind: 'webhook', url: 'https://hooks.example.org/x?a=b', secret: null, ca: null },
      },
    ]);
    expect(subscriptions).toMatchObject([{ name: 'alps' }]);
  });

  it('can be PostgreSQL, with defaults or with every field', async () => {
    const folder = temporaryDirectory();
    const { rootPem } = await createChain();
    writeFileSync(join(folder, 'ca.pem'), rootPem);
    const columns = { id: 'product_id', at: 'state_at', n: 'position', geom: 'footprint' };
    const tables = { products: 'gis.scenes', notifications: 'events', columns, create: false };
    const { sinks } = await load(
      {
        a: { postgres: { url: 'postgres:///gis?host=/run/postgresql' } },
        b: {
          postgres: {
            ...{
              url: 'postgres://me@db1,db2:5433/gis',
              ca: 'ca.pem',
              deleted: 'remove',
              ...tables,
            },
            passwordFile: secretFile(folder, 'password', 'a word\n'),
          },
        },
      },
      folder,
    );
    expect(sinks).toMatchObject([
      {
        ...{ name: 'a', concurrency: 256 },
        target: {
          ...{ kind: 'postgres', urls: ['postgres:///gis?host=/run/postgresql'], password: null },
          ...{ ca: null, products: 'earshot_products', columns: null, notifications: null },
          ...{ deleted: 'mark', create: true },
        },
      },
      {
        target: {
          urls: [
            'postgres://me@db1/gis?sslmode=verify-full',
            'postgres://me@db2:5433/gis?sslmode=verify-full',
          ],
          ...{ password: 'a word', ca: rootPem, deleted: 'remove', ...tables },
        },
      },
    ]);
  });

  it('accept every option, with secrets and certificates in files next to the config file', async () => {
    const folder = temporaryDirectory();
    const { rootPem } = await createChain();
    writeFileSync(join(folder, 'ca.pem'), rootPem);
    const [tokenFile, passwordFile] = [
      secretFile(folder, 'token', 'a-token\n'),
      secretFile(folder, 'password', 'a password\r\n', 0o400),
    ];
    const nats = { servers: ['tls://a.example.org:4222', 'tls://b.example.org'], subject: 'a.b' };
    const { sinks } = await load(
      {
        a: {
          webhook: 'https://localhost:1/',
          secretFile: secretFile(folder, 'secret', `${secret}\n`),
          ca: 'ca.pem',
          subscriptions: ['nile', 'alps', 'nile'],
          events: ['deleted', 'created'],
          filter: "startswith(Name,'S2')",
          from: 'start',
          concurrency: 64,
          timeoutSeconds: 5,
          attempts: 1,
        },
        b: { nats: { ...nats, tokenFile, ca: 'ca.pem' } },
        c: { nats: { ...nats, user: 'earshot', passwordFile }, format: 'cloudevents' },
        d: {
          mqtt: {
            url: 'mqtts://broker.example.org',
            topic: '/x/{collection}-{event}/{subscription}/{productId}',
            retain: true,
            user: 'earshot',
            passwordFile,
            ca: 'ca.pem',
            clientId: 'archive',
            sessionExpirySeconds: 0,
            metadataId: 'urn:wmo:md:centre:products',
          },
          format: 'wis2',
        },
      },
      folder,
    );
    expect(sinks).toMatchObject([
      {
        target: { kind: 'webhook', secret, ca: rootPem },
        subscriptions: ['nile', 'alps'],
        events: ['created', 'deleted'],
        filter: "startswith(Name,'S2')",
        startAt: 'start',
        concurrency: 64,
        timeoutMs: 5_000,
        attemptsMax: 1,
      },
      { target: { credentials: { kind: 'token', token: 'a-token' }, ca: rootPem } },
      {
        target: {
          credentials: { kind: 'user', user: 'earshot', password: 'a password' },
          format: 'cloudevents',
        },
      },
      {
        target: {
          kind: 'mqtt',
          url: 'mqtts://broker.example.org',
          topic: '/x/{collection}-{event}/{subscription}/{productId}',
          isRetained: true,
          login: { user: 'earshot', password: 'a password' },
          ca: rootPem,
          clientId: 'archive',
          sessionExpirySeconds: 0,
          metadataId: 'urn:wmo:md:centre:products',
          format: 'wis2',
        },
      },
    ]);
  });

  it('are typed in defineConfig, including filters built in code', () => {
    const config: EarshotConfig = {
      subscriptions: {},
      sinks: { a: { command: ['act'], filter: collection('SENTINEL-2'), events: ['created'] } },
    };
    expect(defineConfig(config)).toBe(config);
    // @ts-expect-error: a field that is none
    defineConfig({ subscriptions: {}, sinks: { a: { comand: ['act'] } } });
    // @ts-expect-error: an event that is none
    defineConfig({ subscriptions: {}, sinks: { a: { command: ['act'], events: ['made'] } } });
  });
});

describe('a faulty sink', () => {
  const one = 'set exactly one target: command, webhook, nats, mqtt or postgres';
  const nats = { servers: ['nats://a'], subject: 'a' };
  it.each<[sink: unknown, ...problems: string[]]>([
    [{}, `: ${one}`],
    [{ command: ['a'], webhook: 'https://a.example' }, `: ${one}`],
    [
      { command: ['a'], fitler: '' },
      ': "fitler" is not a known field. Did you mean filter? Known fields: command, …',
    ],
    [
      { nats: { ...nats, server: 'x' } },
      '.nats: "server" is not a known field. Did you mean servers? Known fields: servers, …',
    ],
    [{ command: [] }, '.command: must name a program'],
    [{ command: 'act.py' }, ".command: must be a list, such as ['node', 'act.js']"],
    [
      { webhook: 'http://hooks.example.org' },
      '.webhook: must be an https URL; http is allowed only for this machine…',
    ],
    [
      { webhook: 'https://me:hunter2@hooks.example.org' },
      '.webhook: must not contain a user name, password or #',
    ],
    [
      { nats: { ...nats, subject: 'earshot.>' } },
      '.nats.subject: must be tokens separated by dots…',
    ],
    [{ nats: { ...nats, servers: ['http://a'] } }, '.nats.servers.0: must be nats:// or tls://…'],
    [
      { nats: { ...nats, servers: ['nats://me:hunter2@a'] } },
      '.nats.servers.0: must be nats:// or tls://…',
    ],
    [
      { nats: { ...nats, servers: ['nats://a', 'tls://b'] } },
      '.nats.servers: must all be nats://, or all be tls://',
    ],
    [{ nats: { ...nats, user: 'x' } }, '.nats: user and passwordFile must be set together'],
    ...['a/+/b', '#', '$SYS/a', '', 'a/{product}', 'a\u0000b', 'a{', 'x'.repeat(65_536)].map(
      (topic): [unknown, string] => [
        { mqtt: { url: 'mqtt://a', topic } },
        '.mqtt.topic: must be a topic without wildcards (+, #) and without a leading $…',
      ],
    ),
    ...['ws://a', 'mqtt://me:hunter2@a', 'mqtt://a/path', 'a:1883', 'mqtt://'].map(
      (url): [unknown, string] => [{ mqtt: { url } }, '.mqtt.url: must be mqtt:// or mqtts://…'],
    ),
    [{ mqtt: { url: 'mqtt://a', ca: 'x' } }, '.mqtt: ca requires an mqtts:// URL'],
    [{ mqtt: { url: 'mqtt://a', user: 'x' } }, '.mqtt: user and passwordFile must be set together'],
    [{ mqtt: { url: 'mqtt://a', metadataId: 'x' } }, ": mqtt.metadataId requires format: 'wis2'"],
    [{ command: ['a'], format: 'cloudevents' }, '.format: must be document for this kind of sink'],
    [
      { webhook: 'https://a.example', format: 'wis2' },
      '.format: must be document or cloudevents for this kind of sink',
    ],
    [{ nats, format: 'xml' }, '.format: use one of …'],
    [{ command: ['a'], secretFile: 'x' }, ': secretFile requires webhook'],
    [
      { postgres: { url: 'mysql://me:hunter2@db/gis', tabel: 'x' } },
      '.postgres.url: must be postgres://user:password@host:5432/database…',
      '.postgres: "tabel" is not a known field…',
    ],
    [
      { postgres: { url: 'postgres://db/gis', products: 'a.b.c', deleted: 'drop', create: 1 } },
      '.postgres.products: must be a table of letters, digits and _, such as products or gis.products…',
      '.postgres.deleted: use one of mark, remove',
      '.postgres.create: must be true or false',
    ],
    [
      {
        postgres: {
          url: 'postgres://db/gis?sslmode=no-verify',
          passwordFile: 'x',
          ca: 'y',
          columns: { a: 'product_id', b: 'product_nam', c: 'product_id' },
        },
      },
      '.postgres: columns.b: unknown field product_nam; use product_name',
      '.postgres: columns must have a column for state_at',
      '.postgres: columns must have a column for position',
      '.postgres: columns must have a column for deleted_at',
      '.postgres: columns has several columns for product_id',
      '.postgres: passwordFile requires a user in the URL',
      '.postgres: ca requires verified TLS: remove sslmode from the URL',
    ],
    [
      { postgres: { url: 'postgres://me:hunter2@db/gis', passwordFile: 'x' } },
      '.postgres: passwordFile and a password in the URL must not be set together',
    ],
    [
      { postgres: { url: 'postgres://me:100%zz@db/gis' } },
      '.postgres.url: must be postgres://user:password@host:5432/database…',
    ],
    [
      { postgres: { url: 'postgres://db/gis', products: 'a', notifications: 'a' } },
      '.postgres: notifications must be a table of its own',
    ],
    [
      { command: ['a'], concurrency: 257, timeoutSeconds: 0, attempts: 1.5 },
      '.concurrency: must be a whole number from 1 to 256',
      '.timeoutSeconds: must be a whole number from 1 to 3600',
      '.attempts: must be a whole number from 1 to 100',
    ],
    [{ command: ['a'], events: ['made'] }, '.events.0: use one of …'],
    [{ command: ['a'], events: [] }, '.events: add an event, or omit this field'],
  ])('(%j) is refused with place and reason', async (sink, ...problems) => {
    const { sinks, path } = await load({ a: sink });
    expect(sinks).toEqual(refusalAt(path, 'sinks.a', problems));
    expect(JSON.stringify(sinks)).not.toContain('hunter2');
  });

  it('of MQTT has a client id of its own at a broker', async () => {
    const url = 'mqtt://broker.example';
    const other = { mqtt: { url: 'mqtt://other.example', clientId: 'earshot-a' } };
    const own = { a: { mqtt: { url } }, b: { mqtt: { url } }, c: other };
    expect((await load(own)).sinks).toHaveLength(3);
    const { sinks, path } = await load({ ...own, b: { mqtt: { url, clientId: 'earshot-a' } } });
    const problem = '.mqtt.clientId: has the same client id as the sink a; set another one';
    expect(sinks).toEqual(refusalAt(path, 'sinks.b', [problem]));
  });

  it('with wrong types is refused with the expected form and an example, in every field', async () => {
    const [sound, bus] = [{ command: ['a'] }, { servers: ['nats://a'], subject: 'a' }];
    const lists = ['command', 'subscriptions', 'events'];
    const texts = ['webhook', 'secretFile', 'ca', 'filter', 'from', 'concurrency', 'format'];
    const natsFields = ['servers', 'subject', 'user', 'passwordFile', 'tokenFile', 'ca'];
    const mqttFields = mqtt.targetFields ?? [];
    const cases: [place: string, sinks: unknown][] = [
      ['sinks', ['a']],
      ['sinks', 'a'],
      ['sinks.a', { a: 'act.py' }],
      ['sinks.a', { a: ['act.py'] }],
      ['sinks.a.nats', { a: { nats: 'nats://a' } }],
      ['sinks.a.mqtt', { a: { mqtt: 'mqtt://a' } }],
      ['sinks.a.postgres', { a: { postgres: 'postgres://db/gis' } }],
      ['sinks.a.postgres.url', { a: { postgres: {} } }],
      ['sinks.a.postgres.columns', { a: { postgres: { url: 'postgres://db/g', columns: [] } } }],
      ['sinks.a.nats.servers', { a: { nats: { subject: 'a' } } }],
      ['sinks.a.nats.subject', { a: { nats: { servers: ['nats://a'] } } }],
    ];
    for (const field of [...lists, ...texts]) {
      cases.push([`sinks.a.${field}`, { a: { ...sound, [field]: {} } }]);
    }
    for (const field of lists) {
      cases.push([`sinks.a.${field}.0`, { a: { ...sound, [field]: [5] } }]);
    }
    for (const field of natsFields) {
      cases.push([`sinks.a.nats.${field}`, { a: { nats: { ...bus, [field]: {} } } }]);
    }
    for (const field of mqttFields) {
      const broker = { url: 'mqtt://a', [field]: {} };
      cases.push([`sinks.a.mqtt.${field}`, { a: { mqtt: broker } }]);
    }
    for (const [place, sinks] of cases) {
      const { sinks: refused } = await load(sinks);
      const details = refused !== undefined && 'details' in refused ? refused.details : [];
      const detail = details.find((one) => one.startsWith(`${place}: `)) ?? '';
      expect(detail, place).toMatch(/ (such as|use one of|made with|a whole number from) .*\.$/);
      expect(details.join('\n'), place).not.toMatch(/Invalid|received|[Tt]oo (small|big)/);
    }
  });

  it('with problems in its name, its filter and its files is refused with all of them at once', async () => {
    const folder = temporaryDirectory();
    const web = { webhook: 'https://a.example' };
    writeFileSync(join(folder, 'no.pem'), 'nothing');
    const { sinks, subscriptions } = await load(
      {
        a: { ...web, secretFile: secretFile(folder, 'open', secret, 0o604), ca: 'no.pem' },
        b: {
          ...web,
          secretFile: secretFile(folder, 'short', 'whsec_aHVudGVyMg=='),
          filter: 'Nam eq 1',
        },
        c: { ...web, secretFile: 'gone' },
        d: { ...web, secretFile: secretFile(folder, 'empty', '\n') },
        e: { ...web, secretFile: '.' },
      },
      folder,
    );
    expect(sinks).toMatchObject({
      details: [
        `sinks.a.secretFile: every user of this machine can read ${folder}/open. Run: chmod o= ${folder}/open`,
        'sinks.a.ca: the file does not contain PEM certificates.',
        expect.stringMatching(/^sinks\.b\.secretFile: the file must contain whsec_ and 24 to 64 /),
        expect.stringMatching(/^sinks\.b\.filter: error/),
        `sinks.c.secretFile: ${folder}/gone cannot be read: there is no such file (ENOENT).`,
        'sinks.d.secretFile: the file is empty.',
        `sinks.e.secretFile: ${folder} is a directory, not a file.`,
      ],
    });
    expect(JSON.stringify(sinks)).not.toContain('aHVudGVyMg');
    // Faults there do not affect the subscriptions.
    expect(subscriptions).toMatchObject([{ name: 'alps' }]);
    const named = await load({ Archive: web });
    expect(named.sinks).toMatchObject({
      details: [expect.stringMatching(/^sinks\.Archive: use lower-case/)],
    });
  });

  it('leaves the others valid, unless the file as a whole cannot be read', async () => {
    const sound = { command: ['act'] };
    const { each } = await load({
      sound,
      unsigned: { webhook: 'https://a.example', secretFile: 'gone' },
      another: { ...sound, filter: 'Nam eq 1' },
    });
    expect(each).toMatchObject({
      definitions: [{ name: 'sound', target: { kind: 'command' } }],
      faulty: [
        { name: 'another', problems: [expect.stringMatching(/^sinks\.another\.filter: error/)] },
        {
          name: 'unsigned',
          problems: [expect.stringContaining('cannot be read: there is no such file (ENOENT).')],
        },
      ],
    });
    const whole = await load({ sound, formless: { comand: ['act'] } });
    expect(whole.each).toMatchObject({ code: 'configuration' });
    expect(whole.each).toEqual(whole.sinks);
  });
});
