/** Invalid request lines, other protocols, and targets and methods of every form. */
import { METHODS } from 'node:http';
import {
  attackCase,
  type Case,
  type CaseContext,
  type CaseMaker,
  lines,
  oneOf,
  randomBytes,
  refusedLogin,
  request,
  unknownClientStatuses,
} from '../case.ts';

const brokenLines: readonly string[] = [
  ...['GET', 'GET /', ' GET / HTTP/1.1', 'GET / HTTP/1.1 x', 'GET /\tHTTP/1.1', 'GET\t/ HTTP/1.1'],
  ...['get / HTTP/1.1', 'GET / http/1.1', 'GET / HTTP/2.0', 'GET / HTTP/0.9', 'GET / HTTP/1.2'],
  ...['GET / HTTP/1.1\0', 'GET / HTTP/11', 'GET / HTTP/1.', 'GET / HTTP/ 1.1', 'GET / FTP/1.1'],
  ...['HTTP/1.1 200 OK', 'GE\0T / HTTP/1.1', 'G\xc4T / HTTP/1.1', 'GET \0 HTTP/1.1', '{} HTTP/1.1'],
  ...['GET nowhere HTTP/1.1', 'GET http:/x HTTP/1.1', 'GET :// HTTP/1.1', 'POST HTTP/1.1', '\x7f'],
  ...['\x16\x03\x01\x02\x00\x01', 'SSH-2.0-x', 'EHLO x', '\x05\x01\x00'],
  ...['PROXY TCP4 1.1.1.1 2.2.2.2 1 2', 'M-SEARCH * HTTP/1.1', 'GET / ICE/1.0', 'SOURCE / ICE/1.0'],
  ...['GET / RTSP/1.0', 'RTSP/1.0 200 OK'],
];

const targets: readonly string[] = [
  ...['/', '//', '/.', '/..', '/notification', '/notificationsx', '//notifications'],
  ...['/./notifications', '/NOTIFICATIONS', '/notifications/A', '/notifications/-x'],
  ...['/notifications/x/y', '/notifications/.', '/notifications/..'],
  ...['/notifications/../api/products', '/notifications/%2e%2e/%2e%2e/etc/passwd'],
  ...['/notifications/..%2f..%2fetc', '/%6eotifications/x', '/notifications%2fx'],
  ...['/notifications/%00', '/notifications/a%00b', '/notifications/%', '/notifications/%zz'],
  ...['/notifications/%c0%ae', '/%', '/notifications/x;y', '/notifications;x'],
  ...['/notifications?x=%0d%0aX:1', '/notifications/x%0d%0aSet-Cookie:a', '/notifications#x'],
  ...['/notifications\\x', '/notifications/\xe4', '/\xff\xfe', '/notifications/x?y#z'],
  ...['http://localhost/notifications/x', 'https://x:1/notifications'],
  ...['http://a:b@localhost/notifications', 'http://localhost', 'http://'],
  ...['ftp://localhost/notifications', 'HTTP://LOCALHOST/notifications/x', 'localhost:443', '*'],
  ...['notifications', '?', '#', '', '/metrics', '/healthz', '/readyz', '/api/status'],
  ...['/api/products', '/odata/v1/Products', '/.env', '/.git/config', '/earshot.db'],
  ...['/server-status', '/.well-known/acme-challenge/x', '/favicon.ico', '/robots.txt'],
  ...['/__proto__', '/constructor'],
];

/** The server waits for more bytes; the client ends the connection. */
const ends = { connection: 'ends' } as const;

/** Functions that create cases, with their weights. */
export const requestLineMakers: readonly (readonly [weight: number, CaseMaker])[] = [
  [6, brokenLine],
  [8, target],
  [5, method],
  [2, noise],
  [2, foreign],
  [1, longTarget],
  [1, http2],
  [1, blankLinesFirst],
];

function brokenLine({ random }: CaseContext): Case {
  const line = oneOf(random, brokenLines);
  const ending = oneOf(random, ['\r\n\r\n', '\r\nHost: localhost\r\n\r\n', '\n\n', '\r\r', '\r\n']);
  const bytes = Buffer.from(line + ending, 'latin1');
  return attackCase('request line: invalid', [bytes], [400, 404, 408], ends);
}

function target({ random, notification }: CaseContext): Case {
  const parts = { method: oneOf(random, ['GET', 'POST', 'HEAD']), target: oneOf(random, targets) };
  const body = parts.method === 'POST' ? notification('unknownClient') : '';
  const isHead = parts.method === 'HEAD';
  const pieces = [request({ ...parts, body })];
  return attackCase('target', pieces, [400, 404, ...refusedLogin], { ...ends, isHead });
}

function method({ random, notification }: CaseContext): Case {
  const invented = ['', 'X', 'POSTS', 'post', 'GETPOST', 'A'.repeat(random.integer(20, 5_000))];
  const name = oneOf(random, [...METHODS, ...METHODS, ...invented]);
  const path = oneOf(random, ['/notifications', '/notifications/x', '/', '*', 'localhost:443']);
  const body = random.chance(0.5) ? notification('unknownClient') : '';
  const pieces = [request({ method: name, target: path, body })];
  // The body of a method without one may be read as another request.
  const further = { ...ends, answersMax: 2, isHead: name === 'HEAD' };
  return attackCase('method', pieces, [400, 404, 405, 408, ...refusedLogin], further);
}

function noise({ random }: CaseContext): Case {
  const pieces = [randomBytes(random, random.integer(1, 3_000))];
  return attackCase('noise', pieces, [400, 408, 431], ends);
}

function foreign({ random }: CaseContext): Case {
  const hello = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
  const tail = randomBytes(random, random.integer(0, 1_000));
  const bytes = oneOf(random, [tail, Buffer.concat([hello, tail]), request({ body: 'x' })]);
  const further = { answersMax: 0, connection: 'foreign' } as const;
  return attackCase('no TLS', [bytes], unknownClientStatuses, further);
}

function longTarget({ random }: CaseContext): Case {
  const long = `/notifications/${'a'.repeat(random.integer(60, 30_000))}`;
  const pieces = [request({ method: 'GET', target: long })];
  return attackCase('target: long', pieces, [404, 431, ...refusedLogin], ends);
}

function http2({ random }: CaseContext): Case {
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');
  const offer = lines(
    'GET /notifications HTTP/1.1',
    'Host: localhost',
    'Connection: Upgrade, HTTP2-Settings',
    `Upgrade: ${oneOf(random, ['h2c', 'websocket', 'TLS/1.0', 'h2c, websocket'])}`,
    'HTTP2-Settings: AAMAAABkAAQAAP__',
  );
  return attackCase(
    'another protocol',
    [oneOf(random, [preface, offer])],
    unknownClientStatuses,
    ends,
  );
}

function blankLinesFirst({ random }: CaseContext): Case {
  const blank = Buffer.from(oneOf(random, ['\r\n', '\n', '\r\n\r\n', '\0', ' ', '\t']).repeat(3));
  const pieces = [blank, request({ method: 'GET' })];
  return attackCase('request line: blank lines first', pieces, unknownClientStatuses, ends);
}
