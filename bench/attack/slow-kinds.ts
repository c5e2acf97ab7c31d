/** Connections that never end: those of a stranger, and pushes with the right credentials whose bodies drip. */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export const slowKinds = [
  'silent',
  'half a handshake',
  'slow head',
  'slow body',
  'idle',
  'reads nothing',
] as const;
export type SlowKind = (typeof slowKinds)[number] | 'slow push';

export interface SlowPlace {
  readonly port: number;
  readonly localAddress: string;
  /** The right Authorization value, for `slow push`. */
  readonly authorization?: string;
}

const dripMs = 3_000;
const helloStart = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);

/** Opens one and keeps it going until it is closed. Errors are left to `close`. */
export function openSlow(kind: SlowKind, { authorization, ...place }: SlowPlace): Socket {
  const where = { host: '127.0.0.1', ...place };
  const isBare = kind === 'silent' || kind === 'half a handshake';
  // Whom it talks to is of no interest to an attacker.
  const socket = isBare ? connectTcp(where) : connectTls({ ...where, rejectUnauthorized: false });
  socket.on('error', () => undefined);
  if (kind !== 'reads nothing') socket.resume();
  socket.once(isBare ? 'connect' : 'secureConnect', () => begin(kind, socket, authorization));
  return socket;
}

function begin(kind: SlowKind, socket: Socket, authorization = ''): void {
  const get = 'GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n';
  if (kind === 'half a handshake') socket.write(helloStart);
  if (kind === 'slow head') drip(socket, 'GET / HTTP/1.1\r\nHost: h\r\nX: ');
  if (kind === 'slow body') {
    drip(socket, 'POST /notifications HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n');
  }
  if (kind === 'slow push') {
    const head = `POST /notifications/all HTTP/1.1\r\nHost: h\r\nAuthorization: ${authorization}\r\n`;
    drip(socket, `${head}Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{`, ' ');
  }
  if (kind === 'idle') socket.write(get);
  if (kind === 'reads nothing') {
    socket.pause();
    drip(socket, get.repeat(20), get);
  }
}

function drip(socket: Socket, first: string, further = 'x'): void {
  socket.write(first);
  const timer = setInterval(() => socket.write(further), dripMs);
  socket.once('close', () => clearInterval(timer));
}
