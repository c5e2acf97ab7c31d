/** Reads HTTP/1.1 answers as strictly as a proxy would that must not be fooled. */

export interface Answer {
  readonly status: number;
  /** Names in lower case, in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** What is wrong with bytes that are no answer; the message says what. */
export class NoAnswer extends Error {}

/** The first answer in `bytes` and where it ends; null when more bytes are needed. Throws `NoAnswer`. */
export function takeAnswer(
  bytes: Buffer,
  { isHead }: { isHead: boolean },
): { answer: Answer; end: number } | null {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) {
    if (bytes.length > 16_384) throw new NoAnswer('a head without end');
    if (!'HTTP/1.1 '.startsWith(bytes.toString('latin1', 0, 9))) throw new NoAnswer('no HTTP/1.1');
    return null;
  }
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) [ -~]*$/.exec(statusLine)?.[1]);
  if (Number.isNaN(status)) throw new NoAnswer(`a status line of ${JSON.stringify(statusLine)}`);
  const headers = lines.map(headerOf);
  const rest = bytes.subarray(headEnd + 4);
  const isBodiless = isHead || status < 200 || status === 204 || status === 304;
  const content = isBodiless ? { bytes: rest.subarray(0, 0), end: 0 } : contentOf(rest, headers);
  if (content === null) return null;
  const body = content.bytes.toString('utf8');
  return { answer: { status, headers, body }, end: headEnd + 4 + content.end };
}

function headerOf(line: string): readonly [string, string] {
  const parts = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff]*)$/.exec(line);
  if (parts === null) throw new NoAnswer(`a header of ${JSON.stringify(line)}`);
  return [(parts[1] ?? '').toLowerCase(), parts[2] ?? ''];
}

interface Content {
  bytes: Buffer;
  end: number;
}

/** By its one length, or by chunks, and never by both; null when more bytes are needed. */
function contentOf(rest: Buffer, headers: Answer['headers']): Content | null {
  const valuesOf = (wanted: string) =>
    headers.filter(([name]) => name === wanted).map(([, value]) => value);
  const [lengths, codings] = [valuesOf('content-length'), valuesOf('transfer-encoding')];
  if (lengths.length + codings.length !== 1) throw new NoAnswer('no single length');
  if (codings.length === 1) return chunksOf(rest);
  const [length = ''] = lengths;
  if (!/^\d+$/.test(length)) throw new NoAnswer(`a length of ${JSON.stringify(length)}`);
  const end = Number(length);
  return rest.length < end ? null : { bytes: rest.subarray(0, end), end };
}

function chunksOf(rest: Buffer): Content | null {
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
    if (size === 0) return { bytes: Buffer.concat(parts), end };
    parts.push(rest.subarray(lineEnd + 2, end - 2));
    at = end;
  }
}
