/** Malformed and unusual HTTP: request lines, framing, headers, logins and bodies, from unknown clients and senders. */
import { METHODS } from 'node:http';
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

const brokenLines: readonly string[] = [
  ...['GET', 'GET /', ' GET / HTTP/1.1', 'GET\t/ HTTP/1.1', 'get / HTTP/1.1', 'GET / HTTP/2.0'],
  ...['GET / HTTP/1.1\0', 'GET / HTTP/11', 'GE\0T / HTTP/1.1', 'G\xc4T / HTTP/1.1', '{} HTTP/1.1'],
  ...['GET nowhere HTTP/1.1', 'POST HTTP/1.1', '\x16\x03\x01\x02\x00\x01', 'SSH-2.0-x', 'EHLO x'],
  ...['PROXY TCP4 1.1.1.1 2.2.2.2 1 2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
];

const targets: readonly string[] = [
  ...['/', '//notifications', '/./notifications', '/NOTIFICATIONS', '/notifications/x/y', '*', ''],
  ...[
    '/notifications/../api/products',
    '/notifications/%2e%2e/%2e%2e/etc/passwd',
    '/notifications/%',
  ],
  ...[
    '/notifications/%00',
    '/notifications/%c0%ae',
    '/notifications\\x',
    '/notifications/x%0d%0aX:1',
  ],
  ...['http://a:b@localhost/notifications', 'ftp://localhost/notifications', 'localhost:443'],
  ...['/metrics', '/api/status', '/.env', '/earshot.db', '/__proto__', '/constructor'],
  `/notifications/${'a'.repeat(30_000)}`,
];

const hello = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);

const ends = { connection: 'ends' } as const;

const requestLines: readonly Kind[] = [
  kind(6, 'request line: invalid', { ...ends, statuses: [400, 404, 408] }, ({ random }) => {
    const endings = ['\r\n\r\n', '\r\nHost: localhost\r\n\r\n', '\n\n', '\r\r', '\r\n'];
    return Buffer.from(random.pick(brokenLines) + random.pick(endings), 'latin1');
  }),
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

/** Headers with an ambiguous end of the body. */
const ambiguous = (length: number): readonly (readonly string[])[] => [
  [`Content-Length: ${length}`, 'Transfer-Encoding: chunked'],
  ['Transfer-Encoding: chunked', `Content-Length: ${length}`],
  ['Transfer-Encoding: chunked', 'Content-Length: 0'],
  [`Content-Length: ${length}`, 'Content-Length: 0'],
  [`Content-Length: ${length}`, `Content-Length: ${length}`],
  ...[`${length}, ${length}`, `+${length}`, `-${length}`, `0x${length.toString(16)}`].map(lengthOf),
  ...[`${length} 1`, `${length}\0`, '', '1e3', '9'.repeat(30), '18446744073709551617'].map(
    lengthOf,
  ),
  ...[`${length};`, `"${length}"`, '\xb2'].map(lengthOf),
  ...['chunked, identity', 'identity', 'xchunked', 'chunked;q=1', 'chun ked', '"chunked"', ''].map(
    (text) => [`Transfer-Encoding: ${text}`],
  ),
  ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
  ['Transfer-Encoding : chunked'],
  [' Transfer-Encoding: chunked'],
  ['Transfer-Encoding:\x0bchunked', `Content-Length: ${length}`],
  ['Transfer_Encoding: chunked', 'Transfer-Encoding: chunked', `Content-Length: ${length}`],
  ['X: y\r\n Content-Length: 0', `Content-Length : ${length}`],
  ['X: y\rTransfer-Encoding: chunked', `Content-Length: ${length}`],
  ['X: y\nTransfer-Encoding: chunked', `Content-Length: ${length}`],
  ['X: y\0', `Content-Length: ${length}`],
];

function lengthOf(text: string): readonly string[] {
  return [`Content-Length: ${text}`];
}

const brokenChunks = (body: string): readonly string[] => {
  const size = body.length.toString(16);
  const sizes = ['-1', `0x${size}`, 'f'.repeat(17), ` ${size}`, '5', 'zz', ''];
  return [
    ...[...sizes, `${size};${'x'.repeat(20_000)}`].map((one) => `${one}\r\n${body}\r\n0\r\n\r\n`),
    `${size}\n${body}\n0\n\n`,
    `${size}\r\n${body}0\r\n\r\n`,
    `${size}\r${body}\r\n0\r\n\r\n`,
  ];
};

const either = { sender: 'either', connection: 'ends' } as const;

/** Lengths, chunks and line ends that two parsers could interpret differently: request smuggling. */
const framing: readonly Kind[] = [
  // Answered at most once, with a refusal; the body is never read as a request.
  kind(9, 'framing: ambiguous length', { ...either, connection: 'closes' }, ({ random, login }) => {
    const body = random.pick([smuggled, `0\r\n\r\n${smuggled}`]);
    return headThen([...login, ...random.pick(ambiguous(body.length))], body);
  }),
  // An unknown client is answered before the chunk arrives; there must be no second answer.
  kind(
    5,
    'framing: broken chunk',
    { ...either, connection: 'closes' },
    ({ random, login, notification }) => {
      const head = headThen([...login, 'Transfer-Encoding: chunked'], '');
      const tail = Buffer.from(random.pick(brokenChunks(notification())) + smuggled);
      return random.chance(0.5) ? [head, tail] : Buffer.concat([head, tail]);
    },
  ),
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
  ...[
    'nonsense',
    ': x',
    'X : y',
    'X\0: y',
    'X: a\0b',
    'X: a\x7fb',
    'X: y\r\n folded',
    'X: y\rZ: z',
  ],
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
