/** A connection that sends hostile bytes, and checks the answers strictly. */
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { AnswerReader, NoAnswer, type ParsedAnswer } from '../helpers/http-answers.ts';
import type { Case, validPush } from './requests.ts';

export interface Played {
  readonly answers: readonly ParsedAnswer[];
  /** Problem of the answers; null when there is none. */
  readonly harm: string | null;
  /** True when the connection can be reused. */
  readonly isOpen: boolean;
}

/** Maximum wait for an answer or a close; longer than all timeouts of the server that these cases cause. */
const patienceMs = 15_000;
const betweenPiecesMs = 2;

/** Sends a case, and checks its answers. */
export async function playCase(wire: Wire, played: Case): Promise<Played> {
  const { pieces, connection, answersMax, statuses } = played;
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await delay(betweenPiecesMs);
    wire.send(piece);
  }
  if (connection === 'ends' || connection === 'foreign') wire.socket.end();
  const isHead = pieces[0]?.toString('latin1', 0, 5) === 'HEAD ';
  const answers: ParsedAnswer[] = [];
  const closes = () =>
    answers.at(-1)?.headers.some(([name, text]) => name === 'connection' && text === 'close');
  const done = (harm: string | null): Played => {
    const isOpen = !wire.hasEnded && wire.socket.writable && closes() !== true;
    return { answers, harm, isOpen };
  };
  const giveUpMs = performance.now() + patienceMs;
  if (connection === 'foreign') {
    while (!wire.hasEnded && performance.now() < giveUpMs) await wire.change(patienceMs);
    // A TLS port sends nothing but an alert (RFC 8446, 6: record type 21) to a client without TLS.
    const isAlert = wire.received[0] === 21 && wire.received.length <= 7;
    if (!wire.hasEnded) return done('not closed');
    return done(wire.received.length === 0 || isAlert ? null : 'more than an alert without TLS');
  }
  while (connection !== 'stays' || answers.length < answersMax) {
    const leftMs = giveUpMs - performance.now();
    const answer = await wire.next(isHead, leftMs).catch((error: unknown) => {
      if (error instanceof NoAnswer) return error;
      throw error;
    });
    if (answer === null) break;
    if (answer instanceof NoAnswer) return done(answer.message);
    if (answer.status === 100) continue;
    answers.push(answer);
    if (answers.length > answersMax) return done(`${answers.length} answers`);
    const harm = statuses.includes(answer.status)
      ? checkAnswer(answer)
      : `status ${answer.status}, not ${statuses.join(', ')}`;
    if (harm !== null) return done(harm);
  }
  if (connection === 'stays' && answers.length < answersMax && closes() !== true) {
    return done(`closed after ${answers.length} of ${answersMax} answers`);
  }
  return done(null);
}

/** Sends a valid push, which must be answered as stored. */
export async function playPush(wire: Wire, push: ReturnType<typeof validPush>): Promise<Played> {
  if (wire.received.length > 0) {
    const harm = `unexpected bytes: ${wire.received.toString('latin1').slice(0, 200)}`;
    return { answers: [], harm, isOpen: false };
  }
  const { name, pieces } = push;
  const rules = { answersMax: 1, statuses: [200], connection: 'stays' } as const;
  const played = await playCase(wire, { name, pieces, ...rules });
  const [answer] = played.answers;
  if (played.harm !== null || answer?.body === '{"status":"stored"}') return played;
  return { ...played, harm: `a valid push was answered with ${answer?.body ?? 'nothing'}` };
}

/** Listener on loopback; plain HTTP without an authority. */
export interface Address {
  readonly port: number;
  readonly authorityPem?: string;
}

export class Wire extends AnswerReader {
  send(bytes: Uint8Array): void {
    if (this.socket.writable) this.socket.write(bytes);
  }

  close(): void {
    this.socket.destroy();
  }
}

const connectTimeoutMs = 20_000;

/** Connects. Rejects when no connection can be made. `localAddress` is one of 127.0.0.0/8 (Linux). */
export async function openWire(address: Address, localAddress = '127.0.0.1'): Promise<Wire> {
  const { port, authorityPem: ca } = address;
  const where = { host: '127.0.0.1', port, localAddress };
  const isSecure = ca !== undefined;
  const socket = isSecure
    ? connectTls({ ...where, ca, servername: 'localhost' })
    : connectTcp(where);
  socket.setNoDelay(true);
  try {
    const signal = AbortSignal.timeout(connectTimeoutMs);
    await once(socket, isSecure ? 'secureConnect' : 'connect', { signal });
  } catch (error) {
    socket.on('error', () => undefined).destroy();
    throw error;
  }
  return new Wire(socket);
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
function checkAnswer({ status, headers, body }: ParsedAnswer): string | null {
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
