/** Plays one case on a connection, and says what is wrong with what comes back. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { type Case, stranger, type ValidPush } from './case.ts';

export interface Played {
  readonly answers: readonly Answer[];
  /** What must not be; null when all is as it should be. */
  readonly harm: string | null;
  /** Whether the connection may be used again. */
  readonly isOpen: boolean;
}

/** Longer than the server waits for anything that these cases leave it waiting for. */
const patienceMs = 15_000;
const betweenPiecesMs = 2;

/** `judge` says what is wrong with one answer, or null. */
export async function playCase(
  wire: Wire,
  played: Case,
  judge: (answer: Answer) => string | null,
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
    if (answer instanceof NoAnswer) return done(`an answer that is none: ${answer.message}`);
    if (answer.status === 100) continue;
    answers.push(answer);
    if (answers.length > answersMax) return done(`${answers.length} answers`);
    const harm = played.statuses.includes(answer.status)
      ? judge(answer)
      : `status ${answer.status}, not ${played.statuses.join(', ')}`;
    if (harm !== null) return done(harm);
  }
  if (connection === 'stays' && answers.length < answersMax && !closesConnection(answers.at(-1))) {
    return done(`closed after ${answers.length} of ${answersMax} answers`);
  }
  return done(null);
}

/** Sends a valid push, which must be stored, and answered by exactly that. */
export async function playPush(
  wire: Wire,
  push: ValidPush,
  judge: (answer: Answer) => string | null,
): Promise<Played> {
  const { name, pieces } = push;
  const asCase = stranger(name, pieces, [200], { sender: 'holder' });
  if (wire.received.length > 0) {
    const harm = `bytes that nobody asked for: ${wire.received.toString('latin1').slice(0, 200)}`;
    return { answers: [], harm, isOpen: false };
  }
  const played = await playCase(wire, asCase, judge);
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

/** A port that speaks TLS says nothing but an alert (RFC 8446, 6: record type 21) to who does not. */
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
  /** Names in lower case, in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** What is wrong with bytes that are no answer; the message says what. */
class NoAnswer extends Error {}

/** The first answer in `bytes` and where it ends; null when more bytes are needed. Throws `NoAnswer`. */
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

/** A listener on loopback; without an authority it speaks plain HTTP. */
export interface Address {
  readonly port: number;
  readonly authorityPem?: string;
}

export interface Wire {
  readonly socket: Socket;
  /** What has come and was not taken yet. */
  received: Buffer;
  /** That no more comes: the other side has closed, or reset. */
  hasEnded: boolean;
  send(bytes: Uint8Array): void;
  /** Resolves when something came, the other side has closed, or the time is over. */
  change(timeoutMs: number): Promise<void>;
  close(): void;
}

const connectTimeoutMs = 20_000;

/** Rejects when no connection can be made. `localAddress` is one of 127.0.0.0/8 (Linux). */
export async function openWire(address: Address, localAddress = '127.0.0.1'): Promise<Wire> {
  const { port, authorityPem } = address;
  const where = { host: '127.0.0.1', port, localAddress };
  const isSecure = authorityPem !== undefined;
  const socket = isSecure
    ? connectTls({ ...where, ca: authorityPem, servername: 'localhost' })
    : connectTcp(where);
  socket.setNoDelay(true);
  const connected = once(socket, isSecure ? 'secureConnect' : 'connect');
  const late = new AbortController();
  const timeout = delay(connectTimeoutMs, 'late', { signal: late.signal, ref: false });
  try {
    if ((await Promise.race([connected, timeout])) === 'late') throw new Error('no connection');
  } catch (error) {
    socket.on('error', () => undefined).destroy();
    throw error;
  } finally {
    late.abort();
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
  // A reset is one of the ways in which a connection ends.
  socket.on('end', end).on('close', end).on('error', end);
  return wire;
}
