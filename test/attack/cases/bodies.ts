/** Bodies of every kind, from senders with the right credentials and from strangers. */
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import {
  basicLogin,
  type Case,
  type CaseContext,
  type CaseMaker,
  holderStatuses,
  oneOf,
  randomBytes,
  refusedLogin,
  request,
  stranger,
  strangerStatuses,
} from '../case.ts';

const bodyBytesMax = 2 ** 20;

export const bodyMakers: readonly (readonly [weight: number, CaseMaker])[] = [
  [10, oddJson],
  [4, oddNotification],
  [3, noJson],
  [2, compressed],
  [4, mutatedHolder],
  [6, mutatedStranger],
  [3, unwantedBody],
];

/** Drawn seldom: they are large. */
export const largeBodyMakers: readonly (readonly [weight: number, CaseMaker])[] = [
  [1, deepJson],
  [1, tinyChunks],
  [1, tooLarge],
  [1, longList],
];

function holders({ right }: CaseContext, name: string, body: string | Uint8Array): Case {
  const pieces = [request({ headers: [`Authorization: ${right}`], body })];
  return stranger(`body: ${name}`, pieces, [200, 400, 413], { sender: 'holder' });
}

function oddJson(context: CaseContext): Case {
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
  return holders(context, 'odd JSON', body);
}

/** Would be stored, but for one field that is odd. */
function oddNotification(context: CaseContext): Case {
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
  const text = notification('holder', field === '__proto__' ? {} : { [field]: value });
  const extra = field === '__proto__' ? text.replace('{', '{"__proto__":{"ProductId":"p"},') : text;
  return holders(context, 'odd notification', extra);
}

function noJson(context: CaseContext): Case {
  const { random } = context;
  const whole = Buffer.from(context.notification('holder'));
  const utf16 = Buffer.from(context.notification('holder'), 'utf16le');
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
  return holders(
    context,
    'no JSON',
    oneOf<string | Uint8Array>(random, [utf16, invalid, noise, ...others]),
  );
}

/** Encoded as the header says or not, and bombs of 64 MiB. */
function compressed(context: CaseContext): Case {
  const { random } = context;
  const spaces = Buffer.alloc(random.chance(0.05) ? 2 ** 26 : random.integer(1, 500_000), ' ');
  const coding = oneOf(random, ['gzip', 'deflate', 'br', 'zstd', 'gzip, gzip', 'x', 'identity']);
  const encode = oneOf(random, [gzipSync, deflateSync, deflateRawSync]);
  const once = encode(spaces);
  const body = random.chance(0.2) ? gzipSync(once) : once;
  const headers = [`Authorization: ${context.right}`, `Content-Encoding: ${coding}`];
  const usual = holders(context, 'compressed', body);
  return { ...usual, pieces: [request({ headers, body })], statuses: [400, 413, 415] };
}

/** Each chunk may cost an object, and memory of its own. */
function tinyChunks(context: CaseContext): Case {
  const headers = [`Authorization: ${context.right}`, 'Transfer-Encoding: chunked'];
  const chunks = '1\r\n \r\n'.repeat(context.random.integer(1_000, bodyBytesMax + 1));
  const whole = [request({ headers, hasLength: false }), Buffer.from(`${chunks}0\r\n\r\n`)];
  return { ...holders(context, 'tiny chunks', ''), pieces: whole, statuses: [400, 413] };
}

function deepJson(context: CaseContext): Case {
  const depth = context.random.integer(1_000, 200_000);
  const deep = '['.repeat(depth) + ']'.repeat(depth);
  const objects = '{"a":'.repeat(depth) + 1 + '}'.repeat(depth);
  const nested = oneOf(context.random, [deep, objects]);
  const inside = context.notification('holder').replace('{', `{"deep":${nested},`);
  return holders(
    context,
    'deep',
    oneOf(context.random, [deep, objects, inside, '['.repeat(depth)]),
  );
}

function tooLarge(context: CaseContext): Case {
  const length = bodyBytesMax + oneOf(context.random, [-1, 0, 1, 2, 100_000]);
  return { ...holders(context, 'at the limit', 'x'.repeat(length)), statuses: [400, 413] };
}

function longList(context: CaseContext): Case {
  const count = context.random.integer(100, 2_000);
  const items = Array.from({ length: count }, () => context.notification('holder'));
  return holders(context, 'long list', `[${items.join(',')},{}]`);
}

/** Some bytes of a whole request are replaced; where it ends is anybody's guess then. */
function mutated(context: CaseContext, sender: Case['sender'], login: string): Case {
  const { random } = context;
  const bytes = request({
    headers: [`Authorization: ${login}`],
    body: context.notification(sender),
  });
  for (let i = random.integer(1, 8); i > 0; i -= 1) {
    bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255);
  }
  const statuses = sender === 'holder' ? holderStatuses : strangerStatuses;
  const further = { sender, answersMax: 3, connection: 'ends' } as const;
  return stranger(`mutated: ${sender}`, [bytes], statuses, further);
}

function mutatedHolder(context: CaseContext): Case {
  return mutated(context, 'holder', context.right);
}

function mutatedStranger(context: CaseContext): Case {
  return mutated(context, 'stranger', basicLogin('bench', 'guess'));
}

/** Refused at once, and thrown away. */
function unwantedBody(context: CaseContext): Case {
  const { random } = context;
  const body = random.chance(0.03)
    ? 'x'.repeat(2 * bodyBytesMax)
    : context.notification('stranger');
  const chunked = Buffer.from(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
  const head = request({ headers: ['Transfer-Encoding: chunked'], hasLength: false });
  const whole = oneOf(random, [request({ body }), Buffer.concat([head, chunked])]);
  const cut = random.integer(1, whole.length);
  return stranger('body: unwanted', [whole.subarray(0, cut), whole.subarray(cut)], refusedLogin);
}
