/** A connection that sends hostile bytes, and checks the answers strictly. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { type Answer, checkAnswer, NoAnswer, takeAnswer } from './answers.ts';
import type { Case, ValidPush } from './requests.ts';

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

/** Sends a case, and checks its answers. */
export async function playCase(wire: Wire, played: Case): Promise<Played> {
  const { pieces, connection, answersMax, statuses } = played;
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await delay(betweenPiecesMs);
    wire.send(piece);
  }
  if (connection === 'ends' || connection === 'foreign') wire.socket.end();
  const isHead = pieces[0]?.toString('latin1', 0, 5) === 'HEAD ';
  const answers: Answer[] = [];
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
    const answer = await nextAnswer(wire, isHead, giveUpMs).catch((error: unknown) => {
      if (error instanceof NoAnswer) return error;
      throw error;
    });
    if (answer === 'end') break;
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
export async function playPush(wire: Wire, push: ValidPush): Promise<Played> {
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

async function nextAnswer(wire: Wire, isHead: boolean, giveUpMs: number) {
  for (;;) {
    const taken = takeAnswer(wire.received, isHead);
    if (taken !== null) {
      wire.received = wire.received.subarray(taken.end);
      return taken.answer;
    }
    if (wire.hasEnded) return 'end' as const;
    const leftMs = giveUpMs - performance.now();
    if (leftMs <= 0) throw new NoAnswer('neither answered nor closed');
    await wire.change(leftMs);
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
  let wake = () => {};
  const wire: Wire = {
    socket,
    received: Buffer.alloc(0),
    hasEnded: false,
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    change: async (timeoutMs) => {
      if (wire.hasEnded) return;
      const changed = Promise.withResolvers<void>();
      wake = changed.resolve;
      const timer = setTimeout(changed.resolve, timeoutMs);
      await changed.promise;
      clearTimeout(timer);
    },
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
