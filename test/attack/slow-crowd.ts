/** Separate process that keeps thousands of slow connections open; configured on standard input. */
import { connect as connectTcp, type Socket } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';

/** Configuration, a JSON object on standard input. */
export interface SlowCrowd {
  readonly port: number;
  readonly count: number;
  /** A separate address per connection, or this one for all. */
  readonly from: 'many' | `127.${string}`;
  /** Connections opened per second at the start. */
  readonly perSecond: number;
  /** Valid Authorization value of pushes with slow bodies; null for unknown clients. */
  readonly authorization: string | null;
  /** Delay before a closed connection is opened again. */
  readonly pauseMs: number;
}

/** State, a JSON object per second on standard output. */
export interface CrowdState {
  /** Open connections, as known to this side. */
  readonly open: number;
  readonly opened: number;
  readonly cut: number;
  /** True after every connection was opened once. */
  readonly isComplete: boolean;
}

async function gather(crowd: SlowCrowd): Promise<void> {
  const { port, count, from, perSecond, pauseMs, authorization } = crowd;
  let [open, opened, cut, places] = [0, 0, 0, 0];
  const start = (index: number) => {
    const localAddress = from === 'many' ? addressOf(index) : from;
    const kind = slowKinds[index % slowKinds.length] ?? 'silent';
    opened += 1;
    open += 1;
    const place = { port, localAddress };
    const socket =
      authorization === null
        ? openSlow(kind, place)
        : openSlow('slow push', { ...place, authorization });
    socket.once('close', () => {
      open -= 1;
      cut += 1;
      setTimeout(() => start(index), pauseMs * (0.5 + Math.random()));
    });
  };
  setInterval(() => {
    const state: CrowdState = { open, opened, cut, isComplete: places === count };
    process.stdout.write(`${JSON.stringify(state)}\n`);
  }, 1_000);
  for (; places < count; places += 1) {
    start(places);
    if (places % 10 === 9) await delay(10_000 / perSecond);
  }
}

/** Returns an address from 127.1.0.1 upwards, with last numbers from 1 to 250. */
function addressOf(index: number): string {
  return `127.${1 + Math.floor(index / 62_500)}.${Math.floor(index / 250) % 250}.${1 + (index % 250)}`;
}

const slowKinds = [
  'silent',
  'half a handshake',
  'slow head',
  'slow body',
  'idle',
  'reads nothing',
] as const;

const helloStart = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);

const dripMs = 3_000;

await gather((await json(process.stdin)) as SlowCrowd);

type SlowKind = (typeof slowKinds)[number] | 'slow push';

interface SlowPlace {
  readonly port: number;
  readonly localAddress: string;
  /** Valid Authorization value, for `slow push`. */
  readonly authorization?: string;
}

/** Opens a connection and keeps it active until it is closed. Errors are handled by `close`. */
function openSlow(kind: SlowKind, { authorization, ...place }: SlowPlace): Socket {
  const where = { host: '127.0.0.1', ...place };
  const isBare = kind === 'silent' || kind === 'half a handshake';
  // An attacker does not verify the server.
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
