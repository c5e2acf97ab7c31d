/** Runs one case on a connection and checks the answers. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { attackCase, type Case, type ValidPush } from './case.ts';

export interface Played {
  readonly answers: readonly Answer[];
  /** Problem of the answers; null when there is none. */
  readonly harm: string | null;
  /** True when the connection can be reused. */
  readonly isOpen: boolean;
}

/** Maximum wait for an answer or a close; longer than all timeouts of the server that these cases cause. */
const patienceMs = 15_000;
const betweenPiecesMs = 2;

/** Runs a case. `check` returns the problem of an answer, or null. */
export async function playCase(
  wire: Wire,
  played: Case,
  check: (answer: Answer) => string | null,
): Promise<Played> {
  await sendPieces(wire, played.pieces);
  const { connection, answersMax } = played;
  if (connection === 'ends' || connection === 'foreign') wire.socket.end();
  const answers: Answer[] = [];
  const done = (harm: string | null) => ({ answers, harm, isOpen: isReusable(wire, answers) });
  const untilClosed = connection !== 'stays';
  const giveUpMs = performance.now() + patienceMs;
  if (connection === 'foreign') return await foreignEnd(wire, giveUpMs, done);
  while (untilClosed || answers.length < answersMax) {
    const answer = await nextAnswer(wire, { isHead: played.isHead === true, giveUpMs });
    if (answer === 'silence') return done('neither answered nor closed');
    if (answer === 'end') break;
    if (answer instanceof NoAnswer) return done(`not an HTTP answer: ${answer.message}`);
    if (answer.status === 100) continue;
    answers.push(answer);
    if (answers.length > answersMax) return done(`${answers.length} answers`);
    const harm = played.statuses.includes(answer.status)
      ? check(answer)
      : `status ${answer.status}, not ${played.statuses.join(', ')}`;
    if (harm !== null) return done(harm);
  }
  if (connection === 'stays' && answers.length < answersMax && !closesConnection(answers.at(-1))) {
    return done(`closed after ${answers.length} of ${answersMax} answers`);
  }
  return done(null);
}

/** Sends a valid push, which must be answered as stored. */
export async function playPush(
  wire: Wire,
  push: ValidPush,
  check: (answer: Answer) => string | null,
): Promise<Played> {
  const { name, pieces } = push;
  const asCase = attackCase(name, pieces, [200], { sender: 'authenticated' });
  if (wire.received.length > 0) {
    const harm = `unexpected bytes: ${wire.received.toString('latin1').slice(0, 200)}`;
    return { answers: [], harm, isOpen: false };
  }
  const played = await playCase(wire, asCase, check);
  const [answer] = played.answers;
  if (played.harm !== null || answer?.body === '{"status":"stored"}') return played;
  return { ...played, harm: `a valid push was answered with ${answer?.body ?? 'nothing'}` };
}

async function sendPieces(wire: Wire, pieces: readonly Buffer[]): Promise<void> {
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await delay(betweenPiecesMs);
    wire.send(piece);
  }
}

async function nextAnswer(
  wire: Wire,
  { isHead, giveUpMs }: { isHead: boolean; giveUpMs: number },
): Promise<Answer | NoAnswer | 'silence' | 'end'> {
  for (;;) {
    try {
      const taken = takeAnswer(wire.received, { isHead });
      if (taken !== null) {
        wire.received = wire.received.subarray(taken.end);
        return taken.answer;
      }
    } catch (error) {
      if (error instanceof NoAnswer) return error;
      throw error;
    }
    if (wire.hasEnded) return 'end';
    const leftMs = giveUpMs - performance.now();
    if (leftMs <= 0) return 'silence';
    await wire.change(leftMs);
  }
}

/** A TLS port sends nothing but an alert (RFC 8446, 6: record type 21) to a client without TLS. */
async function foreignEnd(
  wire: Wire,
  giveUpMs: number,
  done: (harm: string | null) => Played,
): Promise<Played> {
  while (!wire.hasEnded && performance.now() < giveUpMs) await wire.change(patienceMs);
  if (!wire.hasEnded) return done('not closed');
  const isAlert = wire.received[0] === 21 && wire.received.length <= 7;
  return done(wire.received.length === 0 || isAlert ? null : 'more than an alert without TLS');
}

function isReusable(wire: Wire, answers: readonly Answer[]): boolean {
  return !wire.hasEnded && wire.socket.writable && !closesConnection(answers.at(-1));
}

function closesConnection(answer: Answer | undefined): boolean {
  return answer?.headers.some(([name, text]) => name === 'connection' && text === 'close') ?? false;
}

export interface Answer {
  readonly status: number;
  /** Names in lower case, in the order of the answer. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** Bytes that are not an HTTP answer; the message has the reason. */
class NoAnswer extends Error {}

/** Returns the first answer in `bytes` and its end; null when more bytes are needed. Throws `NoAnswer`. */
function takeAnswer(
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

/** Reads the content by its length or by chunks, never both; null when more bytes are needed. */
function contentOf(rest: Buffer, headers: Answer['headers']): Content | null {
  const valuesOf = (header: string) =>
    headers.filter(([name]) => name === header).map(([, value]) => value);
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

/** Listener on loopback; plain HTTP without an authority. */
export interface Address {
  readonly port: number;
  readonly authorityPem?: string;
}

export interface Wire {
  readonly socket: Socket;
  /** Received bytes that are not parsed yet. */
  received: Buffer;
  /** True after the other side has closed or reset the connection. */
  hasEnded: boolean;
  send(bytes: Uint8Array): void;
  /** Resolves when bytes were received, the other side has closed, or the time has elapsed. */
  change(timeoutMs: number): Promise<void>;
  close(): void;
}

const connectTimeoutMs = 20_000;

/** Connects. Rejects when no connection can be made. `localAddress` is one of 127.0.0.0/8 (Linux). */
export async function openWire(address: Address, localAddress = '127.0.0.1'): Promise<Wire> {
  const { port, authorityPem } = address;
  const where = { host: '127.0.0.1', port, localAddress };
  const isSecure = authorityPem !== undefined;
  const socket = isSecure
    ? connectTls({ ...where, ca: authorityPem, servername: 'localhost' })
    : connectTcp(where);
  socket.setNoDelay(true);
  const connected = once(socket, isSecure ? 'secureConnect' : 'connect');
  const timer = new AbortController();
  const timeout = delay(connectTimeoutMs, 'timeout', { signal: timer.signal, ref: false });
  try {
    if ((await Promise.race([connected, timeout])) === 'timeout') throw new Error('no connection');
  } catch (error) {
    socket.on('error', () => undefined).destroy();
    throw error;
  } finally {
    timer.abort();
    timeout.catch(() => undefined);
  }
  return wireOver(socket);
}

function wireOver(socket: Socket): Wire {
  let wake = () => {};
  const wire: Wire = {
    socket,
    received: Buffer.alloc(0),
    hasEnded: false,
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    change: (timeoutMs) =>
      new Promise((resolve) => {
        if (wire.hasEnded) return resolve();
        const timer = setTimeout(() => wake(), timeoutMs);
        wake = () => {
          clearTimeout(timer);
          wake = () => {};
          resolve();
        };
      }),
    close: () => void socket.destroy(),
  };
  const end = () => {
    wire.hasEnded = true;
    wake();
  };
  socket.on('data', (bytes: Buffer) => {
    wire.received = Buffer.concat([wire.received, bytes]);
    wake();
  });
  // A reset also ends the connection.
  socket.on('end', end).on('close', end).on('error', end);
  return wire;
}
