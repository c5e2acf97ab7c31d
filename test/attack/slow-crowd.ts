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
  readonly opened: number;
  readonly cut: number;
  /** True after every connection was opened once. */
  readonly isComplete: boolean;
}

const helloStart = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
const get = 'GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n';
const post = 'POST /notifications HTTP/1.1\r\nHost: h\r\n';

/** A bare connection begins no handshake. */
interface SlowKind {
  isBare?: true;
  begin(socket: Socket): void;
}

const slowKinds: readonly SlowKind[] = [
  // Silent, and half a handshake.
  { isBare: true, begin: () => undefined },
  { isBare: true, begin: (socket) => socket.write(helloStart) },
  // Slow heads, slow bodies, and idle after an answer.
  { begin: (socket) => drip(socket, 'GET / HTTP/1.1\r\nHost: h\r\nX: ') },
  { begin: (socket) => drip(socket, `${post}Content-Length: 100000\r\n\r\n`) },
  { begin: (socket) => socket.write(get) },
  // Reads nothing.
  { begin: (socket) => drip(socket.pause(), get.repeat(20), get) },
];

const dripMs = 3_000;

function drip(socket: Socket, first: string, further = 'x'): void {
  socket.write(first);
  const timer = setInterval(() => socket.write(further), dripMs);
  socket.once('close', () => clearInterval(timer));
}

const crowd = (await json(process.stdin)) as SlowCrowd;
const { port, count, from, perSecond, pauseMs, authorization } = crowd;
let [opened, cut, places] = [0, 0, 0];

const slowPush: SlowKind = {
  begin: (socket: Socket) => {
    const head = `${post}Authorization: ${authorization}\r\nContent-Type: application/json\r\n`;
    drip(socket, `${head}Content-Length: 100000\r\n\r\n{`, ' ');
  },
};

/** Opens a connection, keeps it active until it is closed, and opens it again. */
function start(index: number): void {
  const { isBare, begin } =
    authorization === null ? (slowKinds[index % slowKinds.length] ?? slowPush) : slowPush;
  const localAddress = from === 'many' ? addressOf(index) : from;
  const where = { host: '127.0.0.1', port, localAddress };
  opened += 1;
  // An attacker does not verify the server.
  const socket = isBare ? connectTcp(where) : connectTls({ ...where, rejectUnauthorized: false });
  socket.on('error', () => undefined).resume();
  socket.once(isBare ? 'connect' : 'secureConnect', () => begin(socket));
  socket.once('close', () => {
    cut += 1;
    setTimeout(() => start(index), pauseMs * (0.5 + Math.random()));
  });
}

/** Returns an address from 127.1.0.1 upwards, with last numbers from 1 to 250. */
function addressOf(index: number): string {
  return `127.${1 + Math.floor(index / 62_500)}.${Math.floor(index / 250) % 250}.${1 + (index % 250)}`;
}

setInterval(() => {
  const state: CrowdState = { opened, cut, isComplete: places === count };
  process.stdout.write(`${JSON.stringify(state)}\n`);
}, 1_000);
for (; places < count; places += 1) {
  start(places);
  if (places % 10 === 9) await delay(10_000 / perSecond);
}
