/** A connection that sends exactly the bytes it is told to, and keeps what comes back. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';

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
