/** Strict parser of HTTP answers, and checks of their headers and bodies. */

export interface Answer {
  readonly status: number;
  /** Names in lower case, in the order of the answer. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** Bytes that are not an HTTP answer; the message has the reason. */
export class NoAnswer extends Error {}

/** Returns the first answer in `bytes` and its end; null when more bytes are needed. Throws `NoAnswer`. */
export function takeAnswer(bytes: Buffer, isHead: boolean): { answer: Answer; end: number } | null {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) {
    if (bytes.length > 16_384) throw new NoAnswer('a head without end');
    if (!'HTTP/1.1 '.startsWith(bytes.toString('latin1', 0, 9))) throw new NoAnswer('no HTTP/1.1');
    return null;
  }
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) [ -~]*$/.exec(statusLine)?.[1]);
  if (Number.isNaN(status)) throw new NoAnswer(`a status line of ${JSON.stringify(statusLine)}`);
  const headers = lines.map((line): readonly [string, string] => {
    const parts = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff]*)$/.exec(line);
    if (parts === null) throw new NoAnswer(`a header of ${JSON.stringify(line)}`);
    return [(parts[1] ?? '').toLowerCase(), parts[2] ?? ''];
  });
  const isBodiless = isHead || status < 200 || status === 204 || status === 304;
  const content = isBodiless
    ? { body: '', end: 0 }
    : contentOf(bytes.subarray(headEnd + 4), headers);
  if (content === null) return null;
  return { answer: { status, headers, body: content.body }, end: headEnd + 4 + content.end };
}

/** Reads the content by its length or by chunks, never both; null when more bytes are needed. */
function contentOf(rest: Buffer, headers: Answer['headers']) {
  const sizes = headers.filter(([name]) => /^(?:content-length|transfer-encoding)$/.test(name));
  const [[name, size] = []] = sizes;
  if (sizes.length !== 1 || size === undefined) throw new NoAnswer('no single length');
  if (name === 'transfer-encoding') return chunksOf(rest);
  if (!/^\d+$/.test(size)) throw new NoAnswer(`a length of ${JSON.stringify(size)}`);
  const end = Number(size);
  return rest.length < end ? null : { body: rest.toString('utf8', 0, end), end };
}

function chunksOf(rest: Buffer): { body: string; end: number } | null {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf('\r\n', at);
    if (lineEnd === -1) return null;
    const line = rest.toString('latin1', at, lineEnd);
    if (!/^[0-9a-f]+$/i.test(line)) throw new NoAnswer(`a chunk of ${JSON.stringify(line)}`);
    const size = Number.parseInt(line, 16);
    const end = lineEnd + 2 + size + 2;
    if (rest.length < end) return null;
    if (rest.toString('latin1', end - 2, end) !== '\r\n') throw new NoAnswer('a chunk too long');
    if (size === 0) return { body: Buffer.concat(parts).toString('utf8'), end };
    parts.push(rest.subarray(lineEnd + 2, end - 2));
    at = end;
  }
}

const headersAllowed: readonly string[] = [
  ...['date', 'connection', 'keep-alive', 'content-type', 'content-length', 'transfer-encoding'],
  ...['cache-control', 'content-security-policy', 'x-content-type-options'],
  ...['strict-transport-security', 'www-authenticate', 'allow', 'retry-after', 'accept-encoding'],
];

const safetyHeaders = ['cache-control', 'content-security-policy', 'x-content-type-options'];

const parserHeaders = ['connection', 'content-length', 'transfer-encoding', 'date'];

/** Paths, stack traces, versions and names of internals, which answers must not contain. */
const revealing =
  /node_modules|node:|\/(?:src|home|tmp|usr|var|etc)\/|\.[cm]?[jt]s\b|\bat .+:\d+:\d+|\b(?:Type|Range|Syntax|Zod)Error|sqlite|hono|\bv?\d+\.\d+\.\d+|bench:/i;

/** Returns the problem of an answer, independent of the request, or null. */
export function checkAnswer({ status, headers, body }: Answer): string | null {
  const bad = headers.find(
    ([name, value]) => !headersAllowed.includes(name) || revealing.test(`${name}: ${value}`),
  );
  if (bad !== undefined) return `a header ${bad.join(': ')}`;
  const names = headers.map(([name]) => name);
  if (new Set(names).size < names.length) return `a header twice: ${names.join(', ')}`;
  // The HTTP parser answers an invalid request with few headers and no body.
  const isOfParser = names.every((name) => parserHeaders.includes(name));
  if (body === '' && status >= 400 && isOfParser) return null;
  const needed = { 401: 'www-authenticate', 405: 'allow', 429: 'retry-after', 503: 'retry-after' };
  const own = Object.entries(needed).flatMap(([one, name]) => (one === `${status}` ? name : []));
  const missing = [...safetyHeaders, ...own].find((name) => !names.includes(name));
  if (missing !== undefined) return `no header ${missing}`;
  if (body === '') return null;
  if (revealing.test(body)) return `a body that reveals internals: ${body.slice(0, 300)}`;
  if (status === 200) return /^\{"status":"(stored|duplicate)"\}$/.test(body) ? null : body;
  return isProblem(body, status) ? null : `no problem JSON: ${body.slice(0, 300)}`;
}

/** Returns true for a problem JSON (RFC 9457) with documented fields only. */
function isProblem(body: string, status: number): boolean {
  const known = ['type', 'title', 'status', 'detail', 'errors', 'requestId'];
  try {
    const problem = JSON.parse(body);
    const isKnown = Object.keys(problem).every((name) => known.includes(name));
    return isKnown && problem.status === status && 'requestId' in problem;
  } catch {
    return false;
  }
}
