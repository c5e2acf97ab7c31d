/** Malformed and unusual HTTP: request lines, framing, headers, logins and bodies, from unknown clients and senders. */
import { METHODS } from 'node:http';
import { refusedRequests } from './refused-requests.ts';
import {
  basicLogin,
  type CaseContext,
  headThen,
  type Kind,
  kind,
  randomBytes,
  refused,
  request,
} from './requests.ts';

const targets: readonly string[] = [
  ...['/', '//notifications', '/./notifications', '/NOTIFICATIONS', '/notifications/x/y', '*', ''],
  '/notifications/../api/products',
  '/notifications/%2e%2e/%2e%2e/etc/passwd',
  '/notifications/%',
  '/notifications/%00',
  '/notifications/%c0%ae',
  '/notifications\\x',
  '/notifications/x%0d%0aX:1',
  ...['http://a:b@localhost/notifications', 'ftp://localhost/notifications', 'localhost:443'],
  ...['/metrics', '/api/status', '/.env', '/earshot.db', '/__proto__', '/constructor'],
  `/notifications/${'a'.repeat(30_000)}`,
];

const hello = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);

const ends = { connection: 'ends' } as const;

const requestLines: readonly Kind[] = [
  kind(
    8,
    'target',
    { ...ends, statuses: [400, 404, 431, ...refused] },
    ({ random, notification }) => {
      const method = random.pick(['GET', 'POST', 'HEAD']);
      const body = method === 'POST' ? notification() : '';
      return request({ method, target: random.pick(targets), body });
    },
  ),
  // The body of a method without one may be read as another request.
  kind(5, 'method', { ...ends, answersMax: 2 }, ({ random, notification }) => {
    const invented = ['', 'X', 'POSTS', 'post', 'GETPOST', 'A'.repeat(random.integer(20, 5_000))];
    const paths = ['/notifications', '/notifications/x', '/', '*', 'localhost:443'];
    const method = random.pick([...METHODS, ...METHODS, ...invented]);
    const body = random.chance(0.5) ? notification() : '';
    return request({ method, target: random.pick(paths), body });
  }),
  kind(2, 'no TLS', { answersMax: 0, connection: 'foreign' }, ({ random }) => {
    const tail = randomBytes(random, random.integer(0, 1_000));
    return random.pick([tail, Buffer.concat([hello, tail]), request({ body: 'x' })]);
  }),
];

/** Smuggled second request; it would be answered with 404. */
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n';

const either = { sender: 'either', connection: 'ends' } as const;

const framing: readonly Kind[] = [
  // Answered at most once, with a refusal; the body is never read as a request.
  kind(20, 'malformed', { ...either, connection: 'closes' }, ({ random, login, notification }) => {
    const head = (...lines: string[]) =>
      request({ headers: [...login, ...lines] }).toString('latin1');
    const body = random.pick([smuggled, `0\r\n\r\n${smuggled}`, notification()]);
    const refusedRequest = random.pick(refusedRequests(head, body));
    const whole = Buffer.from(refusedRequest + smuggled, 'latin1');
    const cut = random.chance(0.5) ? whole.length : random.integer(1, whole.length);
    return [whole.subarray(0, cut), whole.subarray(cut)];
  }),
  // A body of the correct length is never read as the next request.
  kind(2, 'framing: GET with a body', { statuses: refused }, ({ random }) => {
    const method = random.chance(0.3) ? 'HEAD' : 'GET';
    return request({ method, body: smuggled.repeat(random.integer(1, 3)) });
  }),
  kind(2, 'framing: truncated', either, ({ random, login, notification }) => {
    const whole = request({ headers: login, body: notification() });
    return whole.subarray(0, random.integer(1, whole.length - 1));
  }),
];

const unusualHeaders: readonly string[] = [
  'nonsense',
  ': x',
  'X : y',
  'X\0: y',
  'X: a\0b',
  'X: a\x7fb',
  'X: y\r\n folded',
  'X: y\rZ: z',
  ...['X: y\nZ: z', 'X: \xff\xfe', '\xc4: x', 'Host: other', 'Host:', 'Host: h@x', 'Host: [::1'],
  ...['Connection: close, keep-alive', 'Connection: Host', 'Expect: 100-continue, x', 'Expect:'],
  ...['Content-Encoding: br, gzip', 'Trailer: Content-Length', 'X-HTTP-Method-Override: PUT'],
  ...['X-Original-URL: /metrics', 'X-Forwarded-For: %{jndi:ldap://x}', 'Forwarded: for=::1'],
  ...['Sec-Fetch-Site: cross-site', 'Content-Type: ;;;', '__proto__: x', 'Authorization: Basic'],
];

const headers: readonly Kind[] = [
  kind(8, 'headers: unusual', ends, ({ random }) => {
    // They may include a second Host.
    const some = Array.from({ length: random.integer(1, 4) }, () => random.pick(unusualHeaders));
    return request({ method: random.pick(['GET', 'DELETE', 'OPTIONS']), headers: some });
  }),
  kind(2, 'headers: huge', { statuses: [400, 431, ...refused] }, ({ random }) => {
    const text = 'x'.repeat(random.integer(15_000, 70_000));
    const all = [`X: ${text}`, `${text}: x`, `Cookie: ${text}`, `Authorization: Basic ${text}`];
    return request({ method: 'GET', headers: [random.pick(all)] });
  }),
  // Each of the pipelined requests is answered, in order.
  kind(1, 'pipelined', { statuses: [404], answersMax: 20 }, () =>
    Buffer.concat(Array(20).fill(request({ method: 'GET', target: '/nowhere' }))),
  ),
];

function withLogin({ random, notification }: CaseContext, value: string): Buffer {
  const method = random.pick(['GET', 'POST', 'POST', 'HEAD']);
  const body = method === 'POST' ? notification() : '';
  return request({ method, headers: [`Authorization: ${value}`], body });
}

const logins: readonly Kind[] = [
  // Random bytes that are valid in a header.
  kind(12, 'login: fuzzed', { statuses: refused }, (context) => {
    const { random } = context;
    const bytes = randomBytes(random, random.integer(0, random.chance(0.1) ? 9_000 : 80));
    const valid = Buffer.from(bytes.filter((byte) => byte >= 0x21 && byte !== 0x7f));
    const scheme = random.pick(['Basic ', 'basic ', '', 'Bearer ']);
    return withLogin(context, scheme + valid.toString('latin1'));
  }),
  kind(8, 'login: one bit changed', { statuses: refused }, (context) => {
    const { random, authorization } = context;
    const pair = Buffer.from(authorization.slice('Basic '.length), 'base64');
    const at = random.integer(0, pair.length - 1);
    pair[at] = (pair[at] ?? 0) ^ (1 << random.integer(0, 7));
    return withLogin(context, `Basic ${pair.toString('base64')}`);
  }),
];

const bodyBytesMax = 2 ** 20;

/** Replaces some bytes of a valid request; its end is unknown then. */
function mutated({ random, notification }: CaseContext, login: string): Buffer {
  const bytes = request({ headers: [`Authorization: ${login}`], body: notification() });
  for (let i = random.integer(1, 8); i > 0; i -= 1) {
    bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255);
  }
  return bytes;
}

const known = { sender: 'authenticated', statuses: [200, 400, 413] } as const;
const mutatedRules = { ...ends, answersMax: 3 } as const;
const knownStatuses = [200, 400, 401, 404, 405, 408, 413, 429, 431];

/** Large, compressed and deep bodies: `test/receiver/bodies.slow.test.ts`, `test/core/terms/hostile-bodies.test.ts`. */
const bodies: readonly Kind[] = [
  kind(10, 'body: no notification', known, ({ random, login }) => {
    const texts = [
      ...['null', '""', '[]', '{}', '[{}]', '{', '\ufeff{}', '{"__proto__":{"x":1}}', '<x/>'],
    ];
    const noise = Buffer.concat([Buffer.from([0xff]), randomBytes(random, 2_000)]);
    return request({ headers: login, body: random.pick<string | Buffer>([...texts, noise]) });
  }),
  kind(3, 'mutated: sender', { ...mutatedRules, ...known, statuses: knownStatuses }, (context) =>
    mutated(context, context.authorization),
  ),
  kind(5, 'mutated: unknown client', mutatedRules, (context) =>
    mutated(context, basicLogin('bench', 'guess')),
  ),
  // Refused without reading the body.
  kind(3, 'body: refused', { statuses: refused }, ({ random, notification }) => {
    const body = random.chance(0.03) ? 'x'.repeat(2 * bodyBytesMax) : notification();
    const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const whole = random.pick([
      request({ body }),
      headThen(['Transfer-Encoding: chunked'], chunks),
    ]);
    const cut = random.integer(1, whole.length);
    return [whole.subarray(0, cut), whole.subarray(cut)];
  }),
];

export const httpCases: readonly Kind[] = [requestLines, framing, headers, logins, bodies].flat();
