/** Strict parser of HTTP answers. */
import type { Socket } from 'node:net';

export interface ParsedAnswer {
  readonly status: number;
  /** Names in lower case, in the order of the answer. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** Reads the answers on a connection. */
export class AnswerReader {
  /** Received bytes that are not parsed yet. */
  received: Buffer = Buffer.alloc(0);
  /** True after the other side has closed or reset the connection. */
  hasEnded = false;
  #wake = () => {};

  readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
    const end = () => {
      this.hasEnded = true;
      this.#wake();
    };
    socket.on('data', (bytes: Buffer) => {
      this.received = Buffer.concat([this.received, bytes]);
      this.#wake();
    });
    // A reset also ends the connection.
    socket.on('end', end).on('close', end).on('error', end);
  }

  /** Resolves when bytes were received, the other side has closed, or the time has elapsed. */
  async change(timeoutMs: number): Promise<void> {
    if (this.hasEnded) return;
    const changed = Promise.withResolvers<void>();
    this.#wake = changed.resolve;
    const timer = setTimeout(changed.resolve, timeoutMs);
    await changed.promise;
    clearTimeout(timer);
  }

  /** Returns the next answer; null when the connection has ended before it. Rejects with `NoAnswer`. */
  async next(isHead: boolean, timeoutMs = 600_000): Promise<ParsedAnswer | null> {
    const giveUpMs = performance.now() + timeoutMs;
    for (;;) {
      const taken = takeAnswer(this.received, isHead);
      if (taken !== null) {
        this.received = this.received.subarray(taken.end);
        return taken.answer;
      }
      if (this.hasEnded) return null;
      const leftMs = giveUpMs - performance.now();
      if (leftMs <= 0) throw new NoAnswer('neither answered nor closed');
      await this.change(leftMs);
    }
  }
}

/** Bytes that are not an HTTP answer; the message has the reason. */
export class NoAnswer extends Error {}

/** Returns the first answer in `bytes` and its end; null when more bytes are needed. Throws `NoAnswer`. */
function takeAnswer(bytes: Buffer, isHead: boolean): { answer: ParsedAnswer; end: number } | null {
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
function contentOf(rest: Buffer, headers: ParsedAnswer['headers']) {
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
