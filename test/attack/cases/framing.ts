/** Lengths, chunks and line ends that two parsers could interpret differently: request smuggling. */
import {
  attackCase,
  type Case,
  type CaseContext,
  type CaseMaker,
  oneOf,
  refusedLogin,
  request,
  unknownClientStatuses,
} from '../case.ts';

/** Smuggled second request; it would be answered with 404. */
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** Headers with an ambiguous end of the body. */
const ambiguous = (length: number): readonly (readonly string[])[] => [
  [`Content-Length: ${length}`, 'Transfer-Encoding: chunked'],
  ['Transfer-Encoding: chunked', `Content-Length: ${length}`],
  ['Transfer-Encoding: chunked', 'Content-Length: 0'],
  [`Content-Length: ${length}`, 'Content-Length: 0'],
  [`Content-Length: ${length}`, `Content-Length: ${length}`],
  [`Content-Length: ${length}, ${length}`],
  ...[`+${length}`, `-${length}`, `0x${length.toString(16)}`, `${length} 1`, `${length}\0`, ''].map(
    (text) => [`Content-Length: ${text}`],
  ),
  ...['1e3', '9'.repeat(30), '18446744073709551617', `${length};`, `"${length}"`, '\xb2'].map(
    (text) => [`Content-Length: ${text}`],
  ),
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

const brokenChunks = (body: string): readonly string[] => [
  `-1\r\n${body}\r\n0\r\n\r\n`,
  `0x${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  `${'f'.repeat(17)}\r\n${body}\r\n0\r\n\r\n`,
  ` ${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  `${body.length.toString(16)}\n${body}\n0\n\n`,
  `${body.length.toString(16)}\r\n${body}0\r\n\r\n`,
  `5\r\n${body}\r\n0\r\n\r\n`,
  `${body.length.toString(16)}\r${body}\r\n0\r\n\r\n`,
  `${body.length.toString(16)};${'x'.repeat(20_000)}\r\n${body}\r\n0\r\n\r\n`,
  `zz\r\n${body}\r\n0\r\n\r\n`,
  `\r\n${body}\r\n0\r\n\r\n`,
];

export const framingMakers: readonly (readonly [weight: number, CaseMaker])[] = [
  [12, ambiguousLength],
  [6, brokenChunk],
  [3, bareLineEnds],
  [3, lengthOfGet],
  [3, tooManyBytes],
  [2, truncated],
];

/** Draws a sender, and returns its headers. */
function sentBy(context: CaseContext): { sender: Case['sender']; login: readonly string[] } {
  const sender = context.random.chance(0.5) ? 'authenticated' : 'unknownClient';
  return {
    sender,
    login: sender === 'authenticated' ? [`Authorization: ${context.authorization}`] : [],
  };
}

/** Answered at most once, with a refusal; the body is never read as a request. */
function ambiguousLength(context: CaseContext): Case {
  const { login, sender } = sentBy(context);
  const body = context.random.chance(0.5) ? smuggled : `0\r\n\r\n${smuggled}`;
  const ambiguousHeaders = oneOf(context.random, ambiguous(body.length));
  const head = request({ headers: [...login, ...ambiguousHeaders], hasLength: false });
  const pieces = [Buffer.concat([head, Buffer.from(body)])];
  const further = { sender, connection: 'closes' } as const;
  return attackCase('framing: ambiguous length', pieces, unknownClientStatuses, further);
}

function brokenChunk(context: CaseContext): Case {
  const { login, sender } = sentBy(context);
  const headers = [...login, 'Transfer-Encoding: chunked'];
  const head = request({ headers, hasLength: false });
  const body = oneOf(context.random, brokenChunks(context.notification(sender)));
  const tail = Buffer.from(body + smuggled);
  // An unknown client is answered before the chunk arrives; there must be no second answer.
  const pieces = context.random.chance(0.5) ? [head, tail] : [Buffer.concat([head, tail])];
  const further = { sender, connection: 'closes' } as const;
  return attackCase('framing: broken chunk', pieces, unknownClientStatuses, further);
}

function bareLineEnds(context: CaseContext): Case {
  const { login, sender } = sentBy(context);
  const whole = request({ headers: login, body: context.notification(sender) }).toString('latin1');
  const end = oneOf(context.random, ['\n', '\r', '\r\r\n', '\n\r', '\0\r\n']);
  const [head = '', body = ''] = whole.split(/\r\n\r\n(.*)/s);
  const pieces = [Buffer.from(head.replaceAll('\r\n', end) + end + end + body, 'latin1')];
  const further = { sender, connection: 'ends' } as const;
  return attackCase('framing: line ends', pieces, unknownClientStatuses, further);
}

/** GET with a body of the correct length: the body is never read as the next request. */
function lengthOfGet({ random }: CaseContext): Case {
  const isHead = random.chance(0.3);
  const method = isHead ? 'HEAD' : 'GET';
  const pieces = [request({ method, body: smuggled.repeat(random.integer(1, 3)) })];
  return attackCase('framing: GET with a body', pieces, refusedLogin, { isHead });
}

function tooManyBytes(context: CaseContext): Case {
  const { login, sender } = sentBy(context);
  const body = context.notification(sender);
  const cut = `Content-Length: ${body.length - context.random.integer(1, 20)}`;
  const head = request({ headers: [...login, cut], hasLength: false });
  const pieces = [Buffer.concat([head, Buffer.from(body)])];
  const further = { sender, answersMax: 2, connection: 'ends' } as const;
  return attackCase('framing: longer than Content-Length', pieces, unknownClientStatuses, further);
}

function truncated(context: CaseContext): Case {
  const { login, sender } = sentBy(context);
  const whole = request({ headers: login, body: context.notification(sender) });
  const pieces = [whole.subarray(0, context.random.integer(1, whole.length - 1))];
  const further = { sender, connection: 'ends' } as const;
  return attackCase('framing: truncated', pieces, unknownClientStatuses, further);
}
