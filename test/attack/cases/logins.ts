/** Invalid forms of Authorization. */
import {
  attackCase,
  type Case,
  type CaseContext,
  type CaseMaker,
  oneOf,
  randomBytes,
  refusedLogin,
  request,
} from '../case.ts';

export const loginMakers: readonly (readonly [weight: number, CaseMaker])[] = [
  [12, wrongLogin],
  [3, fuzzedLogin],
  [2, nearlyValid],
];

const base64 = (text: string, encoding: BufferEncoding = 'utf8') =>
  Buffer.from(text, encoding).toString('base64');

/** Values of Authorization headers; several are sent as several headers. */
const wrongLogins = (valid: string): readonly (readonly string[])[] => {
  const encoded = valid.slice('Basic '.length);
  return [
    [],
    [''],
    ['Basic'],
    ['Basic  '],
    [`Basic ${base64('')}`],
    [`Basic ${base64(':')}`],
    [`Basic ${base64('nocolon')}`],
    [`Basic ${base64('\0:\0')}`],
    [`Basic ${base64('bench:\0')}`],
    [`Basic ${base64('bench\0:x')}`],
    [`Basic ${base64('k\u00fcste:gr\u00f6\u00dfe', 'latin1')}`],
    [`Basic ${base64('\ud83d\ude00:\ud83d\ude00')}`],
    [`Basic ${base64(`bench:${'x'.repeat(9_000)}`)}`],
    [`Basic ${'='.repeat(100)}`],
    ['Basic !!!!'],
    [`Bearer ${encoded}`],
    ['Digest username="bench", response="0"'],
    ['Negotiate YII='],
    ['NTLM TlRMTVNTUAAB'],
    [encoded],
    [`Basics ${encoded}`],
    [`Basic:${encoded}`],
    [`Basic ${encoded.slice(0, -6)}`],
    [`Basic ${encoded}, Basic ${encoded}`],
    [`Basic ${base64('x:y')}`, valid],
    ['', valid],
    [`\xff${valid}`],
    [`Basic ${encoded.toLowerCase()}`],
  ];
};

function loginCase(
  name: string,
  headers: readonly string[],
  { random, notification }: CaseContext,
): Case {
  const method = oneOf(random, ['GET', 'POST', 'POST', 'HEAD']);
  const body = method === 'POST' ? notification('unknownClient') : '';
  const pieces = [request({ method, headers, body })];
  return attackCase(name, pieces, refusedLogin, { isHead: method === 'HEAD' });
}

function wrongLogin(context: CaseContext): Case {
  const values = oneOf(context.random, wrongLogins(context.authorization));
  const headers = values.map((value) => `Authorization: ${value}`);
  return loginCase('login: invalid form', headers, context);
}

/** Random bytes that are valid in a header. */
function fuzzedLogin(context: CaseContext): Case {
  const { random } = context;
  const bytes = randomBytes(random, random.integer(0, random.chance(0.1) ? 9_000 : 80));
  const text = Buffer.from(bytes.filter((byte) => byte >= 0x21 && byte !== 0x7f)).toString(
    'latin1',
  );
  const scheme = oneOf(random, ['Basic ', 'basic ', '', 'Bearer ']);
  return loginCase('login: fuzzed', [`Authorization: ${scheme}${text}`], context);
}

/** Valid credentials with one bit changed. */
function nearlyValid(context: CaseContext): Case {
  const pair = Buffer.from(context.authorization.slice('Basic '.length), 'base64');
  const at = context.random.integer(0, pair.length - 1);
  pair[at] = (pair[at] ?? 0) ^ (1 << context.random.integer(0, 7));
  const headers = [`Authorization: Basic ${pair.toString('base64')}`];
  return loginCase('login: one bit changed', headers, context);
}
