/** Sinks of `earshot.config.ts`: all forms, and refusals with place and reason. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { dayUs } from '../../../src/core/terms/dates.ts';
import { createChain } from '../../admin/endpoint/certificate-chain.ts';
import { exporting, loadText, refusalAt } from '../../core/config/load-file.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { postgresTarget } from './postgres-database.ts';
import { mqttTarget, webhookTarget } from './sink-definition.ts';

const load = (sinks: unknown, folder?: string) =>
  loadText(exporting({ subscriptions: { alps: {} }, sinks }), folder);

function secretFile(folder: string, name: string, text: string, mode = 0o600): string {
  writeFileSync(join(folder, name), text);
  chmodSync(join(folder, name), mode);
  return name;
}

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

describe('sinks', () => {
  it('are empty by default, and may be the only content of a file', async () => {
    const none = { definitions: [], faulty: [] };
    expect((await loadText('export default { subscriptions: {} };')).sinks).toEqual(none);
    expect((await load({})).sinks).toEqual(none);
    const text = "export default { sinks: { act: { command: ['act'] } } };";
    const only = await loadText(text);
    expect(only).toMatchObject({ sinks: { definitions: [{ name: 'act' }] }, subscriptions: null });
  });

  it('can be of each kind, with defaults', async () => {
    const { sinks } = await load({
      web: { webhook: 'https://hooks.example.org/x?a=b' },
      act: { command: ['python3', 'act.py', ''] },
      bus: { nats: { servers: ['nats://127.0.0.1:4222'], subject: 'earshot.{event}' } },
      broker: { mqtt: { url: 'mqtt://127.0.0.1:1883' } },
      gis: { postgres: { url: 'postgres:///gis?host=/run/postgresql' } },
    });
    const nats = { servers: ['nats://127.0.0.1:4222'], subject: 'earshot.{event}' };
    const bare = {
      ...{ subscriptions: [], events: [], filter: '', maxAgeUs: null, batch: null },
      message: { format: 'document', stacIds: 'earshot' },
      ...{ startAt: 'now', timeoutMs: 30_000, attemptsMax: 5 },
    };
    // Functions do not cross the border of processes.
    const { login: _, ...web } = webhookTarget('https://hooks.example.org/x?a=b');
    const expected: [name: string, concurrency: number, target: object][] = [
      ['act', 2, { kind: 'command', command: ['python3', 'act.py', ''] }],
      ['broker', 32, mqttTarget('mqtt://127.0.0.1:1883')],
      ['bus', 32, { kind: 'nats', ...nats, login: null, ca: null }],
      ['gis', 16, postgresTarget('postgres:///gis?host=/run/postgresql')],
      ['web', 8, web],
    ];
    const definitions = expected.map(([name, concurrency, target]) => {
      return { ...bare, name, concurrency, target };
    });
    expect(sinks).toEqual({ definitions, faulty: [] });
  });

  it('accept every option, with secrets and certificates in files next to the config file', async () => {
    const folder = temporaryDirectory();
    const { rootPem } = await createChain();
    writeFileSync(join(folder, 'ca.pem'), rootPem);
    const [tokenFile, passwordFile] = [
      secretFile(folder, 'token', 'a-token\n'),
      secretFile(folder, 'password', 'a password\r\n', 0o400),
    ];
    const rules = {
      ...{ filter: "startswith(Name,'S2')", concurrency: 64 },
      events: ['deleted', 'created'],
    };
    const nats = { servers: ['tls://a.example.org:4222', 'tls://b.example.org'], subject: 'a.b' };
    const mqtt = {
      ...{ url: 'mqtts://broker.example.org', clientId: 'archive' },
      ...{ topic: '/x/{collection}-{event}/{subscription}/{productId}' },
    };
    const metadataId = 'urn:wmo:md:centre:products';
    const tables = { products: 'gis.scenes', notifications: 'events' };
    const login = { user: 'earshot', passwordFile, ca: 'ca.pem' };
    const url = 'postgres://me@db1,db2:5433/gis';
    const { sinks } = await load(
      {
        a: {
          ...{ webhook: 'https://localhost:1/', ca: 'ca.pem', ...rules },
          ...{ subscriptions: ['nile', 'alps', 'nile'], from: 'start' },
          ...{ timeoutSeconds: 5, attempts: 1, maxAge: '30d', method: 'PUT' },
          ...{ format: 'stac', stacIds: 'catalogue', batch: { items: 50, seconds: 10 } },
          ...{ bearerFile: tokenFile, headerFiles: { 'X-Api-Key': passwordFile } },
          secretFile: secretFile(folder, 'secret', `${secret}\n`),
        },
        b: { nats: { ...nats, tokenFile, ca: 'ca.pem' } },
        c: { nats: { ...nats, ...login }, format: 'cloudevents' },
        d: { mqtt: { ...mqtt, retain: true, ...login }, format: 'wis2', metadataId },
        e: { postgres: { url, passwordFile, ca: 'ca.pem', ...tables } },
        f: { webhook: 'http://Broker.Default:8080/', allowHttpTo: ['Broker.default'] },
        g: { stac: 'http://[fd00::2]:8080/', allowHttpTo: ['fd00::2'] },
      },
      folder,
    );
    const known = { user: 'earshot', password: 'a password' };
    const verified = (server: string) => `postgres://me@${server}/gis?sslmode=verify-full`;
    const definitions = [
      {
        ...{ ...rules, events: ['created', 'deleted'], subscriptions: ['nile', 'alps'] },
        ...{ startAt: 'start', timeoutMs: 5_000, attemptsMax: 1, maxAgeUs: 30 * dayUs },
        ...{ batch: { items: 50, waitMs: 10_000 } },
        message: { format: 'stac', stacIds: 'catalogue' },
        target: { kind: 'webhook', secret, ca: rootPem, method: 'PUT', isBatch: true },
      },
      { target: { login: { token: 'a-token' }, ca: rootPem } },
      {
        message: { format: 'cloudevents' },
        target: { login: { user: 'earshot', pass: 'a password' } },
      },
      {
        message: { format: 'wis2', metadataId },
        target: { kind: 'mqtt', ...mqtt, retain: true, login: known, ca: rootPem },
      },
      {
        target: {
          ...{ urls: [verified('db1'), verified('db2:5433')], password: 'a password' },
          ...{ ca: rootPem, ...tables },
        },
      },
      { target: { kind: 'webhook', url: 'http://broker.default:8080/' } },
      { target: { kind: 'stac', url: 'http://[fd00::2]:8080' } },
    ];
    expect(sinks).toMatchObject({ definitions });
  });
});

describe('a faulty sink', () => {
  const one = ': set exactly one target: command, …';
  const nats = (fields: object) => ({ nats: { servers: ['nats://a'], subject: 'a', ...fields } });
  const mqtt = (fields: object) => ({ mqtt: { url: 'mqtt://a', ...fields } });
  const postgres = (fields: object) => ({ postgres: { url: 'postgres://db/gis', ...fields } });
  const together = 'user and passwordFile must be set together';
  it.each<[sink: unknown, ...problems: string[]]>([
    [{}, one],
    [{ command: ['a'], webhook: 'https://a.example' }, one],
    [{ command: ['a'], fitler: '' }, ': unknown field "fitler"'],
    [nats({ server: 'x' }), '.nats: unknown field "server"'],
    [{ command: [] }, '.command: must name a program'],
    [{ command: 'act.py' }, ".command: must be a list, such as ['node', 'act.js']"],
    [{ webhook: 'ftp://hooks.example.org' }, '.webhook: must be an https URL, …'],
    [{ webhook: 'http://hooks.example.org' }, ': http is allowed only for …'],
    [
      { webhook: 'http://a.example', allowHttpTo: ['b.example'], ca: 'x' },
      ': http is allowed only for …',
      ': ca requires an https URL',
    ],
    [{ webhook: 'https://me:hunter2@a.example' }, '.webhook: must not contain a user name, …'],
    [nats({ subject: 'earshot.>' }), '.nats.subject: must be tokens separated by dots…'],
    [nats({ servers: ['http://a'] }), '.nats.servers.0: must be nats:// or tls://…'],
    [nats({ servers: ['nats://me:hunter2@a'] }), '.nats.servers.0: must be nats:// or tls://…'],
    [nats({ servers: ['nats://a', 'tls://b'] }), '.nats.servers: must all be nats://, …'],
    [nats({ user: 'x' }), `.nats: ${together}`],
    ...['a/+/b', '#', '$SYS/a', '', 'a/{product}', 'a\u0000b', 'a{', 'x'.repeat(65_536)].map(
      (topic): [unknown, string] => [mqtt({ topic }), '.mqtt.topic: must be a topic without …'],
    ),
    ...['ws://a', 'mqtt://me:hunter2@a', 'mqtt://a/path', 'a:1883', 'mqtt://'].map(
      (url): [unknown, string] => [mqtt({ url }), '.mqtt.url: must be mqtt:// or mqtts://…'],
    ),
    [mqtt({ ca: 'x' }), '.mqtt: ca requires an mqtts:// URL'],
    [mqtt({ user: 'x' }), `.mqtt: ${together}`],
    [
      { ...mqtt({}), metadataId: 'x', stacIds: 'catalogue', batch: { items: 1, seconds: 1 } },
      ": stacIds requires a sink of the kind stac, or format: 'stac' or 'cloudevents'",
      ": metadataId requires format: 'wis2'",
      ': batch requires a webhook or a command',
    ],
    [{ ...postgres({}), format: 'stac' }, ': format cannot be set: postgres …'],
    [
      { command: ['a'], secretFile: 'x', method: 'PUT', bearerFile: 'y', ca: 'z' },
      ': secretFile requires webhook',
      ': method requires webhook',
      ': bearerFile requires webhook or stac; …',
      ': ca requires webhook or stac; …',
    ],
    [
      { webhook: 'https://a.example', mode: 'binary', batch: { items: 2, seconds: 1 } },
      ": mode requires format: 'cloudevents'",
      ': mode binary and batch must not be set together',
    ],
    [
      { webhook: 'https://a.example', headerFiles: { 'Content-Type': 'x' } },
      '.headerFiles.Content-Type: must be the name of a header …',
    ],
    [
      { webhook: 'https://a.example', bearerFile: 'x', headerFiles: { Authorization: 'y' } },
      ': bearerFile and the header authorization must not be set together',
    ],
    [{ stac: 'https://a.example/stac?token=x' }, '.stac: must not contain ?'],
    ...['http://a.example', 'a.example:80', '', 'a/b'].map((host): [unknown, string] => [
      { webhook: 'https://a.example', allowHttpTo: [host] },
      '.allowHttpTo.0: must be the name of a host without scheme and port, …',
    ]),
    [{ command: ['a'], maxAge: '0d' }, '.maxAge: must be longer than 0'],
    [{ command: ['a'], batch: { items: 101, seconds: 1 } }, '.batch.items: must be a whole …'],
    [
      { command: ['a'], maxAge: '30' },
      '.maxAge: must be an age in hours, days or weeks, such as 36h, 365d or 52w',
    ],
    ...['mysql://me:hunter2@db/gis', 'postgres://me:100%zz@db/gis'].map(
      (url): [unknown, string] => [postgres({ url }), '.postgres.url: must be postgres://user…'],
    ),
    [
      postgres({ products: 'a.b.c' }),
      '.postgres.products: must be a table of letters, digits and _, …',
    ],
    [
      postgres({ url: 'postgres://db/g?sslmode=no-verify', passwordFile: 'x', ca: 'y' }),
      '.postgres: passwordFile requires a user in the URL',
      '.postgres: ca requires verified TLS: remove sslmode from the URL',
    ],
    [
      postgres({ url: 'postgres://me:hunter2@db/gis', passwordFile: 'x' }),
      '.postgres: passwordFile and a password in the URL must not be set together',
    ],
    [
      postgres({ products: 'a', notifications: 'a' }),
      '.postgres: notifications must be a table of its own',
    ],
    [
      { command: ['a'], concurrency: 257, timeoutSeconds: 0, attempts: 1.5 },
      '.concurrency: must be a whole number from 1 to 256',
      '.timeoutSeconds: must be a whole number from 1 to 3600',
      '.attempts: must be a whole number from 1 to 100',
    ],
    [{ command: ['a'], events: [] }, '.events: add an event, or omit this field'],
    ['act.py', ': must be an object, such as …'],
    [{ mqtt: 'mqtt://a' }, '.mqtt: must be an object, such as …'],
  ])('(%j) is refused with place and reason', async (sink, ...problems) => {
    const { sinks, path } = await load({ a: sink });
    expect(sinks).toEqual(refusalAt(path, 'sinks.a', problems));
    expect(JSON.stringify(sinks)).not.toContain('hunter2');
  });

  it('with problems in its name, its filter and its files is refused with all of them at once', async () => {
    const folder = temporaryDirectory();
    const web = { webhook: 'https://a.example' };
    writeFileSync(join(folder, 'no.pem'), 'nothing');
    const short = secretFile(folder, 'short', 'whsec_aHVudGVyMg==');
    const { sinks, subscriptions } = await load(
      {
        a: { ...web, secretFile: secretFile(folder, 'open', secret, 0o604), ca: 'no.pem' },
        b: { ...web, secretFile: short, filter: 'Nam eq 1' },
        c: { ...web, secretFile: 'gone' },
        d: { ...web, secretFile: secretFile(folder, 'empty', '\n') },
      },
      folder,
    );
    const faulty = 'faulty' in sinks ? sinks.faulty : [];
    expect(faulty.flatMap(({ problems }) => problems)).toEqual([
      'sinks.a.ca: the file does not contain PEM certificates.',
      `sinks.a.secretFile: every user of this machine can read ${folder}/open. Run: chmod o= ${folder}/open`,
      expect.stringMatching(/^sinks\.b\.secretFile: the file must contain whsec_ and 24 to 64 /),
      expect.stringMatching(/^sinks\.b\.filter: error/),
      expect.stringMatching(/^sinks\.c\.secretFile: .* \(ENOENT\)/),
      'sinks.d.secretFile: the file is empty.',
    ]);
    expect(JSON.stringify(sinks)).not.toContain('aHVudGVyMg');
    // Faults there do not affect the subscriptions.
    expect(subscriptions).toMatchObject([{ name: 'alps' }]);
    const named = await load({ Archive: web });
    expect(named.sinks).toMatchObject({
      details: [expect.stringMatching(/^sinks\.Archive: use lower-case/)],
    });
  });
});
