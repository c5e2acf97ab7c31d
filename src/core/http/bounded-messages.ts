/**
 * Bounds the messages that a server sends to a client library. Parsers of libraries collect a message of any declared
 * length, and throw for an invalid one, outside of any call.
 */
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { UnusableAnswer } from './bounded-fetch.ts';

/** Returns the bytes of a message after this header; null if the header is incomplete. Throws UnusableAnswer. */
type ReadHeader = (header: readonly number[]) => number | null;

/** Creates a function that checks the messages of a stream, chunk by chunk. It throws UnusableAnswer. */
function createMessageCheck(readHeader: ReadHeader): (chunk: Uint8Array) => void {
  let header: number[] = [];
  let left = 0;
  return (chunk) => {
    for (let at = 0; at < chunk.length; ) {
      if (left === 0) {
        header.push(chunk[at] ?? 0);
        at += 1;
        const found = readHeader(header);
        if (found === null) continue;
        header = [];
        left = found;
      }
      const skipped = Math.min(left, chunk.length - at);
      left -= skipped;
      at += skipped;
    }
  };
}

const tooLarge = () => new UnusableAnswer('it sent a message of an invalid length');

/** Maximum size of a message without data. */
const controlBytesMax = 2 ** 20;

/** Maximum size of a packet to an MQTT client, which receives only acknowledgements. */
export const packetBytesMax = controlBytesMax;

/** Destroys the socket of an MQTT client when the broker sends an invalid or a too large packet (MQTT 5, 2.1.4). */
export function boundMqtt(socket: Duplex): void {
  const check = createMessageCheck((header) => {
    const last = header.at(-1) ?? 0;
    if (header.length === 1 || (last >= 128 && header.length < 5)) return null;
    const length = header.slice(1).reduce((sum, byte, i) => sum + (byte & 127) * 128 ** i, 0);
    if (last >= 128 || length > controlBytesMax) throw tooLarge();
    return length;
  });
  socket.on('data', (chunk: Uint8Array) => {
    try {
      check(chunk);
    } catch (error) {
      socket.destroy(error as UnusableAnswer);
    }
  });
}

/** Methods of AuthenticationRequest that the client of PostgreSQL supports: none, password, MD5, SASL. */
const loginMethods = new Set([0, 3, 5, 10, 11, 12]);

const typeOf = { login: 0x52, row: 0x44, ready: 0x5a };

/** Checks the messages of PostgreSQL (protocol 3, message formats), and the size of the rows of one statement. */
function postgresHeader(rowsBytesMax: number): ReadHeader {
  let rowsBytes = 0;
  return (header) => {
    if (header.length < 5) return null;
    const [type] = header;
    const bytes = Buffer.from(header);
    const length = bytes.readUInt32BE(1);
    if (type === typeOf.ready) rowsBytes = 0;
    if (type === typeOf.row) rowsBytes += length;
    const isRow = type === typeOf.row;
    if (length < 4 || (isRow ? rowsBytes > rowsBytesMax : length > controlBytesMax))
      throw tooLarge();
    if (type === typeOf.login && length >= 8) {
      if (header.length < 9) return null;
      if (!loginMethods.has(bytes.readInt32BE(5))) {
        throw new UnusableAnswer(
          'it requires a login without a password, such as gss in pg_hba.conf',
        );
      }
    }
    return length + 1 - header.length;
  };
}

/**
 * Destroys the connection of a `pg` client when the server sends a message that is invalid or too large, or that makes
 * the library throw. Call it before `connect`.
 */
export function boundPostgres(client: { readonly connection: object }, rowsBytesMax: number): void {
  // Not part of the library's types. Called with the socket, or with the TLS socket.
  const connection = client.connection as { attachListeners(stream: EventEmitter): void };
  const attach = connection.attachListeners.bind(connection);
  connection.attachListeners = (stream) => {
    const checked = new EventEmitter();
    attach(checked);
    const check = createMessageCheck(postgresHeader(rowsBytesMax));
    const socket = stream as Duplex;
    socket.on('data', (chunk: Uint8Array) => {
      try {
        check(chunk);
        checked.emit('data', chunk);
      } catch (error) {
        const isChecked = error instanceof UnusableAnswer;
        socket.destroy(isChecked ? error : new UnusableAnswer('it sent an invalid message'));
      }
    });
    socket.on('end', () => checked.emit('end'));
  };
}
