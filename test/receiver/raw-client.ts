/** A client that sends exactly the bytes it is told to, over TLS, and reads what comes back. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { onTestFinished } from 'vitest';
import { type Answer, createAnswerReader } from './answer-reader.ts';
import { type Endpoint, goodPair } from './running-receiver.ts';

export interface Connection {
  socket: TLSSocket;
  send(bytes: string | Uint8Array): void;
  /** The next answer; rejects when the connection ends before it is whole. */
  answer(options?: { head?: boolean }): Promise<Answer>;
  /** Resolves when the connection is gone, however it went. */
  closed: Promise<void>;
}

export interface RequestParts {
  method?: string;
  path?: string;
  /** Text after the scheme and all: the whole Authorization value. Null sends none. */
  authorization?: string | null;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}

/** Opens a connection that is destroyed when the test is over. Rejects when the handshake fails. */
export async function openConnection(
  { port, caPem }: Endpoint,
  options: ConnectionOptions & { localAddress?: string } = {},
): Promise<Connection> {
  const socket = tlsConnect({ host: '127.0.0.1', port, ca: caPem, ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  return connectionOver(socket);
}

function connectionOver(socket: TLSSocket): Connection {
  const reader = createAnswerReader();
  let ended = false;
  let wake = () => {};
  const end = () => {
    ended = true;
    wake();
  };
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('data', (bytes: Buffer) => {
    reader.add(bytes);
    wake();
  });
  // A reset is one of the ways in which a connection goes; the tests look at `closed`.
  socket.on('end', end).on('close', end).on('error', end);
  return {
    socket,
    closed,
    send: (bytes) => void socket.write(bytes),
    answer: async ({ head = false } = {}) => {
      for (;;) {
        const answer = reader.take({ head, ended });
        if (answer !== null) return answer;
        if (ended) throw new Error('The connection ended before the answer was whole.');
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

/** Opens a plain TCP connection that is destroyed when the test is over. */
export async function openTcp({ port }: Endpoint): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** Sends one request on a connection of its own and reads the answer. */
export async function exchange(endpoint: Endpoint, parts: RequestParts = {}): Promise<Answer> {
  const connection = await openConnection(endpoint);
  connection.send(requestBytes(parts));
  const answer = await connection.answer({ head: parts.method === 'HEAD' });
  connection.socket.destroy();
  return answer;
}

/** Sends bytes on a connection of their own; every answer that comes before the receiver closes it. */
export async function answersTo(endpoint: Endpoint, bytes: string | Uint8Array): Promise<Answer[]> {
  const connection = await openConnection(endpoint);
  connection.send(bytes);
  const answers: Answer[] = [];
  for (;;) {
    try {
      answers.push(await connection.answer());
    } catch {
      return answers;
    }
  }
}

/** A whole request: POST with the right credentials unless told otherwise. */
export function requestBytes(parts: RequestParts): Buffer {
  const { method = 'POST', path = '/notifications', authorization = basic(), headers } = parts;
  const body = Buffer.from(parts.body ?? '');
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...Object.entries({
      Host: 'localhost',
      ...(authorization === null ? {} : { Authorization: authorization }),
      ...(parts.body === undefined ? {} : { 'Content-Length': String(body.byteLength) }),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
}

/** The Authorization value of a pair; the pair may be bytes in any encoding. */
export function basic(
  username = goodPair.username,
  password = goodPair.password,
  encoding: BufferEncoding = 'utf8',
): string {
  return `Basic ${Buffer.from(`${username}:${password}`, encoding).toString('base64')}`;
}
