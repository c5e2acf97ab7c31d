/** Requests that two parsers could interpret differently, or that are not HTTP: line ends, lengths, chunks, first lines. */

const chunked = 'Transfer-Encoding: chunked';

const firstLines: readonly string[] = [
  ...['post / HTTP/1.1', 'POST / HTTP/9.9', 'POST notifications HTTP/1.1', 'POST HTTP/1.1', 'GET'],
  ...[' GET / HTTP/1.1', 'GET\t/ HTTP/1.1', 'GE\0T / HTTP/1.1', 'GET / HTTP/11', '{} HTTP/1.1'],
  ...['SSH-2.0-x', 'EHLO x', 'PROXY TCP4 1.1.1.1 2.2.2.2 1 2'],
];

/** Headers with an ambiguous end of the body, or an invalid one. */
const headers = (length: string): readonly (readonly string[])[] => [
  ...['-1', '+5', '0x5', '9'.repeat(24), '1e3', '5 1', '"5"', '5;', '5\0', '\xb2', '5, 5', ''].map(
    (text) => [`Content-Length: ${text}`],
  ),
  ...['chunked, identity', 'identity', 'xchunked', 'chunked;q=1', 'chun ked', '"chunked"', ''].map(
    (text) => [`Transfer-Encoding: ${text}`],
  ),
  [length, 'Content-Length: 5'],
  [length, length],
  [length, chunked],
  [chunked, length],
  ...[[chunked, 'Transfer-Encoding: identity'], ['Transfer-Encoding : chunked'], [` ${chunked}`]],
  [`X: y\r${chunked}`, length],
  [`X: y\n${chunked}`, length],
  ['nonsense', length],
  ...[['X: y\r\n Content-Length: 0', length], [length.replace(':', ' :')], ['X: a\0b', length]],
  ['Transfer-Encoding:\x0bchunked', length],
];

const chunks = (body: string): readonly string[] => {
  const size = body.length.toString(16);
  const sizes = ['zz', '-1', ' 5', '5', 'f'.repeat(18), `${size};${'x'.repeat(20_000)}`];
  return [
    ...sizes.map((one) => `${one}\r\n${body}\r\n0\r\n\r\n`),
    `${size}\n${body}\n0\n\n`,
    `${size}\r\n${body}0\r\n\r\n`,
  ];
};

/**
 * Returns the requests. Each must end with one 4xx and a closed connection. `head` returns the head of a push with these
 * lines, with the blank line.
 */
export function refusedRequests(head: (...lines: string[]) => string, body: string): string[] {
  const length = `Content-Length: ${body.length}`;
  const whole = head(length) + body;
  return [
    ...firstLines.map((line) => whole.replace(/^.*/, line)),
    ...headers(length).map((lines) => head(...lines) + body),
    ...chunks(body).map((content) => head(chunked) + content),
    ...[whole.replace(/Host: .*\r\n/, ''), head(length).replaceAll('\r', '') + body],
    ...['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', `${'\x01\x80\xff'.repeat(500)}\r\n\r\n`],
    `POST /notifications\r\n\r\n${body}`,
  ];
}
