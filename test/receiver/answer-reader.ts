/** Reads HTTP/1.x answers off a byte stream, as strictly as a test needs. */

/** One answer. Header names are in lower case; a repeated header keeps its last value. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export interface AnswerReader {
  add(bytes: Buffer): void;
  /** The next whole answer, or null when more bytes are needed. */
  take(options: { head: boolean; ended: boolean }): Answer | null;
}

export function createAnswerReader(): AnswerReader {
  let buffered = Buffer.alloc(0);
  return {
    add: (bytes) => {
      buffered = Buffer.concat([buffered, bytes]);
    },
    take: ({ head, ended }) => {
      const headEnd = buffered.indexOf('\r\n\r\n');
      if (headEnd === -1) return null;
      const { status, headers } = parseHead(buffered.subarray(0, headEnd).toString('latin1'));
      const rest = buffered.subarray(headEnd + 4);
      const bodiless = head || status < 200 || status === 204;
      const body = bodiless ? { bytes: '', length: 0 } : takeBody(rest, headers, ended);
      if (body === null) return null;
      buffered = rest.subarray(body.length);
      return { status, headers, body: body.bytes };
    },
  };
}

function parseHead(text: string): Pick<Answer, 'status' | 'headers'> {
  const [statusLine = '', ...lines] = text.split('\r\n');
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1];
  if (status === undefined) throw new Error(`not a status line: ${statusLine}`);
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  return { status: Number(status), headers };
}

function takeBody(rest: Buffer, headers: Answer['headers'], ended: boolean) {
  const announced = headers['content-length'];
  if (announced !== undefined) return slice(rest, Number(announced));
  if (headers['transfer-encoding'] === 'chunked') return takeChunks(rest);
  return ended ? slice(rest, rest.length) : null;
}

function takeChunks(rest: Buffer) {
  let bytes = '';
  for (let offset = 0; ; ) {
    const lineEnd = rest.indexOf('\r\n', offset);
    if (lineEnd === -1) return null;
    const size = Number.parseInt(rest.subarray(offset, lineEnd).toString('latin1'), 16);
    const chunkEnd = lineEnd + 2 + size;
    if (rest.length < chunkEnd + 2) return null;
    bytes += rest.subarray(lineEnd + 2, chunkEnd).toString('utf8');
    offset = chunkEnd + 2;
    if (size === 0) return { bytes, length: offset };
  }
}

function slice(rest: Buffer, length: number) {
  if (rest.length < length) return null;
  return { bytes: rest.subarray(0, length).toString('utf8'), length };
}
