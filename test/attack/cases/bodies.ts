/** Bodies of every kind, from authenticated senders and from unknown clients. */
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import {
  attackCase,
  authenticatedStatuses,
  basicLogin,
  type Case,
  type CaseContext,
  type CaseMaker,
  oneOf,
  randomBytes,
  refusedLogin,
  request,
  unknownClientStatuses,
} from '../case.ts';

const bodyBytesMax = 2 ** 20;

export const bodyMakers: readonly (readonly [weight: number, CaseMaker])[] = [
  [10, unusualJson],
  [4, unusualNotification],
  [3, noJson],
  [2, compressed],
  [4, mutatedAuthenticated],
  [6, mutatedUnknown],
  [3, refusedBody],
];

/** Drawn rarely, since they are large. */
export const largeBodyMakers: readonly (readonly [weight: number, CaseMaker])[] = [
  [1, deepJson],
  [1, tinyChunks],
  [1, tooLarge],
  [1, longList],
];

function authenticatedBody(
  { authorization }: CaseContext,
  name: string,
  body: string | Uint8Array,
): Case {
  const pieces = [request({ headers: [`Authorization: ${authorization}`], body })];
  return attackCase(`body: ${name}`, pieces, [200, 400, 413], { sender: 'authenticated' });
}

function unusualJson(context: CaseContext): Case {
  const { random } = context;
  const digits = '9'.repeat(random.integer(1, 50_000));
  const body = oneOf(random, [
    ...['null', 'true', '0', '""', '[]', '{}', '[[]]', '[null]', '[{}]', '"', '{', '[', '\ufeff{}'],
    ...['NaN', '{"__proto__":{"x":1}}', '{"constructor":{"prototype":{"x":1}}}', '{"value":null}'],
    ...['-', '1e', `{"ProductId":${digits}}`, `[${digits}e${digits}]`, '{"ProductId":1e400}'],
    ...['{"a":1,"a":2}', '{"ProductId":"\ud800"}', '{"ProductId":"\\ud800"}'],
    ...['{"ProductId":"\\u0000"}', '\0', ' ', '{"ProductId":{},"SubscriptionEvent":[]}'],
    ...['{"value":{"Id":[]}}', '{"toString":1,"value":{}}'],
  ]);
  return authenticatedBody(context, 'unusual JSON', body);
}

/** Valid notification except for one unusual field. */
function unusualNotification(context: CaseContext): Case {
  const { random, notification } = context;
  const value = oneOf<unknown>(random, [
    ...[null, true, 0, -0, 1e308, '', '\0', '\ud800', 'x'.repeat(10_000), [], {}, [[[[]]]]],
    ...['2026-13-45T99:99:99Z', '9999999-01-01', '<script>', "'; DROP TABLE notification; --"],
    ...['%s%n', { __proto__: null }, '../../etc/passwd', '\u202e\u0007\u001b[31m'],
    ...[Number.MAX_SAFE_INTEGER + 2],
  ]);
  const field = oneOf(random, [
    ...['SubscriptionEvent', 'ProductId', 'ProductName', 'SubscriptionId', 'NotificationDate'],
    ...['value', 'Value', '@odata.context', 'unknown', '__proto__', 'constructor'],
    ...['hasOwnProperty'],
  ]);
  const text = notification('authenticated', field === '__proto__' ? {} : { [field]: value });
  const extra = field === '__proto__' ? text.replace('{', '{"__proto__":{"ProductId":"p"},') : text;
  return authenticatedBody(context, 'unusual notification', extra);
}

function noJson(context: CaseContext): Case {
  const { random } = context;
  const whole = Buffer.from(context.notification('authenticated'));
  const utf16 = Buffer.from(context.notification('authenticated'), 'utf16le');
  const invalid = Buffer.concat([whole.subarray(0, -1), Buffer.from([0xc3, 0x28, 0xff, 0x7d])]);
  const noise = Buffer.concat([Buffer.from([0xff]), randomBytes(random, random.integer(0, 2_000))]);
  const others = [
    '<xml/>',
    'a=b&c=d',
    'MZ\x90',
    '%PDF-1.7',
    "{'a':1}",
    '{a:1}',
    '/*x*/{}',
    '{},{}',
  ];
  return authenticatedBody(
    context,
    'no JSON',
    oneOf<string | Uint8Array>(random, [utf16, invalid, noise, ...others]),
  );
}

/** Bodies with right or wrong encodings, and decompression bombs of 64 MiB. */
function compressed(context: CaseContext): Case {
  const { random } = context;
  const spaces = Buffer.alloc(random.chance(0.05) ? 2 ** 26 : random.integer(1, 500_000), ' ');
  const coding = oneOf(random, ['gzip', 'deflate', 'br', 'zstd', 'gzip, gzip', 'x', 'identity']);
  const encode = oneOf(random, [gzipSync, deflateSync, deflateRawSync]);
  const once = encode(spaces);
  const body = random.chance(0.2) ? gzipSync(once) : once;
  const headers = [`Authorization: ${context.authorization}`, `Content-Encoding: ${coding}`];
  const usual = authenticatedBody(context, 'compressed', body);
  return { ...usual, pieces: [request({ headers, body })], statuses: [400, 413, 415] };
}

/** Many tiny chunks, each of which may use memory. */
function tinyChunks(context: CaseContext): Case {
  const headers = [`Authorization: ${context.authorization}`, 'Transfer-Encoding: chunked'];
  const chunks = '1\r\n \r\n'.repeat(context.random.integer(1_000, bodyBytesMax + 1));
  const whole = [request({ headers, hasLength: false }), Buffer.from(`${chunks}0\r\n\r\n`)];
  return { ...authenticatedBody(context, 'tiny chunks', ''), pieces: whole, statuses: [400, 413] };
}

function deepJson(context: CaseContext): Case {
  const depth = context.random.integer(1_000, 200_000);
  const deep = '['.repeat(depth) + ']'.repeat(depth);
  const objects = '{"a":'.repeat(depth) + 1 + '}'.repeat(depth);
  const nested = oneOf(context.random, [deep, objects]);
  const inside = context.notification('authenticated').replace('{', `{"deep":${nested},`);
  return authenticatedBody(
    context,
    'deep',
    oneOf(context.random, [deep, objects, inside, '['.repeat(depth)]),
  );
}

function tooLarge(context: CaseContext): Case {
  const length = bodyBytesMax + oneOf(context.random, [-1, 0, 1, 2, 100_000]);
  return {
    ...authenticatedBody(context, 'at the size limit', 'x'.repeat(length)),
    statuses: [400, 413],
  };
}

function longList(context: CaseContext): Case {
  const count = context.random.integer(100, 2_000);
  const items = Array.from({ length: count }, () => context.notification('authenticated'));
  return authenticatedBody(context, 'long list', `[${items.join(',')},{}]`);
}

/** Replaces some bytes of a valid request; its end is unknown then. */
function mutated(context: CaseContext, sender: Case['sender'], login: string): Case {
  const { random } = context;
  const bytes = request({
    headers: [`Authorization: ${login}`],
    body: context.notification(sender),
  });
  for (let i = random.integer(1, 8); i > 0; i -= 1) {
    bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255);
  }
  const statuses = sender === 'authenticated' ? authenticatedStatuses : unknownClientStatuses;
  const further = { sender, answersMax: 3, connection: 'ends' } as const;
  return attackCase(`mutated: ${sender}`, [bytes], statuses, further);
}

function mutatedAuthenticated(context: CaseContext): Case {
  return mutated(context, 'authenticated', context.authorization);
}

function mutatedUnknown(context: CaseContext): Case {
  return mutated(context, 'unknownClient', basicLogin('bench', 'guess'));
}

/** Body of a request that is refused without reading it. */
function refusedBody(context: CaseContext): Case {
  const { random } = context;
  const body = random.chance(0.03)
    ? 'x'.repeat(2 * bodyBytesMax)
    : context.notification('unknownClient');
  const chunked = Buffer.from(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
  const head = request({ headers: ['Transfer-Encoding: chunked'], hasLength: false });
  const whole = oneOf(random, [request({ body }), Buffer.concat([head, chunked])]);
  const cut = random.integer(1, whole.length);
  return attackCase('body: refused', [whole.subarray(0, cut), whole.subarray(cut)], refusedLogin);
}
