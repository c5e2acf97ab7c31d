/** Unusual, huge and forged headers, and pipelined requests. */
import {
  attackCase,
  type Case,
  type CaseContext,
  type CaseMaker,
  lines,
  oneOf,
  refusedLogin,
  request,
  unknownClientStatuses,
} from '../case.ts';

const unusualHeaders: readonly string[] = [
  ...['nonsense', ': x', ' : x', 'X : y', 'X\t: y', 'X(: y', 'X\0: y', 'X: a\0b', 'X: a\x7fb'],
  ...['X: a\x01b', 'X: y\r\n folded', 'X:\r\n\tfolded', 'X: y\rZ: z', 'X: y\nZ: z', 'X: \xff\xfe'],
  ...['\xc4: x', 'X:', 'Host: other', 'Host:', 'Host: a b', 'Host: h@x', 'Host: [::1'],
  ...['Host: h:99999', 'Host: h/x?y#z', 'Connection: close, keep-alive', 'Connection: Host'],
  ...['Connection: ,', 'Keep-Alive: timeout=9999', 'Expect: 100-continue', 'Expect: miracles'],
  ...['Expect: 100-continue, x', 'Expect:', 'Content-Encoding: gzip', 'Content-Encoding: br, gzip'],
  ...['TE: trailers', 'Trailer: Content-Length', 'Range: bytes=0-0,1-1,2-2', 'If-None-Match: *'],
  ...['If-Modified-Since: x', 'Accept: ../../etc', 'X-HTTP-Method-Override: PUT'],
  ...['X-Original-URL: /metrics', 'X-Rewrite-URL: /metrics', 'X-Forwarded-For: 10.0.0.1'],
  ...['X-Forwarded-For: %{jndi:ldap://x}', 'Forwarded: for=::1', 'X-Forwarded-Proto: https'],
  ...['X-Forwarded-Host: x', 'X-Real-IP: 127.0.0.1', 'Via: 1.1 x', 'Origin: null'],
  ...['Sec-Fetch-Site: cross-site', 'Cookie: a=b; a=c', 'Content-Type: ;;;', 'Content-Type:'],
  ...['__proto__: x', 'constructor: x', 'toString: x', 'Authorization: Basic'],
  ...['Proxy-Authorization: Basic x'],
];

export const headerMakers: readonly (readonly [weight: number, CaseMaker])[] = [
  [10, unusual],
  [2, many],
  [2, huge],
  [2, withoutHost],
  [3, pipelined],
  [1, tooManyPipelined],
];

function unusual({ random }: CaseContext): Case {
  const headers = Array.from({ length: random.integer(1, 4) }, () => oneOf(random, unusualHeaders));
  // The unusual headers may include a second Host.
  const method = oneOf(random, ['GET', 'DELETE', 'OPTIONS']);
  const pieces = [request({ method, headers })];
  return attackCase('headers: unusual', pieces, unknownClientStatuses, {
    connection: 'ends',
  });
}

function many({ random }: CaseContext): Case {
  const count = random.integer(100, 4_000);
  const headers = Array.from({ length: count }, (_, i) => `X${i}: y`);
  return attackCase('headers: many', [request({ method: 'GET', headers })], [431, ...refusedLogin]);
}

function huge({ random }: CaseContext): Case {
  const text = 'x'.repeat(random.integer(15_000, 70_000));
  const headers = [
    oneOf(random, [`X: ${text}`, `${text}: x`, `Cookie: ${text}`, `Authorization: Basic ${text}`]),
  ];
  const pieces = [request({ method: 'GET', headers })];
  return attackCase('headers: huge', pieces, [400, 431, ...refusedLogin]);
}

function withoutHost({ random }: CaseContext): Case {
  const version = oneOf(random, ['1.0', '1.1']);
  const first = `GET /notifications HTTP/${version}`;
  const host = oneOf(random, [[], ['Host: a', 'Host: b'], ['Host: '], ['Host: a, b']]);
  const pieces = [lines(first, ...host, 'X: y')];
  return attackCase('headers: Host', pieces, [400, ...refusedLogin], { connection: 'ends' });
}

/** Pipelined requests, each of which is answered, in order. */
function pipelined({ random }: CaseContext): Case {
  return repeated('pipelined', random.integer(2, 20), 'stays');
}

/** More than the permitted number of waiting requests: the connection is closed after some answers. */
function tooManyPipelined({ random }: CaseContext): Case {
  return repeated('pipelined: too many', random.integer(100, 2_000), 'ends');
}

function repeated(name: string, count: number, connection: Case['connection']): Case {
  const one = request({ method: 'GET', target: '/nowhere' });
  const pieces = [Buffer.concat(Array.from({ length: count }, () => one))];
  return attackCase(name, pieces, [404], { answersMax: count, connection });
}
