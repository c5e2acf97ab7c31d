/** Shapes of requests that no proper sender makes, each around a body that would be stored. */
import { basic } from './raw-client.ts';

export type RequestShape = (body: string) => string;

/** A head of these lines, with the right credentials. */
function head(...headers: string[]): string {
  return [
    'POST /notifications HTTP/1.1',
    'Host: h',
    `Authorization: ${basic()}`,
    ...headers,
    '',
    '',
  ].join('\r\n');
}

/** A head with another first line, and a length that fits. */
function started(startLine: string, body: string): string {
  return head(`Content-Length: ${body.length}`).replace(/^.*(?=\r\n)/, startLine) + body;
}

const length = (body: string) => `Content-Length: ${body.length}`;
const chunked = 'Transfer-Encoding: chunked';

/** Each must end in one 4xx and a closed connection, with nothing stored of what it carries. */
export const refusedShapes: Record<string, RequestShape> = {
  'two lengths that differ': (body) => head(length(body), 'Content-Length: 5') + body,
  'length and chunked': (body) => head(length(body), chunked) + body,
  'chunked and length': (body) => `${head(chunked, 'Content-Length: 4')}0\r\n\r\n${body}`,
  'chunked that is not last': (body) => head('Transfer-Encoding: chunked, identity') + body,
  'a negative length': (body) => head('Content-Length: -1') + body,
  'a length with a sign': (body) => head(`Content-Length: +${body.length}`) + body,
  'a length in hex': (body) => head(`Content-Length: 0x${body.length.toString(16)}`) + body,
  'a length beyond all numbers': (body) => head(`Content-Length: ${'9'.repeat(24)}`) + body,
  'a chunk size that is no number': (body) => `${head(chunked)}zz\r\n${body}\r\n0\r\n\r\n`,
  'a chunk size beyond all numbers': (body) => `${head(chunked)}${'f'.repeat(18)}\r\n${body}`,
  'chunks that do not end where they say': (body) => `${head(chunked)}5\r\n${body}\r\n0\r\n\r\n`,
  'bare line feeds': (body) => head(length(body)).replaceAll('\r', '') + body,
  'a blank before a colon': (body) => head(`Content-Length : ${body.length}`) + body,
  'a header without colon': (body) => head('nonsense', length(body)) + body,
  'a zero byte in a header': (body) => head('X: a\0b', length(body)) + body,
  'no Host': (body) => head('Connection: close', length(body)).replace('Host: h\r\n', '') + body,
  'a lower-case method': (body) => started('post /notifications HTTP/1.1', body),
  'an unknown version': (body) => started('POST /notifications HTTP/9.9', body),
  'a target without slash': (body) => started('POST notifications HTTP/1.1', body),
  'no version at all': (body) => `POST /notifications\r\n\r\n${body}`,
  'the greeting of HTTP/2': () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  noise: () => `${'\x01\x80\xff'.repeat(500)}\r\n\r\n`,
};
